"""No bytes stop the parser, no row breaks the ledger, and no cycle is lost in a dirty log."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parsed import CONF_HIT, FOLD, HIT, LOST, MISS, SPEED, START, Parsed, parse
from test_ingest_blocks import LINES

from tauscope.schema import CYCLES, OUTCOMES, REFUSED, REQUESTS, RUNS


def sound(log: Parsed) -> None:
    for frame, table in (
        (log.cycles, CYCLES), (log.refused, REFUSED), (log.requests, REQUESTS), (log.runs, RUNS),
    ):  # fmt: skip
        assert dict(frame.schema) == table.polars()
    cycles = log.cycles.with_columns(
        pl.col("free_accepted", "accepted", "resampled", "free_checked", "verified").cast(pl.Int64)
    )
    made = 1 + pl.col("free_accepted") + pl.col("accepted") + pl.col("resampled")
    kept = [
        (pl.col("emitted") == made) | (pl.col("truncated") & (pl.col("emitted") < made)),
        pl.col("accepted").is_between(0, pl.col("verified")),
        pl.col("free_accepted").is_between(0, pl.col("free_checked")),
        pl.col("free_checked") + pl.col("verified") <= pl.col("drafted"),
        pl.col("emitted") >= 1,
        pl.col("outcome").is_in(OUTCOMES),
        *(pl.col(name) >= 0 for name in cycles.columns if name.endswith("_ms")),
        *(pl.col(name).is_finite() for name in cycles.columns if name.endswith("_ms")),
    ]
    for rule in kept:
        assert cycles.filter(~rule).height == 0
    assert log.refused["reason"].null_count() == 0
    for run in log.runs.iter_rows(named=True):
        assert 0 <= run["ignored_lines"] <= run["lines"]
        assert len(run["unfit_examples"]) == min(3, run["unfit_lines"])
        mine = log.cycles.filter(pl.col("run_id") == run["run_id"])
        lost = log.refused.filter(pl.col("run_id") == run["run_id"])
        assert run["refused_rows"] == lost.height
        numbers = sorted([*mine["cycle"].to_list(), *lost["cycle"].to_list()])
        assert numbers == list(range(len(numbers)))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes(data: bytes):
    sound(parse(data, tokens=5))


@st.composite
def damaged(draw) -> bytes:
    """A log of real shapes with bytes lost, changed, doubled or put in."""
    log = bytearray("\n".join(draw(st.lists(st.sampled_from(LINES), max_size=12))).encode())
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, max(0, len(log) - 1)))
        size = draw(st.integers(0, 40))
        kind = draw(st.sampled_from(["cut", "put", "copy", "set"]))
        if kind == "cut":
            del log[at : at + size]
        elif kind == "put":
            log[at:at] = draw(
                st.one_of(
                    st.binary(max_size=12),
                    st.sampled_from([b"ds4: mtp ", b"\r", b"\n", b"\x00", b"\x1b[1m", b"-", b"99"]),
                )
            )
        elif kind == "copy":
            log[at:at] = log[at : at + size]
        else:
            log[at : at + 1] = draw(st.sampled_from([b"0", b"9", b"=", b" ", b".", b"\xff", b"\n"]))
    return bytes(log)


@settings(max_examples=120, deadline=None)
@given(damaged(), st.sampled_from([None, 7, 10**9]))
def test_damaged_logs(log: bytes, tokens: int | None):
    sound(parse(log, tokens=tokens))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from(LINES), min_size=1, max_size=10),
    st.sampled_from(["\r\n", "\n\n", "\r\r\n", "\x00\n", "\x1b[0m\n"]),
)
def test_line_ends_and_colours_change_nothing(lines: list[str], end: str):
    if end == "\n\n" and any("stats" in line for line in lines):
        return  # an aggregate goes on in the very next line only
    plain, dirty = parse("\n".join(lines) + "\n"), parse(end.join(lines) + end)
    drop = ["line", "first_line", "last_line"]
    assert plain.cycles.drop(drop).equals(dirty.cycles.drop(drop))
    assert plain.runs["unfit_lines"].equals(dirty.runs["unfit_lines"])


DIRTY = {
    "carriage return before": f"ds4: gpu prefill layer 3/43\r{MISS}",
    "progress before and after": f"\r42 %\r{MISS}\r43 %",
    "colour": f"\x1b[31;1mds4: mtp\x1b[0m {MISS[9:]}\x1b[K",
    "model text before": f"… und dann kam{MISS}",
    "Chinese before": f"你好。{MISS}",
    "bad UTF-8 before": b"\xff\xfe\x80" + MISS.encode(),
    "NULs before": b"\x00" * 9 + MISS.encode(),
    "another program's stamp": f"Aug 09 10:50:24 host ds4[77]: {MISS}",
    "CRLF": f"{MISS}\r",
    "glued behind another record": f"{FOLD}{MISS}",
}


@pytest.mark.parametrize("name", DIRTY)
def test_no_cycle_is_lost_in(name: str):
    dirt = DIRTY[name]
    dirt = dirt.encode() if isinstance(dirt, str) else dirt
    log = parse(f"{FOLD}\n".encode() + dirt + f"\n{HIT}\n".encode())
    glued = ["folded"] if name.startswith("glued") else []
    assert log.outcomes() == ["folded", *glued, "missed", "all_accepted"]
    assert log.run["unfit_lines"] == 0
    assert log.cycles["line"].to_list()[-2:] == [2, 3]


def test_two_writers_in_one_line():
    """The torn record is shown, the whole one behind it is read."""
    log = parse(f"{HIT[:45]}{LOST}")
    assert log.outcomes() == ["rejected"]
    assert log.run["unfit_lines"] == 1
    assert log.run["unfit_examples"] == [{"line": 1, "text": HIT[:45]}]


def test_a_record_with_text_behind_it_is_torn():
    log = parse(f"{MISS} is what the log said\nThe line “{MISS}” means a miss.")
    assert log.cycles.height == 0 and log.run["unfit_lines"] == 2


def test_the_last_line_may_lack_its_end():
    assert parse(f"{FOLD}\n{HIT}".encode()).outcomes() == ["folded", "all_accepted"]
    log = parse(f"{FOLD}\n{HIT[:50]}".encode())
    assert log.outcomes() == ["folded"] and log.run["unfit_lines"] == 1
    assert log.run["lines"] == 2


def test_a_torn_timing_line_leaves_its_conf():
    log = parse(f"{CONF_HIT}\n{HIT[:50]}\n{MISS}")
    assert log.outcomes() == ["all_accepted", "missed"]
    assert log.cycle()["reported_ms"] is None and log.run["unfit_lines"] == 1


def test_line_numbers_count_newlines_only():
    log = parse(f"a\rb\r\n\n\x0b\x0c\u2028\x85\n{MISS}\n".encode())
    assert log.cycles["line"].to_list() == [4]


def test_every_line_is_accounted_for():
    log = parse("\n".join([START, "text", "", MISS, MISS[:20], "ds4: hello", SPEED, "ds4", FOLD]))
    run = log.run
    assert (run["lines"], run["ignored_lines"], run["unfit_lines"]) == (9, 4, 1)


def test_a_long_line_needs_no_memory_of_its_length():
    import tracemalloc

    from tauscope.ingest import LogParser

    parser = LogParser(log_id="log")
    block = b"x" * (1 << 20)
    parser.feed(block)
    tracemalloc.start()
    for _ in range(48):
        parser.feed(block)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 24 << 20
    assert parser.feed(f"\n{MISS}\n".encode()).cycles["line"].to_list() == [2]


def test_an_absurd_count_makes_no_rows():
    log = parse(HIT, tokens=10**15)
    assert log.cycles.height == 1 and log.run["unlogged_cycles"] == 0
