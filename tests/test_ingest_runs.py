"""Runs and CLI requests: where they begin, what is known of them, and what dark cycles prove."""

from __future__ import annotations

import pytest
from parsed import CONF_HIT, CONF_LOST, FOLD, HIT, LOST, MISS, SPEED, START, parse

DRAFTER = "ds4: MTP support model loaded: /models/草稿 v2.gguf (draft=2)"
TEN = [FOLD, *[CONF_HIT, HIT] * 2, *[CONF_LOST, LOST] * 2]


def test_a_startup_line_after_a_cycle_begins_a_run():
    log = parse(
        "\n".join([DRAFTER, START, MISS, SPEED, "ds4: warming mapped pages: 8 GiB", START, FOLD])
    )
    assert log.runs["first_line"].to_list() == [1, 5]
    assert log.runs["last_line"].to_list() == [4, 7] and log.runs["lines"].to_list() == [4, 3]
    assert log.cycles["run_id"].to_list() == ["log-0", "log-1"]
    assert log.cycles["cycle"].to_list() == [0, 0]
    assert log.runs["drafter"].to_list() == ["/models/草稿 v2.gguf", None]
    assert log.runs["ignored_lines"].to_list() == [0, 0]
    assert log.parser.run_count == 2 and log.parser.request_count == 2


@pytest.mark.parametrize(
    "line",
    [
        "ds4: mtp spec seq miss at=1 model loaded: context buffers ctx=99 backend=cuda",
        "ds4: DSpark spec skip budget loaded: x",
        "ds4: DSpark scheduler loaded: x",
        "ds4: Qwen MTP scheduler loaded: x",
        "ds4: Qwen graph failed at loaded: x",
    ],
)
def test_a_line_of_an_engine_at_work_begins_no_run(line: str):
    log = parse("\n".join([START, MISS, line, MISS]))
    assert log.runs.height == 1 and (log.run["ctx"], log.run["backend"]) == (None, "metal")


@pytest.mark.parametrize("of", ["MTP", "DSpark"])
def test_a_drafter_that_is_loaded_begins_a_run(of: str):
    log = parse("\n".join([MISS, f"ds4: {of} support model loaded: d.gguf (draft=2)", MISS]))
    assert log.runs["drafter"].to_list() == [None, "d.gguf"]


def test_startup_lines_together_are_one_run():
    log = parse("\n".join([DRAFTER, START, "ds4: warming up", DRAFTER, MISS]))
    assert log.runs.height == 1


def test_a_notice_in_the_middle_is_no_startup():
    log = parse(
        "\n".join([START, MISS, "ds4: Metal model range 3.5..3.6 GiB is not covered", MISS])
    )
    assert log.runs.height == 1 and log.run["ignored_lines"] == 1


def test_facts_with_their_lines():
    log = parse(
        "\n".join(
            [
                DRAFTER,
                START,
                "ds4: context buffers 400.00 MiB (ctx=16384, backend=metal, prefill_chunk=4096)",
                FOLD,
            ]
        )
    )
    run = log.run
    assert (run["machine"], run["backend"], run["ctx"]) == (
        "Apple M4 Pro, 64.00 GiB RAM", "metal", 16384,
    )  # fmt: skip
    assert (run["draft_depth"], run["threshold"], run["dialects"]) == (2, 3.0, ["legacy"])
    assert {"name": "ctx", "value": "16384", "line": 3} in run["facts"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([DRAFTER, START, SPEED], True),
        ([DRAFTER.replace("draft=2", "draft=1"), START, SPEED], False),
        ([START, SPEED], False),
        ([DRAFTER, START, MISS, SPEED], False),
        ([SPEED], None),
        ([DRAFTER, START], None),
    ],
)
def test_a_baseline_that_drafts(lines: list[str], expected: bool | None):
    assert parse("\n".join(lines)).run["baseline_drafts"] is expected


def test_each_speed_line_of_a_repl_ends_a_request():
    log = parse("\n".join([START, MISS, FOLD, SPEED, MISS, SPEED.replace("34.00", "0.00"), FOLD]))
    assert log.runs.height == 1
    assert log.cycles["request_id"].to_list() == [0, 0, 1, 2]
    assert log.cycles["cycle"].to_list() == [0, 1, 2, 3]
    assert log.requests["kind"].to_list() == ["cli", "cli", None]
    # 0.00 t/s: there was nothing to divide.
    assert log.requests["decode_tokens_per_s"].to_list() == [34.0, None, None]
    assert log.requests["first_line"].to_list() == [2, 5, 7]
    assert log.requests["last_line"].to_list() == [4, 6, 7]


def test_a_given_count_makes_the_decode_time():
    log = parse("\n".join([START, SPEED]), tokens=170)
    (request,) = log.requests.iter_rows(named=True)
    assert request["decode_ms"] == pytest.approx(5000.0)
    assert (request["generated_tokens"], request["tokens_source"]) == (170, "given")
    assert log.run["tokens_exact"] == 170 and log.parser.tokens_used


