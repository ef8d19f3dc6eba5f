"""traces/README.md, both writers and the reader name the same fields."""

from __future__ import annotations

import json
import re
from pathlib import Path

from native_build import HEADER, HERE

from tauscope.ingest.native import KINDS, RECORD
from tauscope.trace import FORMAT, Trace

ROOT = HERE.parent
READ = {name for name in RECORD if name not in ("line", "extra")} | {"tauscope"}


def test_every_field_is_documented() -> None:
    text = (ROOT / "traces" / "README.md").read_text()
    form = text[text.index("### Form") : text.index("**Versions.**")]
    rows = re.findall(r"^\| (`[^|]*) \|", form, re.M)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == READ


def test_every_field_can_be_written(tmp_path: Path) -> None:
    """The C header writes the same bytes, which test_trace_twins.py shows."""
    facts = dict.fromkeys(("engine", "engine_version", "model", "drafter", "arm", "backend",
                           "machine"), "x")  # fmt: skip
    counts = dict.fromkeys(("pos", "drafted", "verified", "accepted", "emitted", "draft_token",
                            "target_forwards", "next_token"), 1)  # fmt: skip
    times = dict.fromkeys(("base_ms", "draft_ms", "snapshot_ms", "verify_ms", "commit_ms",
                           "decode_ms", "wall_ms", "margin", "threshold"), 1.5)  # fmt: skip
    with Trace(tmp_path / "t", draft_depth=1, threshold=3, ctx=1, **facts) as trace:
        request = trace.begin(engine_id="x", workload="x", prompt_id="x", prompt_tokens=1,
                              cached_tokens=1)  # fmt: skip
        trace.record(request, outcome="folded", path="x", replayed=True, **counts, **times)
        trace.token(request, 1)
        trace.end(request, prefill_ms=1, decode_ms=1, finish="x", error="x")
    lines = [json.loads(line) for line in (tmp_path / "t").read_text().splitlines()]
    assert {name for line in lines for name in line} == READ
    assert tuple(line["kind"] for line in lines) == KINDS


def test_one_format_version() -> None:
    header = (HEADER / "tauscope_trace.h").read_text()
    assert re.search(r'#define TAUSCOPE_FORMAT "(\d+)"', header)[1] == str(FORMAT)
