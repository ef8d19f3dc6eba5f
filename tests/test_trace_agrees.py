"""A log beside a native trace is a check: what they say differently is listed."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from parsed import FOLD as FOLD_LINE
from parsed import MISS as MISS_LINE

from tauscope.errors import Problem
from tauscope.ingest.agree import DISAGREEMENT, disagreements, facts, one_run, with_checks
from tauscope.ingest.source import find
from tauscope.schema import CYCLES, RUNS

BET = {"outcome": "all_accepted", "drafted": 2, "free_checked": 1, "free_accepted": 1,
       "verified": 1, "accepted": 1, "resampled": 0, "emitted": 3, "target_forwards": 2,
       "margin": 4.25, "threshold": 3.0, "draft_ms": 5.0, "verify_ms": 26.0}  # fmt: skip
REJECT = BET | {"outcome": "rejected", "accepted": 0, "emitted": 2}
FOLD = BET | {"outcome": "folded", "verified": 0, "accepted": 0, "emitted": 2, "margin": 1.5,
              "verify_ms": None, "decode_ms": 25.0}  # fmt: skip
MISS = {"outcome": "missed", "drafted": 1, "free_checked": 1, "free_accepted": 0, "verified": 0,
        "accepted": 0, "resampled": 0, "emitted": 1, "target_forwards": 1}  # fmt: skip


def cycles(*rows: dict, line: int = 10) -> pl.DataFrame:
    numbered = [{"request_id": 0, "cycle": i, "line": line + i} | row for i, row in enumerate(rows)]
    return pl.DataFrame(numbered, schema=CYCLES.polars())


def found(native: pl.DataFrame, log: pl.DataFrame) -> list[tuple]:
    frame = disagreements(native, log)
    assert frame.schema == pl.Schema(DISAGREEMENT)
    return frame.rows()


def test_the_same_cycles_agree() -> None:
    assert found(cycles(BET, FOLD, MISS), cycles(BET, FOLD, MISS, line=90)) == []
    assert found(cycles(), cycles()) == []


def test_what_a_log_rounds_or_times_otherwise_agrees() -> None:
    log = [
        FOLD | {"margin": 1.5004, "draft_ms": 2.5, "decode_ms": 25.9},
        BET | {"margin": None, "verify_ms": 26.9, "wall_ms": None},
    ]
    assert found(cycles(FOLD, BET | {"wall_ms": 56.0}), cycles(*log)) == []


def test_misses_that_the_log_kept_to_itself_are_passed_over() -> None:
    native = cycles(MISS, BET, MISS, FOLD, MISS)
    assert found(native, cycles(BET, FOLD)) == []
    assert found(native, cycles(BET, FOLD, {"outcome": "unlogged", "emitted": 1})) == []


def test_a_value_that_differs_is_one_row() -> None:
    log = cycles(BET, FOLD | {"decode_ms": 40.0, "margin": 1.502}, line=90)
    assert found(cycles(BET, FOLD), log) == [
        (0, 1, 11, 91, "decode_ms", "25.0", "40.0"),
        (0, 1, 11, 91, "margin", "1.5", "1.502"),
    ]


def test_a_count_that_differs_shows_in_each_column_it_changes() -> None:
    rows = found(cycles(BET, REJECT), cycles(BET, BET))
    assert [row[4:] for row in rows] == [
        ("accepted", "0", "1"),
        ("emitted", "2", "3"),
        ("outcome", "rejected", "all_accepted"),
    ]


def test_a_log_that_prints_misses_must_print_all() -> None:
    native = cycles(MISS, BET, MISS, FOLD)
    assert found(native, cycles(MISS, BET, FOLD, line=90)) == [
        (0, None, 12, 92, "cycles", "4", "3")
    ]


def test_a_missing_line_at_the_end() -> None:
    assert found(cycles(BET, FOLD), cycles(BET, line=90)) == [
        (0, None, 11, None, "cycles", "2", "1")
    ]
    assert found(cycles(BET), cycles(BET, FOLD, line=90)) == [
        (0, None, None, 91, "cycles", "1", "2")
    ]


def test_after_the_parting_nothing_is_compared() -> None:
    """Else every later cycle would be a disagreement."""
    native = cycles(BET, FOLD, BET, BET, FOLD)
    rows = found(native, cycles(BET, BET, BET, FOLD, line=90))
    assert rows == [(0, None, 11, 91, "cycles", "5", "4")]


def test_a_slip_in_one_request_spoils_no_other() -> None:
    native = cycles(BET, FOLD, BET, FOLD).with_columns(request_id=pl.Series([0, 0, 1, 1]))
    log = cycles(FOLD, BET, FOLD).with_columns(request_id=pl.Series([3, 7, 7]))
    assert [(row[0], row[4]) for row in found(native, log)] == [(0, "cycles")]
    unknown = log.with_columns(request_id=pl.lit(None, pl.Int64))
    assert [(row[0], *row[4:]) for row in found(native, unknown)] == [(None, "cycles", "4", "3")]


def test_facts_for_the_run() -> None:
    same = facts(disagreements(cycles(BET), cycles(BET)), 1)
    assert same == [{"name": "log_check", "value": "0 disagreements over 1 cycles of the log",
                     "line": None}]  # fmt: skip
    other = facts(disagreements(cycles(BET, FOLD), cycles(BET, FOLD | {"margin": 2.0})), 2)
    assert other[1:] == [
        {"name": "log_disagrees", "value": "cycle 1: margin 1.5 in the trace, 2.0 in the log",
         "line": 11}
    ]  # fmt: skip
    many = disagreements(cycles(*[BET] * 50), cycles(*[FOLD] * 50))
    assert len(facts(many, 50)) == 21 and facts(many, 50)[0]["value"].startswith(str(many.height))


def test_a_log_beside_a_trace(tmp_path: Path) -> None:
    """From both files to the facts of the run, as an import does it."""
    (tmp_path / "run.log").write_text(f"{FOLD_LINE}\n{MISS_LINE}\n")
    (log,) = find([tmp_path / "run.log"])
    native = cycles(FOLD | {"margin": 1.25, "decode_ms": 26.3}, BET, line=2)
    native = native.with_columns(run_id=pl.lit("x-0"))
    native.head(1).write_parquet(tmp_path / "a.parquet")
    native.tail(1).write_parquet(tmp_path / "b.parquet")
    fact = {"name": "engine", "value": "e", "line": 1}
    runs = pl.DataFrame([{"run_id": "x-0", "facts": [fact]}, {"run_id": "x-1", "facts": []}],
                        schema={n: RUNS.polars()[n] for n in ("run_id", "facts")})  # fmt: skip
    parts = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    got = with_checks(runs, [("x-0", one_run(log))], parts)["facts"].to_list()
    assert got[1] == []
    assert got[0][0] == fact
    assert got[0][1]["value"] == "7 disagreements over 2 cycles of the log"
    assert got[0][2]["value"] == "cycle 1: accepted 1 in the trace, 0 in the log"


def test_a_log_of_several_runs_or_none_is_no_check(tmp_path: Path) -> None:
    device = "ds4: Metal device Apple M5 Max, 128.00 GiB RAM"
    (tmp_path / "two.log").write_text(f"{device}\n{MISS_LINE}\n{device}\n{MISS_LINE}\n")
    (tmp_path / "none.log").write_text("nothing\n")
    for name, said in (("two.log", "2 runs"), ("none.log", "no cycle")):
        (log,) = find([tmp_path / name])
        with pytest.raises(Problem, match=f"holds {said}; a log beside"):
            one_run(log)