def test_without_a_count_nothing_is_made_up():
    (request,) = parse("\n".join([START, MISS, SPEED]), max_tokens=99).requests.iter_rows(
        named=True
    )
    assert request["generated_tokens"] is None and request["decode_ms"] is None
    assert request["decode_tokens_per_s"] == 34.0


def test_a_limit_is_no_count():
    log = parse("\n".join([START, *TEN, SPEED]), max_tokens=17)
    assert (log.run["max_tokens"], log.run["tokens_exact"]) == (17, None)
    assert log.cycles.height == 5


def test_a_count_is_for_one_request():
    for lines in ([FOLD, SPEED, FOLD, SPEED], [START, FOLD, SPEED, START, FOLD, SPEED]):
        log = parse("\n".join(lines), tokens=17)
        assert log.cycles.height == 2 and not log.parser.tokens_used
        assert log.runs["tokens_exact"].null_count() == log.runs.height


def test_dark_cycles():
    log = parse("\n".join([START, *TEN, SPEED]), tokens=17)
    assert log.cycles.height == 10 and log.cycles["emitted"].sum() == 17
    assert log.run["unlogged_cycles"] == 5
    dark = log.cycles.tail(5)
    assert dark["outcome"].to_list() == ["unlogged"] * 5
    assert dark["cycle"].to_list() == [5, 6, 7, 8, 9] and dark["request_id"].to_list() == [0] * 5
    told = {
        "run_id",
        "request_id",
        "cycle",
        "dialect",
        "outcome",
        "verified",
        "accepted",
        "emitted",
    }
    for name in dark.columns:
        assert dark[name].null_count() == (0 if name in told else 5), name
    assert (dark["verified"].sum(), dark["accepted"].sum(), dark["emitted"].sum()) == (0, 0, 5)


SAMPLE = "ds4: mtp timing sample drafted=3 committed=1 resampled=1 total=88.000 ms"
QWEN = "ds4: Qwen MTP timing drafted=7 accepted=3 target_tokens=4 cycle=91.250 ms verifier=block"


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([*TEN, MISS], id="misses are logged"),
        pytest.param([CONF_HIT, CONF_LOST], id="no timing lines"),
        pytest.param([SAMPLE], id="sampling"),
        pytest.param([*TEN, SAMPLE], id="some sampling"),
        pytest.param([QWEN], id="another dialect"),
        pytest.param([*TEN, HIT[:40]], id="a torn line"),
        pytest.param([*TEN, "ds4: mtp timing odd total=3.0 ms"], id="an unknown kind"),
        pytest.param([*TEN, HIT.replace("committed=2", "committed=9")], id="a refused row"),
        pytest.param([], id="an off run"),
    ],
)
def test_no_dark_cycles_without_proof(lines: list[str]):
    log = parse("\n".join([START, *lines, SPEED]), tokens=40)
    assert "unlogged" not in log.outcomes() and log.run["unlogged_cycles"] == 0


@pytest.mark.parametrize("tail", ["", "ds4: prefill: 81.25 t/s, gener"])
def test_no_dark_cycles_of_a_log_that_was_cut(tail: str):
    log = parse("\n".join([START, *TEN, tail]), tokens=17)
    assert log.cycles.height == 5 and log.run["unlogged_cycles"] == 0
    assert log.run["hidden_cycles"] is True
    assert log.requests["generated_tokens"].to_list() == [17]


@pytest.mark.parametrize("tokens", [2**53 + 1, 2**63 - 1])
def test_the_greatest_counts_raise_nothing(tokens: int):
    for lines in ([START, *TEN, SPEED], [START, *TEN], [START, MISS], [START, SPEED], []):
        log = parse("\n".join(lines), tokens=tokens)
        assert "unlogged" not in log.outcomes() and log.run["unlogged_cycles"] == 0
        assert log.requests["generated_tokens"].to_list() == [tokens] * log.requests.height
    header = '{"tauscope":1,"kind":"run","run":"r"}\n{"tauscope":1,"kind":"request","run":"r",'
    assert parse(header + '"request":0}', tokens=tokens).run["tokens_exact"] == tokens


@pytest.mark.parametrize("tokens", [12, 11, 3, 0])
def test_no_dark_cycles_when_nothing_is_missing(tokens: int):
    log = parse("\n".join([START, *TEN, SPEED]), tokens=tokens)
    assert log.cycles.height == 5 and log.run["unlogged_cycles"] == 0


def test_an_empty_log_is_one_run_of_nothing():
    for log in (b"", b"\n\n", "你好\n".encode()):
        parsed = parse(log)
        assert parsed.runs.height == 1 and parsed.requests.height == 0 and parsed.cycles.height == 0
