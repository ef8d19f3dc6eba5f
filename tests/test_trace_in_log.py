"""The one parser reads native traces too: alone, or in the file that takes the engine's log."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from parsed import FOLD, MISS, parse

from tauscope.ingest.agree import disagreements, facts
from tauscope.ingest.importer import import_log
from tauscope.ingest.source import find
from tauscope.trace import Trace

DEVICE = "ds4: Metal device Apple M5 Max, 128.00 GiB RAM"
SPEED = "ds4: prefill: 79.63 t/s, generation: 37.76 t/s"
HIT = (
    "ds4: mtp timing micro drafted=2 committed=2 draft=2.2 ms snapshot=0.1 ms verify=26.2 ms "
    "total=28.5 ms"
)


def header(run: str = "a") -> str:
    return f'{{"tauscope":1,"kind":"run","run":"{run}","t_ms":0.000,"engine":"ds4","model":"m"}}'


def begin(run: str = "a", number: int = 0) -> str:
    return f'{{"tauscope":1,"kind":"request","run":"{run}","t_ms":1.000,"request":{number}}}'


def end(run: str = "a", number: int = 0, tokens: int = 6) -> str:
    return (
        f'{{"tauscope":1,"kind":"end","run":"{run}","t_ms":9.000,"request":{number},'
        f'"generated_tokens":{tokens}}}'
    )


def cycle(kind: str, run: str = "a", number: int = 0) -> str:
    drafted, verified, accepted, free, emitted, forwards = {
        "hit": (2, 1, 1, 1, 3, 2),
        "fold": (2, 0, 0, 1, 2, 2),
        "miss": (1, 0, 0, 0, 1, 1),
    }[kind]
    gate = ',"margin":1.250000,"threshold":3.000000' if kind == "fold" else ""
    return (
        f'{{"tauscope":1,"kind":"cycle","run":"{run}","t_ms":2.000,"request":{number},'
        f'"drafted":{drafted},"free_checked":1,"free_accepted":{free},"verified":{verified},'
        f'"accepted":{accepted},"resampled":0,"emitted":{emitted},"truncated":false,'
        f'"target_forwards":{forwards}{gate}}}'
    )


TRACE = [header(), begin(), cycle("hit"), cycle("miss"), cycle("fold"), end()]
TEXT = [HIT, MISS, FOLD, SPEED]


def log(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def of(frame: pl.DataFrame, *names: str) -> list[tuple]:
    return frame.select(names).rows()


def test_a_trace_alone() -> None:
    got = parse(log(*TRACE))
    assert of(got.cycles, "run_id", "cycle", "line", "outcome") == [
        ("log-0", 0, 3, "all_accepted"),
        ("log-0", 1, 4, "missed"),
        ("log-0", 2, 5, "folded"),
    ]
    assert of(got.runs, "run_id", "run_index", "dialects", "lines", "unfit_lines") == [
        ("log-0", 0, ["native"], 6, 0)
    ]
    assert of(got.requests, "request_id", "kind", "generated_tokens") == [(0, "native", 6)]
    assert (got.parser.run_count, got.parser.request_count) == (1, 1)


def test_a_torn_trace_that_goes_on() -> None:
    torn = cycle("hit")[:70]
    got = parse(log(*TRACE[:3]).encode() + torn.encode() + log(*TRACE[3:]).encode())
    assert got.outcomes() == ["all_accepted", "missed", "folded"]
    assert of(got.runs, "unfit_lines") == [(1,)]
    got = parse(log(*TRACE[:3]).encode() + torn.encode())
    assert of(got.runs, "unfit_lines", "lines") == [(1, 4)]


def test_unfit_lines_of_a_log_without_any_run_are_counted() -> None:
    got = parse(cycle("hit")[:70].encode())
    assert of(got.runs, "run_id", "unfit_lines", "dialects") == [("log-0", 1, [])]


def test_the_trace_counts_and_the_log_beside_it_is_a_check() -> None:
    got = parse(log(DEVICE, header(), HIT, MISS, FOLD, *TRACE[1:], SPEED))
    assert set(got.cycles["dialect"]) == {"native"} and got.cycles.height == 3
    assert of(got.runs, "run_id", "machine", "model") == [
        ("log-0", "Apple M5 Max, 128.00 GiB RAM", "m")
    ]
    assert of(got.requests, "kind") == [("native",)]
    ((run_id, text),) = got.parser.checks()
    assert run_id == "log-0" and text["outcome"].to_list() == [
        "all_accepted", "missed", "folded",
    ]  # fmt: skip
    assert disagreements(got.cycles, text).height == 0


def test_what_the_log_says_differently_is_found() -> None:
    got = parse(log(header(), HIT, MISS, FOLD, begin(), *[cycle("hit")] * 2, cycle("fold"), end()))
    ((_, text),) = got.parser.checks()
    found = disagreements(got.cycles, text)
    assert of(found.filter(pl.col("field") == "outcome"), "cycle", "native", "log") == [
        (1, "all_accepted", "missed")
    ]
    assert facts(found, text.height)[0]["value"].endswith("over 3 cycles of the log")


def test_a_run_of_text_before_the_trace_is_kept() -> None:
    got = parse(log(DEVICE, *TEXT, DEVICE, header(), *TEXT[:3], *TRACE[1:]))
    assert of(got.runs, "run_id", "dialects") == [("log-0", ["legacy"]), ("log-1", ["native"])]
    assert (
        of(got.cycles, "run_id", "dialect") == [("log-0", "legacy")] * 3 + [("log-1", "native")] * 3
    )


def test_a_run_of_text_after_the_trace_is_kept() -> None:
    got = parse(log(DEVICE, *TRACE, DEVICE, *TEXT))
    assert of(got.runs, "run_id", "dialects") == [("log-0", ["native"]), ("log-1", ["legacy"])]
    assert sorted(got.cycles["run_id"].to_list()) == ["log-0"] * 3 + ["log-1"] * 3
    assert got.parser.checks() == []


def test_two_traced_runs_in_one_log() -> None:
    second = [line.replace('"run":"a"', '"run":"b"') for line in TRACE[1:]]
    got = parse(
        log(DEVICE, header(), HIT, *TRACE[1:], SPEED, DEVICE, header("b"), MISS, *second, SPEED)
    )
    assert of(got.runs, "run_id", "dialects") == [("log-0", ["native"]), ("log-1", ["native"])]
    assert [(run, text.height) for run, text in got.parser.checks()] == [("log-0", 1), ("log-1", 1)]
    assert got.cycles.height == 6


def test_engine_lines_quoted_inside_a_record_are_text() -> None:
    quoting = cycle("hit").replace('"truncated"', f'"path":"x {MISS}","truncated"')
    got = parse(log(header(), begin(), quoting, end(tokens=3)))
    assert got.outcomes() == ["all_accepted"]
    assert got.cycles["path"].item() == f"x {MISS}"


def test_a_log_line_with_a_record_glued_to_it() -> None:
    got = parse(log(DEVICE, HIT + header("b"), *TRACE))
    assert of(got.cycles.filter(pl.col("dialect") == "legacy"), "line") == [(2,)]
    assert of(got.cycles.filter(pl.col("dialect") == "native"), "line") == [(5,), (6,), (7,)]


def test_a_given_count_is_taken_where_the_engine_has_none() -> None:
    plain = parse(log(*TRACE), tokens=7, max_tokens=9)
    assert of(plain.requests, "generated_tokens", "tokens_source") == [(6, "engine")]
    assert of(plain.runs, "tokens_exact", "max_tokens") == [(7, 9)]
    assert not plain.parser.tokens_used
    counted = parse(log(*TRACE[:-1], end().replace(',"generated_tokens":6', "")), tokens=7)
    assert of(counted.requests, "generated_tokens", "tokens_source") == [(7, "given")]
    assert counted.parser.tokens_used


MIXED = log(
    DEVICE, *TEXT, DEVICE, header(), HIT, begin(), cycle("hit"), MISS, cycle("miss"),
    header("b"), cycle("fold", "b"), cycle("fold")[:80] + cycle("fold"), FOLD, end(), end("b"),
    DEVICE, FOLD, "text", SPEED, DEVICE, begin("c"), cycle("hit", "c"),
).encode()  # fmt: skip


CUT = st.integers(0, len(MIXED))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(CUT, CUT), max_size=8), st.binary(max_size=4), st.tuples(CUT, CUT))
def test_no_bytes_make_it_raise(swaps: list, noise: bytes, cuts: tuple) -> None:
    data = MIXED
    for a, b in swaps:
        low, high = sorted((a, b))
        data = data[:low] + noise + data[high:] if high - low < 300 else data[high:] + data[:low]
    got = parse(data, cuts=cuts)
    assert got.runs["run_id"].is_unique().all()
    assert set(got.cycles["run_id"]) <= set(got.runs["run_id"])
    assert set(got.requests["run_id"]) <= set(got.runs["run_id"])


@settings(max_examples=25, deadline=None)
@given(st.lists(CUT, max_size=6))
def test_block_ends_change_nothing(cuts: list[int]) -> None:
    whole, cut = parse(MIXED), parse(MIXED, cuts=tuple(cuts))
    order = ["run_id", "cycle"]
    assert cut.cycles.sort(order).equals(whole.cycles.sort(order))
    assert cut.requests.equals(whole.requests)
    names = ["run_id", "dialects", "first_line", "last_line", "unfit_lines", "model"]
    assert of(cut.runs, *names) == of(whole.runs, *names)
    assert [r for r, _ in cut.parser.checks()] == [r for r, _ in whole.parser.checks()]


def test_an_import_keeps_what_the_log_says_differently(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    path.write_text(log(DEVICE, header(), HIT, FOLD, begin(), cycle("hit"), cycle("hit"), end()))
    (found,) = find([path])
    done = import_log(found, store)
    assert done.outcomes == {"all_accepted": 2}
    told = [fact["value"] for fact in done.runs["facts"].item() if fact["name"].startswith("log_")]
    assert told[0].endswith("disagreements over 2 cycles of the log")
    assert "cycle 1: outcome all_accepted in the trace, folded in the log" in told
    assert import_log(found, store).status == "unchanged"


def test_a_real_log_written_as_a_trace_agrees_with_itself(corpus: Path, tmp_path: Path) -> None:
    real = parse((corpus / "ds4-mtp-chat.log").read_bytes())
    path = tmp_path / "t.ndjson"
    names = ["path", "drafted", "free_checked", "free_accepted", "verified", "accepted",
             "resampled", "emitted", "truncated", "target_forwards", "replayed", "margin",
             "threshold", "draft_token", "next_token", "draft_ms", "snapshot_ms", "verify_ms",
             "commit_ms", "decode_ms"]  # fmt: skip
    with Trace(path) as trace:
        request = trace.begin()
        for row in real.cycles.select("outcome", *names).to_dicts():
            trace.record(request, **row)
        trace.end(request)
    native = parse(path.read_bytes())
    assert disagreements(native.cycles, real.cycles).height == 0
    assert native.cycles["outcome"].equals(real.cycles["outcome"])
    assert native.cycles.select(names).equals(real.cycles.select(names))
    # Without the lines of the misses, as DS4_MTP_TIMING alone prints them.
    timing = real.cycles.filter(pl.col("outcome") != "missed")
    assert disagreements(native.cycles, timing).height == 0
    assert disagreements(native.cycles, timing.filter(pl.col("cycle") != 60)).height == 1
