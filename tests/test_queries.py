"""The worked examples run as they stand, over traces that have what they ask about."""

from __future__ import annotations

from pathlib import Path

import pytest
from frames import add_run, cycle, opened

QUERIES = sorted((Path(__file__).parents[1] / "analysis" / "queries").glob("*.sql"))


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_example_query_runs_and_says_what_it_asks(store: Path, path: Path) -> None:
    rows = [
        cycle(kind, margin=1.5, draft_token=1, next_token=1, wall_ms=9.0, draft_ms=1.0)
        for kind in ("bet+", "bet-", "bet-", "fold")
    ]
    add_run(store, "log", [rows], workload="code", arm="mtp1")
    text = path.read_text(encoding="utf-8")
    assert text.startswith("-- ")
    assert opened(store).ask(text).height > 0
