"""A packed experiment is one log, and every figure of it stays what it was."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import zstandard
from experiments import environment, write_plan
from polars.testing import assert_frame_equal

from tauscope import metrics, speedup
from tauscope.catalog import Catalog
from tauscope.errors import Problem
from tauscope.experiment import load_plan, run
from tauscope.experiment.pack import pack
from tauscope.ingest import LogParser

ARMS = {"off": [], "draft": ["--draft"]}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    folder = tmp_path_factory.mktemp("packs")
    plan = load_plan(write_plan(folder / "plan.toml", 2, ARMS, ("code", "chat")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
        assert run(plan, folder / "many").complete
    pack(folder / "many", folder / "one", plan.id)
    return folder / "many", folder / "one", plan.id


def test_every_figure_is_the_same(stores: tuple[Path, Path, str]) -> None:
    many, one = (Catalog([root]) for root in stores[:2])
    assert_frame_equal(metrics.table(many), metrics.table(one))
    assert_frame_equal(speedup.table(many), speedup.table(one))
    facts = "SELECT name, value, COUNT(*) AS n FROM facts GROUP BY ALL ORDER BY ALL"
    assert_frame_equal(many.query(facts), one.query(facts))


def test_one_log_whose_lines_are_where_the_rows_say(stores: tuple[Path, Path, str]) -> None:
    _, one, _ = stores
    assert [len(list((one / room).iterdir())) for room in ("runs", "cycles", "raw")] == [1, 1, 1]
    (raw,) = (one / "raw").iterdir()
    data = zstandard.ZstdDecompressor().stream_reader(raw.open("rb")).read()
    lines = data.decode().split("\n")
    cat = Catalog([one])
    for line, pos, wall in cat.query("SELECT line, pos, wall_ms FROM cycles").iter_rows():
        record = json.loads(lines[line - 1])
        assert (record["kind"], record["pos"], record["wall_ms"]) == ("cycle", pos, wall)
    heads = cat.query("SELECT line FROM facts WHERE name = 'engine'")["line"]
    assert all(json.loads(lines[line - 1])["kind"] == "run" for line in heads)
    # The rows are those of an import of the joined log.
    parser = LogParser(log_id=cat.runs["log_id"][0])
    parts = [parser.feed(data), parser.finish()]
    mine = cat.query("SELECT run_id, cycle, line, wall_ms FROM cycles ORDER BY line")
    theirs = parts[0].cycles.vstack(parts[1].cycles).sort("line")
    assert_frame_equal(mine, theirs.select(mine.columns))


def test_outputs_and_plan_go_along(stores: tuple[Path, Path, str]) -> None:
    _, one, _ = stores
    listed = json.loads((one / "outputs.json").read_text(encoding="utf-8"))
    assert len(listed) == 4
    assert {tuple(sorted(item["arms"])) for item in listed} == {("draft", "off")}
    plan = json.loads((one / "plan.json").read_text(encoding="utf-8"))
    assert [prompt["id"] for prompt in plan["prompt"]] == [
        "code-0", "code-1", "chat-0", "chat-1",
    ]  # fmt: skip
    assert plan["command"][0] == sys.executable


def test_it_never_mixes_with_what_is_there(stores: tuple[Path, Path, str], tmp_path: Path) -> None:
    many, one, name = stores
    with pytest.raises(Problem, match="holds runs already"):
        pack(many, one, name)
    with pytest.raises(Problem, match="no such experiment"):
        pack(many, tmp_path / "new", "other")
