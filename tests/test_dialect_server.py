"""ds4-server: requests, their times, and whose the cycles between their lines are."""

from __future__ import annotations

import pytest
from parsed import FOLD, IMITATIONS, MISS, START, parse

STAMP = "0102 03:04:05 ds4-server: "


def start(prompt: int, cached: int = 0, flags: str = "", kind: str = "chat") -> str:
    return f"{STAMP}{kind} ctx={cached}..{prompt}:{prompt - cached}{flags} prompt start"


def done(prompt: int, seconds: float, cached: int = 0, flags: str = "") -> str:
    return f"{STAMP}chat ctx={cached}..{prompt}:{prompt - cached}{flags} prompt done {seconds:.3f}s"


def chunk(prompt: int, since: int, gen: int, seconds: float, flags: str = "") -> str:
    return (
        f"{STAMP}chat ctx={prompt + since}..{prompt + gen}:{gen - since} gen={gen}{flags} "
        f"decoding chunk=40.00 t/s avg=41.50 t/s {seconds:.3f}s"
    )


def finish(
    prompt: int, gen: int, seconds: float, end: str = "finish=stop", cached: int = 0,
    flags: str = "", kind: str = "chat",
) -> str:  # fmt: skip
    span = f"{cached}..{prompt}:{prompt - cached}"
    return f"{STAMP}{kind} ctx={span} gen={gen}{flags} {end} {seconds:.3f}s"


def test_one_request():
    log = parse(
        "\n".join(
            [
                start(500, cached=100, flags=" TOOLS"),
                f"{STAMP}chat ctx=100..500:400 TOOLS prefill chunk 400/400 (100.0%) "
                "chunk=300.00 t/s avg=290.50 t/s 1.400s",
                done(500, 1.5, cached=100, flags=" TOOLS"),
                chunk(500, 0, 50, 1.25, " TOOLS THINKING"),
                chunk(500, 50, 62, 1.55, " TOOLS DSML_START"),
                finish(500, 62, 3.06, "finish=tool_calls", 100, " TOOLS DSML_START DSML_END"),
            ]
        )
    )
    (request,) = log.requests.iter_rows(named=True)
    assert (request["kind"], request["finish"], request["error"]) == ("chat", "tool_calls", None)
    assert request["flags"] == ["TOOLS", "THINKING", "DSML_START", "DSML_END"]
    assert (request["prompt_tokens"], request["cached_tokens"]) == (500, 100)
    assert (request["generated_tokens"], request["tokens_source"]) == (62, "engine")
    assert (request["prefill_ms"], request["prefill_tokens_per_s"]) == (1500.0, 290.5)
    # The last chunk covers all 62 tokens: its seconds since the prompt was done.
    assert (request["decode_ms"], request["decode_tokens_per_s"]) == (1550.0, 41.5)
    assert (request["started_at"], request["overlapped"]) == ("0102 03:04:05", False)
    assert (request["first_line"], request["last_line"]) == (1, 6)


def test_without_a_covering_chunk_decode_is_the_rest_of_the_request():
    log = parse("\n".join([start(9), done(9, 0.5), chunk(9, 0, 50, 1.25), finish(9, 60, 2.25)]))
    (request,) = log.requests.iter_rows(named=True)
    assert request["decode_ms"] == 1750.0
    assert request["decode_tokens_per_s"] == pytest.approx(60 / 1.75)


def test_an_error_can_say_anything():
    text = 'no "room" ds4: mtp spec miss first draft=5'
    log = parse("\n".join([start(9), finish(9, 3, 2.0, f'finish=error error="{text}"')]))
    (request,) = log.requests.iter_rows(named=True)
    assert (request["finish"], request["error"]) == ("error", text)
    assert log.cycles.height == 0


