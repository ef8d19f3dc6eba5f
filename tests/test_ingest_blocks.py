"""Rows do not depend on where the blocks of a log end."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parsed import CONF_HIT, CONF_LOST, FOLD, HIT, LOST, MISS, SPEED, START, Parsed, parse

from tauscope.ingest import lines as reader

STAMP = "0102 03:04:05 ds4-server: "
# Short logs of lines that depend on each other, in any order.
LINES = (
    MISS,
    FOLD,
    CONF_HIT,
    HIT,
    CONF_LOST,
    LOST,
    SPEED,
    START,
    "ds4: mtp timing seq drafted=3 verified=1 draft=1.000 ms verify=2.000 ms total=3.000 ms",
    "ds4: mtp spec seq partial drafted=3 verified=1 accepted=2",
    "ds4: Qwen MTP timing drafted=7 accepted=3 target_tokens=4 cycle=91.250 ms verifier=block",
    "ds4: Qwen MTP stages snapshot=0.500 ms draft=13.000 ms verify=50.250 ms capture=A "
    "restore-select=0.125 ms history=3.000 ms commit=3.250 ms path=full "
    "counts(full=4 partial=3 replay=0)",
    "ds4: dspark timing drafted=4 verify=3 verified=2 decode=27.500 ms "
    "draft=110.250 ms verify=52.000 ms total=195.000 ms",
    "ds4: dspark timing detail pushes_init=1 push_init=0.500 ms",
    "ds4: DSpark spec partial drafted=4 verified=3 accepted=4",
    "ds4: DSpark stats cycles=4 proposed=9 accepted_draft=3",
    "accept_rate=33.3% avg_accept=0.750",
    f"{STAMP}chat ctx=0..9:9 prompt start",
    f"{STAMP}chat ctx=0..9:9 prompt done 0.500s",
    f"{STAMP}chat ctx=9..19:10 gen=10 decoding chunk=40.00 t/s avg=41.50 t/s 0.250s",
    f"{STAMP}chat ctx=0..9:9 gen=10 finish=stop 0.750s",
    f"{STAMP}chat ctx=0..20:20 prompt start",
    f"{STAMP}chat ctx=0..20:20 gen=7 TOOLS finish=tool_calls 0.750s",
    f"{STAMP}kv cache stored",
    "模型文本 — مرحبا",
    "ds4: mtp timing micro drafted=2 com",
    f"text before it {MISS}",
    f"{FOLD}\r{MISS}",
)


def same(whole: Parsed, cut: Parsed) -> None:
    for name in ("cycles", "refused", "requests", "runs"):
        left, right = getattr(whole, name), getattr(cut, name)
        assert left.equals(right), f"{name}:\n{left}\n{right}"


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sampled_from(LINES), max_size=30),
    st.lists(st.integers(0, 3000), max_size=12),
    st.sampled_from([None, 40]),
)
def test_any_cut_gives_the_same_rows(lines: list[str], cuts: list[int], tokens: int | None):
    log = "\n".join(lines).encode()
    same(parse(log, tokens=tokens), parse(log, tuple(cuts), tokens=tokens))


@settings(max_examples=6, deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=6))
def test_a_byte_at_a_time(lines: list[str]):
    log = "\r\n".join(lines).encode()
    same(parse(log), parse(log, tuple(range(0, len(log), 11))))


@pytest.mark.parametrize(
    "name", ["ds4-mtp-chat", "ds4-qwen-mtp-server", "ds4-dspark-cycles", "ds4-server-requests"]
)
def test_a_real_log_in_random_blocks(corpus: Path, name: str):
    log = (corpus / f"{name}.log").read_bytes()
    rng = random.Random(7)
    whole = parse(log)
    for count in (1, 12):
        same(whole, parse(log, tuple(rng.randrange(len(log)) for _ in range(count))))


def test_a_wrapped_aggregate_in_two_blocks():
    first, second = "ds4: DSpark stats cycles=4 proposed=9", "accept_rate=33.3% avg_accept=0.750"
    log = f"{START}\n{first}\n{second}\n{SPEED}\n".encode()
    whole = parse(log)
    told = {fact["name"]: fact["value"] for fact in whole.run["facts"]}
    assert told["dspark_stats.cycles"] == "4" and told["dspark_stats.avg_accept"] == "0.750"
    at = log.index(second.encode())
    for cuts in ((at,), (at, at + len(second) + 1), (at - 3, at + 5)):
        same(whole, parse(log, cuts))


def test_a_block_of_many_stretches(monkeypatch: pytest.MonkeyPatch):
    from tauscope.ingest import scanner

    log = "\n".join([START, *[CONF_HIT, HIT, MISS, FOLD, "text", f"more {MISS}"] * 60, SPEED])
    whole = parse(log)
    monkeypatch.setattr(reader, "SLICE", 300)
    monkeypatch.setattr(scanner, "SLICE", 300)
    same(whole, parse(log))


def test_lines_longer_than_the_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reader, "MAX_LINE", 300)
    monkeypatch.setattr(reader, "SLICE", 1000)
    log = "\n".join([MISS, "x" * 299 + MISS, "é" * 2000, FOLD, "y" * 900 + MISS, HIT]).encode()
    whole = parse(log)
    assert whole.outcomes() == ["missed", "missed", "folded", "missed", "all_accepted"]
    assert whole.cycles["line"].to_list() == [1, 2, 4, 5, 6]
    assert whole.run["unfit_lines"] == 0 and whole.run["lines"] == 6
    for cuts in ((300,), (299, 301, 334), tuple(range(0, len(log), 97))):
        same(whole, parse(log, cuts))


CYCLES = [CONF_HIT, HIT, MISS, FOLD, CONF_LOST, LOST]


@pytest.mark.parametrize("limit", [200, 1000, 1 << 20])
@pytest.mark.parametrize("between", ["\r", "\0", "", "\r  40 %\r"])
def test_the_records_of_one_overlong_line(
    monkeypatch: pytest.MonkeyPatch, between: str, limit: int
):
    """Torn nowhere, in order, and the two records of a cycle stay one cycle."""
    monkeypatch.setattr(reader, "MAX_LINE", limit)
    monkeypatch.setattr(reader, "SLICE", 2000)
    log = f"{MISS}\n{between.join([*CYCLES * 40, SPEED])}\n{FOLD}".encode()
    for cuts in ((), (400, 5000, 5001, 9000)):
        found = parse(log, cuts)
        expected = ["all_accepted", "missed", "folded", "rejected"] * 40
        assert found.outcomes() == ["missed", *expected, "folded"]
        assert found.cycles["line"].to_list() == [1, *[2] * 160, 3]
        assert found.run["unfit_lines"] == 0 and found.run["lines"] == 3
        assert found.requests.height == 2


def test_native_records_of_one_overlong_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reader, "MAX_LINE", 400)
    head = '{"tauscope":1,"kind":"run","run":"r","engine":"ds4: x"}'
    counts = '"free_checked":1,"free_accepted":0,"verified":0,"accepted":0,"emitted":1'
    cycles = [
        f'{{"tauscope":1,"kind":"cycle","run":"r","drafted":1,{counts},"draft_token":{n}}}'
        for n in range(50)
    ]
    for between in ("\r", ""):
        found = parse(between.join([head, *cycles]))
        assert found.cycles["draft_token"].to_list() == list(range(50))
        assert found.run["unfit_lines"] == 0


def test_a_stamp_stays_with_its_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reader, "MAX_LINE", 400)
    start = f"{STAMP}chat ctx=0..9:9 prompt start"
    for size in range(340, 401, 4):
        log = parse("x" * size + f"{start}{FOLD}" + f"{FOLD}" * 3)
        assert log.outcomes() == ["folded"] * 4
        assert log.requests["started_at"].to_list() == ["0102 03:04:05"]


def test_a_live_reader_gets_a_cycle_with_its_line():
    from tauscope.ingest import LogParser

    parser = LogParser(log_id="log")
    assert parser.feed(f"{CONF_HIT}\n".encode()).cycles.height == 0
    assert parser.feed(f"{HIT[:20]}".encode()).cycles.height == 0
    batch = parser.feed(f"{HIT[20:]}\n".encode())
    assert batch.cycles["outcome"].to_list() == ["all_accepted"]
    assert batch.requests["last_line"].to_list() == [2]
    assert parser.feed(f"{MISS}\n".encode()).cycles["cycle"].to_list() == [1]
    assert parser.finish().cycles.height == 0
