"""The pieces that recording is made of: mirror, journal, parts, gauge."""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from frames import add_run, cycle, opened
from hypothesis import given, settings
from hypothesis import strategies as st
from logs import TEN
from parsed import parse

from tauscope import schema
from tauscope import store as stores
from tauscope.record import marker as markers
from tauscope.record import parts
from tauscope.record.journal import Journal, kept_blocks
from tauscope.record.live import WINDOW_S, Gauge
from tauscope.record.marker import Marker
from tauscope.record.mirror import MARKER, WithoutTrace

RECORD = MARKER + b'1,"kind":"cycle","path":"a b"}\n'
PIECES = st.sampled_from(
    [RECORD, RECORD[:-1], MARKER, MARKER[:5], b"{", b'{"x":', b"ds4: mtp\n", b"50 %\r", b"\xff"]
)


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=12).map(b"".join), st.lists(st.integers(1, 40), max_size=40))
def test_a_mirror_shows_all_but_native_records(data: bytes, sizes: list[int]) -> None:
    """However the bytes come, what is shown is the text without what a marker begins."""
    shown, rest = [], data
    while rest:
        before, marker, rest = rest.partition(MARKER)
        shown.append(before)
        rest = rest.partition(b"\n")[2] if marker else b""
    there = 0
    source = WithoutTrace(lambda at, size: data[at : min(at + size, there)])
    got = b""
    for size in [*sizes, len(data)]:
        there = min(there + size, len(data))
        while block := source.read():
            got += block
    assert got + source.rest() == b"".join(shown)


def test_a_progress_counter_is_shown_at_once() -> None:
    data = b"ds4: loading 10 %\r"
    assert WithoutTrace(lambda at, size: data[at : at + size]).read() == data


def marked(root: Path) -> tuple[Marker, Journal, int]:
    for room in (*stores.ROOMS, markers.ROOM):
        (root / room).mkdir(parents=True)
    marker = Marker(log_id="0123456789ab", source="x", recorder_pid=1, started_unix_ms=0)
    markers.save(root, marker)
    journal = Journal(root, marker)
    return marker, journal, journal.create()


def test_a_journal_packs_in_frames_and_keeps_every_byte(store: Path) -> None:
    marker, journal, writing = marked(store)
    written = b""
    for number in range(4):
        part = os.urandom(9000) + b"%d\n" % number
        os.write(writing, part)
        written += part
        if number % 2:
            journal.keep(written[marker.archived : -1000])
        journal.pack()
        journal.hollow(marker.archived)
        assert b"".join(journal.blocks(1000)) == written
        assert b"".join(kept_blocks(store, "raw/0123456789ab.log.zst")) == written
    assert journal.size() == len(written)
    if sys.platform == "linux":
        assert journal.path.stat().st_blocks * 512 < len(written) // 2
    # What a killed pack leaves behind its last whole frame is no part of the log.
    with journal.copy.open("ab") as handle:
        handle.write(b"half a frame")
    assert b"".join(journal.blocks()) == written
    journal.keep(written[marker.archived :])
    journal.pack()
    assert b"".join(journal.blocks()) == written
    os.close(writing)
    markers.drop(store, marker.log_id)
    journal.path.unlink()
    assert b"".join(kept_blocks(store, "raw/0123456789ab.log.zst")) == written


def test_a_journal_is_held_as_long_as_anyone_can_write_to_it(store: Path) -> None:
    _, journal, writing = marked(store)
    assert markers.is_held(journal.path)
    second = os.dup(writing)
    os.close(writing)
    assert markers.is_held(journal.path)
    os.close(second)
    assert not markers.is_held(journal.path)


@pytest.mark.parametrize("fan_in", [2, 3, 32])
def test_parts_merge_in_order_and_lose_no_row(
    fan_in: int, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "FAN_IN", fan_in)
    monkeypatch.setattr(parts, "SEALED", 40)
    monkeypatch.setattr(parts, "WAITING", 7)
    writer = stores.LogWriter(store, "log", "t")
    gathered, written = parts.Parts(writer), 0
    for size in [1, 0, 3, 2, 8, 1, 1, 50, 1, 2, 6, 1, 1, 1, 12, 1, 1, 5] * 3:
        lines = pl.DataFrame({"line": range(written, written + size)}, schema={"line": pl.Int64})
        gathered.add(schema.CYCLES, schema.conform(lines, schema.CYCLES))
        written += size
        gathered.flush()
        while gathered.settle():
            pass
        names = writer.parts(schema.CYCLES)
        held = pl.concat([pl.read_parquet(store / name, glob=False) for name in names])
        assert held["line"].to_list() == list(range(written))
    gathered.settle(last=True)
    names = writer.parts(schema.CYCLES)
    sizes = [pl.read_parquet(store / name, glob=False).height for name in names]
    assert sum(sizes) == written
    # Neighbours that are both small have become one.
    assert all(a >= 40 or b >= 40 for a, b in pairwise(sizes))


def test_the_live_numbers_are_those_of_the_macros(store: Path) -> None:
    kinds = ["legacy+", "legacy-", "legacyfold", "miss", "legacy+", "legacy+"]
    add_run(store, "a", [[cycle(kind, wall_ms=40.0 + n) for n, kind in enumerate(kinds)]])
    data = opened(store)
    (row,) = data.query(
        "SELECT tau(emitted) AS tau, fold_rate(outcome) AS folds, "
        "committed_acceptance(accepted, verified, outcome) AS acceptance, "
        "tokens_per_s(ms_per_token(wall_ms, emitted)) AS speed FROM cycles"
    ).iter_rows(named=True)
    gauge = Gauge()
    gauge.take(data.query("SELECT * FROM cycles WHERE cycle < 2"), 100.0)
    gauge.take(data.query("SELECT * FROM cycles WHERE cycle >= 2"), 101.0)
    assert gauge.whole.tau == pytest.approx(row["tau"]) == 14 / 6
    assert gauge.whole.fold_rate == pytest.approx(row["folds"]) == 1 / 6
    assert gauge.whole.acceptance == pytest.approx(row["acceptance"]) == 3 / 4
    assert gauge.whole.tokens_per_s == pytest.approx(row["speed"]) == 14 / 0.255
    # The first look is older than a minute by now.
    assert gauge.minute(101.0 + WINDOW_S).cycles == 4


def test_what_is_unknown_stays_unknown(store: Path) -> None:
    add_run(store, "a", [[cycle("legacy+"), cycle("unknown")]])
    gauge = Gauge()
    gauge.take(opened(store).query("SELECT * FROM cycles"), 0.0)
    whole = gauge.whole
    assert (whole.tau, whole.acceptance, whole.fold_rate, whole.tokens_per_s) == (None,) * 4
    assert gauge.line(0.0).count("– (–)") == 4


def test_speed_by_the_clock_leaves_pauses_out() -> None:
    """Where no cycle has a time of its own: 17 tokens a look, a second apart, one long pause."""
    cycles = parse(TEN).cycles
    gauge = Gauge()
    for now in (0.0, 1.0, 2.0, 50.0, 51.0):
        gauge.take(cycles, now)
    # Five looks of 17 tokens; the clock ran for three seconds between looks that followed.
    assert gauge.whole.tokens_per_s == pytest.approx(17)


def test_a_narrow_terminal_gets_whole_parts() -> None:
    gauge = Gauge()
    gauge.take(parse(TEN).cycles, 0.0)
    for width in range(12, 120):
        line = gauge.line(0.0, width)
        assert len(line) <= width
        assert "1 min (run):" in line
    assert gauge.line(0.0, 40) == "1 min (run):  – (–) tok/s  τ 1.70 (1.70)"
