"""The templates read exactly what the general reader reads, and nothing else."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parsed import CONF_HIT, CONF_LOST, FOLD, HIT, LOST, MISS, parse

from tauscope.ingest import legacy
from tauscope.ingest.scan import Template


def scan(template: str, lines: list[str]) -> tuple[list[bool], list[np.ndarray]]:
    raw = "".join(f"{line}\n" for line in lines).encode()
    data = np.frombuffer(raw + bytes(512), np.uint8)
    ends = np.flatnonzero(data == 10)[: len(lines)]
    ok, values = Template(template).scan(data, np.append(0, ends[:-1] + 1), ends)
    return ok.tolist(), values


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 9_999_999), st.integers(0, 9), st.integers(0, 999_999), st.integers(0, 9999))
def test_numbers_are_read_as_python_reads_them(whole: int, digit: int, part: int, small: int):
    line = f"a={digit} b={whole} c={small}.{part // 1000:03d} ms d={whole}.{part:06d}"
    ok, values = scan("a={1} b={} c={3} ms d={6}", [line, line])
    assert ok == [True, True]
    expected = [digit, whole, float(f"{small}.{part // 1000:03d}"), float(f"{whole}.{part:06d}")]
    assert [value[1].item() for value in values] == expected


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("x={1}", "x="), ("x={1}", "x=12"), ("x={1}", "x=a"), ("x={1}", "x=/"), ("x={1}", "x=:"),
        ("x={}", "x="), ("x={}", "x=-1"), ("x={}", "x=12345678"), ("x={}", "x=123456789012"),
        ("x={}", "x=1 "), ("x={}", "x=1e3"),
        ("x={3} ms", "x=1.25 ms"), ("x={3} ms", "x=.250 ms"), ("x={3} ms", "x=1.2500 ms"),
        ("x={3} ms", "x=12345.250 ms"), ("x={3} ms", "x=-1.250 ms"), ("x={3} ms", "x=1,250 ms"),
        ("x={3} ms", "x=1.2:0 ms"), ("x={3} ms", "x=1..50 ms"), ("x={3} ms", "x=1.250ms"),
        ("x={3} ms", "x=1.250 m"), ("x={3} ms", "x=1.250 ms "), ("x={3} ms", "y=1.250 ms"),
        ("x={3} ms", "x=1.250 ms more"), ("x={3} ms", ""), ("x={3} ms", "x=1/250 ms"),
        ("x={6}", "x=1.12345"), ("x={6}", "x=1.1234567"), ("x={6}", "x=1,123456"),
        ("abcdefghijk={}", "abcdefghijl=1"), ("abcdefghijk={}", "abcdXfghijk=1"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_not_read(template: str, line: str):
    assert scan(template, ["x=7", line, line])[0][1:] == [False, False]


def by_key_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy, "fast", lambda chunk: (None, np.arange(len(chunk.starts))))


REPAIRS = [
    HIT.replace("micro", "decode2"),
    LOST.replace("micro", "decode2").replace(" noreplay=1", ""),
    LOST.replace("prefix", "exact_replay").replace(" noreplay=1", ""),
    LOST.replace("prefix", "replay").replace(" noreplay=1", "").replace("drafted=2", "drafted=5"),
    HIT.replace("drafted=2 committed=2", "drafted=9 committed=9"),
    HIT.replace("40.500", "1234.567"),
    HIT.replace("40.500", "123456.789"),
    MISS.replace("811", "129279"),
]


def test_templates_and_keys_give_the_same_rows(monkeypatch: pytest.MonkeyPatch):
    lines = [CONF_HIT, HIT, CONF_LOST, LOST, FOLD, MISS, *REPAIRS]
    log = "\n".join(lines)
    read = legacy.fast
    taken = []
    monkeypatch.setattr(legacy, "fast", lambda chunk: taken.append(read(chunk)) or taken[-1])
    fast = parse(log)
    columns, left = taken[0]
    # The one number too long for a template went the other way.
    assert len(columns["line"]) == len(lines) - 1 and left.tolist() == [lines.index(REPAIRS[6])]
    by_key_only(monkeypatch)
    slow = parse(log)
    assert fast.cycles.equals(slow.cycles) and fast.cycles.height == len(lines) - 2


def test_every_byte_of_a_kinds_name_counts():
    """Bytes between the words that tell the kinds apart and the first hole."""
    for line in (CONF_HIT, HIT, FOLD, MISS):
        for at in range(8, line.index("=")):
            changed = line[:at] + "\x7f" + line[at + 1 :]
            cycles = parse(f"{MISS}\n{changed}\n{FOLD}").cycles
            assert cycles.filter(pl.col("line") == 2)["outcome"].to_list() in ([], ["unknown"])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_changed_byte_is_judged_alike(data: st.DataObject):
    line = data.draw(st.sampled_from([CONF_HIT, HIT, LOST, FOLD, MISS]))
    at = data.draw(st.integers(9, len(line) - 1))
    byte = data.draw(st.sampled_from("0159 .=-amx\r"))
    log = f"{MISS}\n{line[:at]}{byte}{line[at + 1 :]}\n{FOLD}"
    fast = parse(log)
    with pytest.MonkeyPatch.context() as patch:
        by_key_only(patch)
        slow = parse(log)
    assert fast.cycles.equals(slow.cycles) and fast.refused.equals(slow.refused)
    assert fast.runs["unfit_lines"].equals(slow.runs["unfit_lines"])