@pytest.mark.parametrize("text", IMITATIONS)
def test_an_error_that_quotes_start_up_text_begins_no_run(text: str):
    end = finish(9, 3, 2.0, f'finish=error error="{text}"')
    log = parse("\n".join([START, start(9), MISS, end, start(20), MISS, finish(20, 1, 1.0)]))
    assert log.runs.height == 1 and log.run["unfit_lines"] == 0
    assert log.requests["error"].to_list() == [text, None]
    assert log.cycles["request_id"].to_list() == [0, 1]
    assert [fact["name"] for fact in log.run["facts"]] == ["machine", "device"]


def test_a_client_that_left_ends_its_request():
    gone = f"{STAMP}chat ctx=0..9:9 stream closed during prefill"
    log = parse("\n".join([start(9), gone, start(20), MISS, finish(20, 1, 1.0)]))
    assert log.requests["finish"].to_list() == ["error", "stop"]
    assert log.requests["overlapped"].to_list() == [False, False]
    assert log.cycles["request_id"].to_list() == [1]


def test_cycles_belong_to_the_open_request():
    log = parse(
        "\n".join(
            [
                f"{STAMP}listening on http://127.0.0.1:8000",
                MISS,
                start(9), MISS, FOLD, finish(9, 3, 1.0),
                FOLD,
                start(9), MISS, finish(9, 1, 1.0),
                start(9, kind="completion"), FOLD,
            ]
        )
    )  # fmt: skip
    assert log.cycles["request_id"].to_list() == [None, 0, 0, None, 1, 2]
    assert log.requests["kind"].to_list() == ["chat", "chat", "completion"]
    assert log.requests["finish"].to_list() == ["stop", "stop", None]
    assert log.requests["generated_tokens"].to_list() == [3, 1, None]
    assert log.parser.request_count == 3


def test_cycles_of_overlapping_requests_belong_to_none():
    log = parse(
        "\n".join(
            [
                start(9), MISS,
                start(20), MISS, FOLD,
                finish(9, 3, 1.0), FOLD,
                finish(20, 4, 1.0),
                start(30), MISS, finish(30, 1, 1.0),
            ]
        )
    )  # fmt: skip
    assert log.cycles["request_id"].to_list() == [0, None, None, 1, 2]
    assert log.requests["overlapped"].to_list() == [True, True, False]
    assert log.requests["generated_tokens"].to_list() == [3, 4, 1]


def test_equal_prompts_that_overlap_end_in_order():
    log = parse(
        "\n".join(
            [start(9), start(9), chunk(9, 0, 50, 1.0), finish(9, 60, 2.0), finish(9, 70, 3.0)]
        )
    )
    assert log.requests["generated_tokens"].to_list() == [60, 70]
    assert log.requests["overlapped"].to_list() == [True, True]


def test_a_request_whose_start_is_not_in_the_log():
    log = parse("\n".join([MISS, finish(9, 3, 1.0), start(9), MISS, finish(9, 1, 1.0)]))
    assert log.requests["generated_tokens"].to_list() == [None, 3, 1]
    assert log.requests["overlapped"].to_list() == [None, None, False]
    assert log.cycles["request_id"].to_list() == [0, 2]


def test_a_new_run_closes_what_was_open():
    log = parse("\n".join([START, start(9), MISS, START, start(9), MISS, finish(9, 1, 1.0)]))
    assert log.runs.height == 2
    assert log.requests["finish"].to_list() == [None, "stop"]
    assert log.requests["run_id"].to_list() == ["log-0", "log-1"]
    assert log.cycles["request_id"].to_list() == [0, 0]
    assert log.requests["overlapped"].to_list() == [False, False]


def test_a_given_count_is_not_for_a_request_that_was_counted():
    log = parse("\n".join([start(9), MISS, finish(9, 5, 1.0)]), tokens=9)
    assert log.requests["generated_tokens"].to_list() == [5] and not log.parser.tokens_used
    assert log.run["tokens_exact"] is None and log.run["unlogged_cycles"] == 0
