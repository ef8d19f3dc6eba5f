"""Native traces that are torn, mixed, headless, from later versions or hostile."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tauscope.ingest.native import parse_native
from tauscope.ingest.native_runs import NativeReader, Rows
from tauscope.trace import Trace

HEADER = (
    '{"tauscope":1,"kind":"run","run":"a","t_ms":0.000,"pid":7,"model":"m","threshold":3.000000}'
)
BEGIN = '{"tauscope":1,"kind":"request","run":"a","t_ms":1.000,"request":0,"prompt_tokens":5}'
BET = (
    '{"tauscope":1,"kind":"cycle","run":"a","t_ms":2.000,"request":0,"drafted":1,'
    '"free_checked":0,"free_accepted":0,"verified":1,"accepted":1,"resampled":0,"emitted":2,'
    '"truncated":false,"wall_ms":28.500}'
)
END = '{"tauscope":1,"kind":"end","run":"a","t_ms":3.000,"request":0,"generated_tokens":2}'


def frame(*lines: str) -> pl.DataFrame:
    return pl.DataFrame(
        {"line": range(1, len(lines) + 1), "text": lines},
        schema={"line": pl.Int64, "text": pl.String},
    )


def read(*lines: str) -> tuple[NativeReader, Rows]:
    reader = NativeReader("log")
    return reader, reader.take(parse_native(frame(*lines)))


def with_field(line: str, **fields: object) -> str:
    return json.dumps(json.loads(line) | fields, separators=(",", ":"))


def of(runs: pl.DataFrame, *names: str) -> list[tuple]:
    return runs.select(names).rows()


def test_a_whole_trace() -> None:
    _, got = read(HEADER, BEGIN, BET, END)
    assert of(got.cycles, "run_id", "request_id", "cycle", "outcome", "emitted", "wall_ms") == [
        ("log-0", 0, 0, "all_accepted", 2, 28.5)
    ]
    assert of(got.requests, "prompt_tokens", "generated_tokens", "tokens_source") == [
        (5, 2, "engine")
    ]
    assert of(got.runs, "lines", "unfit_lines", "model") == [(4, 0, "m")]


@pytest.mark.parametrize("cut", range(1, len(BET), 4))
def test_a_torn_last_line_is_counted_never_half_read(cut: int) -> None:
    reader, got = read(HEADER, BEGIN, BET, BET[:cut])
    assert got.cycles.height == 1
    seen = got.runs["unfit_lines"].item()
    # Shorter than the marker it can't be told from any other text.
    assert seen == (1 if cut >= len('{"tauscope":') else 0)
    assert reader.orphans.height == 0


@pytest.mark.parametrize("cut", [12, 40, len(BET) - 1])
def test_a_line_glued_to_a_torn_one_is_read(cut: int) -> None:
    _, got = read(HEADER, BET[:cut] + BET, BET + END)
    assert of(got.cycles, "line") == [(2,), (3,)]
    assert of(got.runs, "unfit_lines", "lines") == [(1, 3)]
    assert got.requests["generated_tokens"].item() == 2


def test_text_before_a_record_is_somebody_elses() -> None:
    _, got = read(HEADER, 'model said: "hi' + BET, "plain text", "ds4: mtp spec miss first draft=5")
    assert of(got.cycles, "line") == [(2,)]
    assert of(got.runs, "unfit_lines", "lines") == [(0, 2)]


def test_two_processes_in_one_file_come_apart() -> None:
    other = [line.replace('"run":"a"', '"run":"b"') for line in (HEADER, BEGIN, BET, END)]
    mixed = [HEADER, other[0], BEGIN, BET, other[1], other[2], BET, END, other[2], other[3]]
    _, got = read(*mixed)
    assert of(got.runs, "run_id", "run_index", "lines", "first_line", "last_line") == [
        ("log-0", 0, 5, 1, 8),
        ("log-1", 1, 5, 2, 10),
    ]
    assert of(got.cycles, "run_id", "cycle", "line") == [
        ("log-0", 0, 4),
        ("log-1", 0, 6),
        ("log-0", 1, 7),
        ("log-1", 1, 9),
    ]
    assert got.requests.height == 2


def test_a_missing_header_is_said_and_nothing_else_lost() -> None:
    _, got = read(BEGIN, BET, END)
    row = got.runs.row(0, named=True)
    assert row["model"] is None
    assert row["facts"] == [{"name": "header", "value": "missing", "line": None}]
    assert of(got.cycles, "emitted") == [(2,)]


def test_the_same_token_twice_is_two_runs() -> None:
    _, got = read(HEADER, BEGIN, BET, END, HEADER, BEGIN, BET)
    assert of(got.cycles, "run_id", "cycle") == [("log-0", 0), ("log-1", 0)]
    assert of(got.requests, "run_id", "generated_tokens") == [("log-0", 2), ("log-1", None)]


def test_a_request_without_its_start_or_end() -> None:
    _, got = read(HEADER, BET, BET)
    assert of(got.requests, "request_id", "prompt_tokens", "generated_tokens", "tokens_source") == [
        (0, None, None, None)
    ]
    ended = with_field(END)
    ended = ended.replace(',"generated_tokens":2', "")
    _, got = read(HEADER, BET, BET, ended)
    assert of(got.requests, "generated_tokens", "tokens_source") == [(4, "cycles")]


def test_a_cycle_outside_any_request() -> None:
    _, got = read(HEADER, BET.replace('"request":0,', ""))
    assert of(got.cycles, "request_id", "emitted") == [(None, 2)]
    assert got.requests.height == 0


def test_unknown_fields_are_kept_and_nulls_are_nothing() -> None:
    line = with_field(BET, heat={"watts": [3, None]}, note="散", margin=None)
    _, got = read(
        with_field(HEADER, cores=4), with_field(BEGIN, session="x"), line, with_field(END, cost=1)
    )
    assert json.loads(got.cycles["extra"].item()) == {"heat": {"watts": [3, None]}, "note": "散"}
    assert got.cycles["margin"].item() is None
    assert json.loads(got.runs["extra"].item()) == {"cores": 4}
    assert json.loads(got.requests["extra"].item()) == {"session": "x", "cost": 1}
    assert got.runs["unfit_lines"].item() == 0


def test_an_outcome_of_a_later_version() -> None:
    undecided = with_field(BET, verified=0, accepted=0, emitted=1, outcome='deferred"')
    _, got = read(HEADER, undecided)
    assert got.cycles["outcome"].item() == "unknown"
    assert json.loads(got.cycles["extra"].item()) == {"outcome": "deferred?"}


def test_a_format_newer_than_ours_is_kept_and_not_guessed() -> None:
    line = with_field(BET, tauscope=2, emitted="two")
    _, got = read(HEADER, line, BET)
    assert of(got.cycles, "outcome", "emitted", "request_id") == [
        ("unknown", None, 0),
        ("all_accepted", 2, 0),
    ]
    assert json.loads(got.cycles["extra"][0])["emitted"] == "two"


def test_an_unknown_kind_is_named() -> None:
    event = '{"tauscope":1,"kind":"pause","run":"a","why":"hot"}'
    _, got = read(HEADER, event, event, BET)
    assert got.runs["unknown_kinds"].to_list() == [["native pause"]]
    assert got.cycles.height == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"drafted": 1.5},
        {"drafted": "one"},
        {"drafted": 3e9},
        {"wall_ms": "slow"},
        {"truncated": "perhaps"},
        {"pos": 1e300},
        {"drafted": [1]},
        {"emitted": "2"},
        {"emitted": True},
        {"wall_ms": "28.5"},
        {"wall_ms": False},
        {"margin": "nan"},
        {"threshold": "-inf"},
        {"t_ms": "inf"},
        {"margin": float("nan")},
        {"wall_ms": float("inf")},
        {"margin": 1e308},
        {"t_ms": -1e308},
        {"truncated": "true"},
        {"truncated": 1},
        {"path": 5},
        {"path": ["micro"]},
        {"request": -1},
        {"request": "0"},
        {"pos": -5},
        {"run": 5},
        {"kind": True},
        {"tauscope": "1"},
    ],
    ids=str,
)
def test_a_value_of_the_wrong_type_makes_a_line_unfit(fields: dict) -> None:
    _, got = read(HEADER, with_field(BET, **fields), BET)
    assert got.cycles.height == 1
    assert of(got.runs, "unfit_lines") == [(1,)]
    assert got.runs["unfit_examples"].item()[0]["line"] == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"decode_ms": "nan"},
        {"decode_ms": float("nan")},
        {"decode_ms": -1.0},
        {"decode_ms": 1e308},
        {"prefill_ms": "inf"},
        {"prefill_ms": -0.5},
        {"prefill_ms": 1e9},
        {"generated_tokens": -2},
        {"generated_tokens": "2"},
        {"generated_tokens": True},
        {"prompt_tokens": -1},
        {"cached_tokens": -1},
        {"request": -1},
        {"finish": 1},
    ],
    ids=str,
)
def test_numbers_of_a_request_are_checked(fields: dict) -> None:
    kind = BEGIN if {"prompt_tokens", "cached_tokens"} & set(fields) else END
    _, got = read(HEADER, BET, with_field(kind, **fields))
    assert of(got.runs, "unfit_lines") == [(1,)]
    assert of(got.requests, "generated_tokens", "prompt_tokens", "prefill_ms", "decode_ms") == [
        (None,) * 4
    ]


@pytest.mark.parametrize("fields", [{"ctx": -1}, {"draft_depth": -1}, {"pid": -1}, {"arm": 5}])
def test_numbers_of_a_header_are_checked(fields: dict) -> None:
    _, got = read(with_field(HEADER, **fields), BET)
    assert of(got.runs, "unfit_lines", "model") == [(1, None)]


def test_a_wrong_type_is_found_however_its_name_is_written() -> None:
    _, got = read(HEADER, BET.replace('"emitted":2', '"emit\\u0074ed" : "2"'), BET)
    assert of(got.runs, "unfit_lines") == [(1,)]


def test_types_of_what_is_not_known_are_free() -> None:
    line = with_field(BET, more={"emitted": "2", "wall_ms": True}, note='"emitted":"2"\\')
    _, got = read(HEADER, line)
    assert of(got.runs, "unfit_lines") == [(0,)]
    assert of(got.cycles, "emitted", "wall_ms") == [(2, 28.5)]


def test_empty_texts_are_nothing() -> None:
    begin = with_field(BEGIN, workload="", prompt_id=" ", engine_id="")
    _, got = read(with_field(HEADER, arm="", machine="\t"), begin, with_field(BET, path=""))
    assert of(got.runs, "arm", "machine", "unfit_lines") == [(None, None, 0)]
    assert of(got.requests, "workload", "prompt_id") == [(None, None)]
    assert of(got.cycles, "path") == [(None,)]


def test_a_time_that_can_not_be_is_refused() -> None:
    _, got = read(HEADER, with_field(BET, wall_ms=1e308), with_field(BET, draft_ms=-1), BET)
    assert got.cycles["wall_ms"].to_list() == [28.5]
    assert got.refused["reason"].to_list() == ["wall_ms 1e+308 is no time", "draft_ms -1.0 < 0"]


def test_counts_that_fill_their_type_are_added_without_wrapping() -> None:
    most = 2**31 - 1
    full = with_field(BET, verified=most - 1, drafted=most - 1, accepted=most - 1, emitted=most)
    _, got = read(HEADER, BEGIN, full, full, END.replace(',"generated_tokens":2', ""))
    assert of(got.requests, "generated_tokens") == [(2 * most,)]
    over = with_field(full, free_checked=most, free_accepted=most, drafted=most)
    _, got = read(HEADER, over)
    (reason,) = got.refused["reason"]
    assert reason == f"free_checked {most} + verified {most - 1} > drafted {most}"


def test_rows_that_break_the_ledger_are_refused_with_the_reason() -> None:
    _, got = read(HEADER, with_field(BET, emitted=3), with_field(BET, accepted=2, emitted=3), BET)
    assert got.cycles.height == 1
    assert got.refused["reason"].to_list() == [
        "emitted 3 is not 1 + free_accepted 0 + accepted 1 + resampled 0",
        "accepted 2 > verified 1",
    ]
    # Their cycles are missing from every count.
    assert of(got.runs, "refused_rows", "hidden_cycles") == [(2, True)]


def test_unfit_lines_before_any_run_wait_for_one() -> None:
    reader, got = read(BET[:60])
    assert got.runs.height == 0 and of(reader.orphans, "line") == [(1,)]
    got = reader.take(parse_native(frame(HEADER, BET).with_columns(pl.col("line") + 1)))
    assert of(got.runs, "unfit_lines", "lines") == [(1, 3)]
    assert reader.orphans.height == 0


def test_block_ends_change_nothing() -> None:
    other = [line.replace('"run":"a"', '"run":"b"') for line in (HEADER, BEGIN, BET, END)]
    lines = [HEADER, BEGIN, other[0], BET, BET[:50] + other[2], BET, other[2], END, HEADER, BET]
    whole = NativeReader("log").take(parse_native(frame(*lines)))
    for size in (1, 2, 3):
        reader = NativeReader("log")
        parts = [
            reader.take(parse_native(frame(*lines)[i : i + size]))
            for i in range(0, len(lines), size)
        ]
        assert pl.concat([p.cycles for p in parts]).equals(whole.cycles)
        for name, keys in (("runs", ["run_id"]), ("requests", ["run_id", "request_id"])):
            last = pl.concat([getattr(p, name) for p in parts])
            last = last.unique(keys, keep="last", maintain_order=True).sort(keys)
            assert last.equals(getattr(whole, name).sort(keys))


def test_a_large_block_keeps_its_order() -> None:
    lines = [BET.replace("2.000", f"{i}.000") for i in range(150_000)]
    assert parse_native(frame(*lines)).records["t_ms"].to_list() == list(range(150_000))


def test_an_off_arm_that_drafts_for_nothing(tmp_path: Path) -> None:
    def baseline(arm: str | None, **cycle: object) -> bool | None:
        path = tmp_path / "t.ndjson"
        path.unlink(missing_ok=True)
        with Trace(path, arm=arm) as trace:
            request = trace.begin()
            trace.record(request, drafted=0, verified=0, accepted=0, emitted=1, **cycle)
            trace.end(request)
        return read(*path.read_text().splitlines())[1].runs["baseline_drafts"].item()

    assert baseline("off", draft_ms=2.5) is True
    assert baseline("off") is False
    assert baseline(None) is False
    assert baseline("shadow", draft_ms=2.5) is None


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    evil = '"}\n{"tauscope":1,"kind":"cycle"}<script>\x1b[31m\'; DROP TABLE runs;--\x85\u2028ب'
    with Trace(path, model=evil, run='a"b\n') as trace:
        request = trace.begin(workload=evil, prompt_id="散文")
        trace.record(request, emitted=1, drafted=0, verified=0, accepted=0, path=evil)
        trace.end(request, finish="stop", error=evil)
    text = path.read_bytes().decode().split("\n")
    _, got = read(*text)
    assert got.runs["model"].item() == evil
    assert got.runs["unfit_lines"].item() == 0
    assert of(got.requests, "workload", "prompt_id", "error") == [(evil, "散文", evil)]
    assert got.cycles["path"].item() == evil


def test_random_bytes_do_no_harm() -> None:
    lines = [
        '{"tauscope":',
        '{"tauscope":}',
        '{"tauscope":1}',
        '{"tauscope":1,"kind":null,"run":null}',
        '{"tauscope":1,"kind":"cycle","run":"a",,}',
        '{"tauscope":-1,"kind":"cycle","run":"a"}',
        '{"tauscope":1,"kind":"cycle","run":"a","emitted":1e999}',
        '{"tauscope":1' + "[" * 5000,
        '{"tauscope":1,"kind":"cycle","run":"a","x":' + "[" * 5000 + "]" * 5000 + "}",
        '{"tauscope":1,"kind":"cycle","run":"a"}\x00\x00',
        '{"tauscope":1,"kind":"end","run":"a"}',
        "\x00" * 50,
        "",
    ]
    read_ = parse_native(frame(*lines))
    assert read_.unfit["line"].to_list() == [1, 2, 3, 4, 5, 6, 7, 8, 11]
    assert read_.records["line"].to_list() == [9, 10]
