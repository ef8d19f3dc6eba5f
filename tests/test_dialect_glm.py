"""Continuous depth-1: one pass a cycle, and quoted tokens that can hold anything."""

from __future__ import annotations

import pytest
from parsed import IMITATIONS, MISS, SPEED, START, parse


def line(verdict: str, draft: str = "a", true: str = "b") -> str:
    return (
        f"ds4: glm mtp cycle: verify2 52.5 ms, head+draft 3.25 ms, "
        f"{verdict} (draft 17 '{draft}' vs true 18 '{true}')"
    )


@pytest.mark.parametrize(("verdict", "accepted"), [("ACCEPT", 1), ("reject", 0)])
def test_counts_and_times(verdict: str, accepted: int):
    row = parse(line(verdict)).cycle()
    assert row["outcome"] == ("all_accepted" if accepted else "rejected")
    assert (row["drafted"], row["verified"], row["accepted"]) == (1, 1, accepted)
    assert (row["free_checked"], row["free_accepted"]) == (0, 0)
    assert (row["emitted"], row["target_forwards"]) == (1 + accepted, 1)
    assert (row["verify_ms"], row["draft_ms"], row["wall_ms"]) == (52.5, 3.25, None)
    assert (row["draft_token"], row["next_token"], row["dialect"]) == (17, 18, "glm")


@pytest.mark.parametrize(
    "text", ["'", "')", "你好", "a\tb", MISS, "x\ry", "ds4: ", "reject (draft 1 'a'", "\x1b[0m"]
)
def test_quoted_text_can_hold_anything(text: str):
    for log in (parse(line("ACCEPT", draft=text)), parse(line("ACCEPT", true=text))):
        assert log.outcomes() == ["all_accepted"]
        assert log.cycle()["draft_token"] == 17 and log.run["unfit_lines"] == 0


@pytest.mark.parametrize("text", IMITATIONS)
def test_quoted_start_up_text_begins_no_run(text: str):
    log = parse(
        "\n".join([START, line("ACCEPT"), line("reject", true=text), line("ACCEPT"), SPEED])
    )
    assert log.outcomes() == ["all_accepted", "rejected", "all_accepted"]
    assert log.runs.height == 1 and log.requests.height == 1 and log.run["unfit_lines"] == 0
    assert [fact["name"] for fact in log.run["facts"]] == ["machine", "device"]
    assert log.requests["decode_tokens_per_s"].to_list() == [34.0]


def test_four_accepted_of_five():
    texts = ["a", "model loaded: x", "a (loaded)", MISS, SPEED]
    lines = [line("reject" if text == texts[1] else "ACCEPT", true=text) for text in texts]
    log = parse("\n".join([START, *lines, SPEED]))
    assert log.cycles["accepted"].to_list() == [1, 0, 1, 1, 1]
    assert log.cycles["emitted"].sum() == 9 and log.runs.height == 1  # τ 9/5


def test_a_quoted_newline_breaks_the_line_but_not_the_cycle():
    log = parse(line("reject", draft="\n") + "\n" + line("ACCEPT"))
    assert log.outcomes() == ["rejected", "all_accepted"]
    assert log.cycles["next_token"].to_list() == [None, 18]


def test_an_imitated_second_half_leaves_the_true_token_unknown():
    row = parse(line("reject", draft="' vs true 99 '")).cycle()
    assert row["outcome"] == "rejected" and row["next_token"] is None


def test_a_torn_line_is_shown():
    log = parse("ds4: glm mtp cycle: verify2 52.5 ms, head+dra")
    assert log.cycles.height == 0 and log.run["unfit_lines"] == 1
