"""Scripted speculative loops in C, traced, imported: every row is what the script says.

The loops and their costs are in tests/native/loop.c: a target pass takes 24 ms and
1 ms a token, a draft 2.5 ms, a snapshot 0.25 ms, a repair 0.75 ms; the gate's bar is 3.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_build import HERE, SANITIZE, build
from polars.testing import assert_frame_equal

from tauscope.ingest.native import parse_native
from tauscope.ingest.native_runs import NativeReader, Rows
from tauscope.schema import CYCLES
from tauscope.trace import HASH, token_hash

TARGET, DRAFT, SNAPSHOT, REPAIR = 24.0, 2.5, 0.25, 0.75
WRONG = 5000


def legacy(pos: int, right1: int, margin: float, right2: int) -> dict:
    row = {"base_ms": 25.0, "free_checked": 1, "free_accepted": right1}
    if not right1:
        return row | {"outcome": "missed", "drafted": 1, "verified": 0, "accepted": 0,
                      "emitted": 1, "target_forwards": 1, "draft_ms": 2.5, "wall_ms": 27.5,
                      "draft_token": pos + 1 + WRONG, "next_token": pos + 1}  # fmt: skip
    row |= {"drafted": 2, "margin": margin, "threshold": 3.0, "draft_ms": 5.0,
            "target_forwards": 2, "next_token": pos + 2,
            "draft_token": pos + 2 + (0 if right2 else WRONG)}  # fmt: skip
    if margin < 3:
        return row | {"outcome": "folded", "path": "margin-skip", "verified": 0, "accepted": 0,
                      "emitted": 2, "decode_ms": 25.0, "wall_ms": 55.0}  # fmt: skip
    return row | {"outcome": "all_accepted" if right2 else "rejected", "path": "micro",
                  "verified": 1, "accepted": right2, "emitted": 2 + right2, "snapshot_ms": 0.25,
                  "verify_ms": 26.0, "commit_ms": None if right2 else 0.75,
                  "wall_ms": 56.25 if right2 else 57.0}  # fmt: skip


def depth1(pos: int, margin: float, right: int) -> dict:
    row = {"drafted": 1, "free_checked": 0, "free_accepted": 0, "target_forwards": 1,
           "margin": margin, "threshold": 3.0, "draft_ms": 2.5, "next_token": pos + 1,
           "draft_token": pos + 1 + (0 if right else WRONG)}  # fmt: skip
    if margin < 3:
        return row | {"outcome": "folded", "verified": 0, "accepted": 0, "emitted": 1,
                      "decode_ms": 25.0, "wall_ms": 27.5}  # fmt: skip
    return row | {"outcome": "all_accepted" if right else "rejected", "verified": 1,
                  "accepted": right, "emitted": 1 + right, "verify_ms": 26.0,
                  "wall_ms": 28.5}  # fmt: skip


def block(pos: int, n: int, right: int, room: int) -> dict:
    cut = room < 1 + right
    row = {"path": "block", "base_ms": 25.0, "drafted": n, "free_checked": int(n > 0),
           "free_accepted": int(right > 0), "verified": 0, "accepted": 0,
           "emitted": min(1 + right, room), "truncated": cut,
           "draft_ms": 2.5 * n if n else None, "target_forwards": 1,
           "wall_ms": 25 + 2.5 * n}  # fmt: skip
    if n == 0:
        return row | {"outcome": "bypassed"}
    if right == 0:
        return row | {"outcome": "missed"}
    verify = TARGET + max(n - 1, 1)
    repair = 0 if right == n else REPAIR
    outcome = "unverified" if n == 1 else "all_accepted" if right == n else \
        "rejected" if right == 1 else "partial"  # fmt: skip
    return row | {"outcome": outcome, "verified": n - 1, "accepted": right - 1,
                  "target_forwards": 2 if right == n else 3, "replayed": right < n,
                  "verify_ms": verify, "commit_ms": repair or None,
                  "wall_ms": 25 + 2.5 * n + verify + repair}  # fmt: skip


RULES = {"legacy": legacy, "depth1": depth1, "block": block}


def expected(script: list[tuple[int, list[tuple]]]) -> tuple[pl.DataFrame, list[dict]]:
    """(cycles, requests) of requests with their prompt tokens and cycles."""
    rows, requests, clock, line, cycle = [], [], 0.0, 1, 0
    for number, (prompt, cycles) in enumerate(script):
        line += 1
        clock += TARGET + prompt
        pos, state = prompt, HASH
        for kind, *words in cycles:
            line += 1
            row = RULES[kind](pos, *words)
            clock += row["wall_ms"]
            rows.append(
                {"truncated": False, "resampled": 0, "run_id": "log-0", "request_id": number,
                 "cycle": cycle, "line": line, "first_line": line, "last_line": line,
                 "t_ms": clock, "pos": pos, "dialect": "native"} | row
            )  # fmt: skip
            cycle += 1
            for token in range(pos, pos + row["emitted"]):
                state = token_hash(state, token)
            pos += row["emitted"]
        line += 1
        made = pos - prompt
        requests.append(
            {"run_id": "log-0", "request_id": number, "kind": "native", "finish": "stop",
             "prompt_tokens": prompt, "generated_tokens": made, "prefill_ms": TARGET + prompt,
             "tokens_source": "engine" if made else "cycles",
             "output_hash": f"fnv1a64:{state:016x}" if made else None}
        )  # fmt: skip
    return pl.DataFrame(rows, schema=CYCLES.polars()), requests


def text(script: list[tuple[int, list[tuple]]]) -> str:
    lines = []
    for prompt, cycles in script:
        lines.append(f"request {prompt}")
        lines += [" ".join(str(word) for word in cycle) for cycle in cycles]
        lines.append("end stop")
    return "\n".join(lines) + "\n"


def read(path: Path, block_lines: int = 10**9) -> Rows:
    """The whole file through the reader, in blocks; the last state of requests and runs."""
    lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    frame = pl.DataFrame(
        {"line": range(1, len(lines) + 1), "text": lines},
        schema={"line": pl.Int64, "text": pl.String},
    )
    reader = NativeReader("log")
    parts = [
        reader.take(parse_native(frame[i : i + block_lines]))
        for i in range(0, len(frame), block_lines)
    ]
    return Rows(
        pl.concat([part.cycles for part in parts]),
        pl.concat([part.refused for part in parts]),
        pl.concat([part.requests for part in parts])
        .unique(["run_id", "request_id"], keep="last", maintain_order=True)
        .sort("run_id", "request_id"),
        pl.concat([part.runs for part in parts])
        .unique("run_id", keep="last", maintain_order=True)
        .sort("run_index"),
    )


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(HERE / "native" / "loop.c", tmp_path_factory.mktemp("c") / "loop", *SANITIZE)


def play(program: Path, path: Path, script: list) -> None:
    path.unlink(missing_ok=True)
    done = subprocess.run(
        [program],
        input=text(script).encode(),
        env=os.environ | {"TAUSCOPE_TRACE": str(path)},
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")


MARGIN = st.integers(0, 64).map(lambda n: n / 8)
BIT = st.integers(0, 1)
BLOCK = st.integers(0, 6).flatmap(
    lambda n: st.tuples(st.just("block"), st.just(n), st.integers(0, n), st.integers(1, 9))
)
CYCLE = st.one_of(
    st.tuples(st.just("legacy"), BIT, MARGIN, BIT),
    st.tuples(st.just("depth1"), MARGIN, BIT),
    BLOCK,
)
SCRIPT = st.lists(st.tuples(st.integers(0, 500), st.lists(CYCLE, max_size=12)), max_size=4)
EVERY_WAY = [
    (12, [("legacy", r1, m, r2) for r1 in (0, 1) for m in (0.0, 2.875, 3.0, 8.0) for r2 in (0, 1)]),
    (0, [("depth1", m, r) for m in (0.0, 2.875, 3.0, 8.0) for r in (0, 1)]),
    (7, [("block", n, r, room) for n in range(5) for r in range(n + 1) for room in (1, 2, 9)]),
]  # fmt: skip


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(script=SCRIPT, block_lines=st.sampled_from([4, 11, 50]))
def test_any_script_comes_back_row_by_row(
    program: Path, tmp_path: Path, script: list, block_lines: int
) -> None:
    compare(program, tmp_path / "t.ndjson", script, block_lines)


@pytest.mark.parametrize("block_lines", [1, 10**9])
def test_every_way_through_the_loops(program: Path, tmp_path: Path, block_lines: int) -> None:
    compare(program, tmp_path / "t.ndjson", EVERY_WAY, block_lines)


def compare(program: Path, path: Path, script: list, block_lines: int) -> None:
    play(program, path, script)
    got = read(path, block_lines)
    cycles, requests = expected(script)
    assert_frame_equal(got.cycles, cycles, check_exact=False, abs_tol=5e-4)
    assert got.refused.height == 0
    for row, wanted in zip(got.requests.to_dicts(), requests, strict=True):
        assert {name: row[name] for name in wanted} == wanted
    run = got.runs.row(0, named=True)
    assert got.runs.height == 1
    assert (run["unfit_lines"], run["refused_rows"], run["model"], run["draft_depth"]) == (
        0, 0, 'scripted "model" 测试', 4,
    )  # fmt: skip
    assert (run["threshold"], run["backend"], run["ctx"]) == (3.0, "none", 4096)
    assert run["lines"] == 1 + sum(2 + len(cycles) for _, cycles in script)
