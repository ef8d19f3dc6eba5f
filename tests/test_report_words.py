"""How numbers and labels are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_stores import HOSTILE

from tauscope import schema
from tauscope.figures import answers, cells, palette, words
from tauscope.figures.tabling import Cell, Head, Table


@pytest.mark.parametrize(
    ("speedup", "text"), [(1.094, "+9.4 %"), (0.963, "−3.7 %"), (1.0, "+0.0 %"), (None, "–")]
)
def test_a_speedup_is_a_change(speedup: float | None, text: str) -> None:
    assert words.change(speedup) == text


def test_spans_and_lists() -> None:
    assert words.span(1.0, 2.5) == "1.000 … 2.500"
    assert words.span(0.1, 0.2, words.percent) == "10.0 … 20.0 %"
    assert words.span(None, 2.0) == ""
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.listed([]) == ""
    assert words.plural(1, "run") == "1 run"
    assert words.count(12345.0) == "12,345"


@given(st.text(max_size=200))
def test_no_label_can_steer_its_reader(text: str) -> None:
    shown = words.label(text)
    assert len(shown) < 420
    assert not any(char < " " or char in "\x7f\x9b\u202e\u2066\u200f" for char in shown)


@given(st.lists(st.text(max_size=80), min_size=2, max_size=6, unique=True))
def test_rows_of_different_labels_keep_different_names(labels: list[str]) -> None:
    names = words.row_names([{"workload": label} for label in labels])
    assert len(set(names)) == len(labels)


def test_scripts_survive() -> None:
    for text in ("中文聊天 é", "עברית", "naïve — “x”"):
        assert words.label(text) == text


def test_what_differs_between_rows_is_in_their_names() -> None:
    rows = [
        {"workload": "code", "arm": "mtp1", "simulated": True, "model": "m"},
        {"workload": "code", "arm": "mtp1", "simulated": False, "model": "m"},
    ]
    names = words.row_names(rows, ("arm", "simulated", "model"))
    assert names == ["code · simulated", "code · real"]


def test_real_and_simulated_rows_say_so_even_where_another_column_tells_them_apart() -> None:
    rows = [
        {"workload": "code", "arm": "mtp1", "simulated": True, "model": "a"},
        {"workload": "code", "arm": "block3", "simulated": False, "model": "b"},
        {"workload": "chat", "arm": "block3", "simulated": False, "model": "b"},
    ]
    names = words.row_names(rows, ("arm", "simulated", "model"))
    assert names == ["code · mtp1 · simulated", "code · block3 · real", "chat · block3 · real"]
    assert words.row_names(rows[1:], ("arm", "simulated", "model")) == ["code", "chat"]


def test_a_long_label_keeps_both_its_ends() -> None:
    head, tail = "night-of-the-long-", "-the-end"
    one, other = (words.label(head + 90 * "x" + digit + tail) for digit in "12")
    assert one.startswith(head)
    assert "1-the-end (117 characters, " in one
    assert one != other
    assert words.label("AMD EPYC, 2 cores, 24 GiB", 24) == "AMD EPYC, 2 cores, 24 GiB"


def verdict(name: str | None, workload: str, speedup: float | None, *reasons: str) -> dict:
    return {"verdict": name, "workload": workload, "speedup": speedup, "reasons": list(reasons),
            "simulated": False, "speedup_why": "no off arm", "pairs": 12}  # fmt: skip


def said(*rows: dict, flips: tuple[dict, ...] = ()) -> str:
    text = answers.speedup_answer(rows, flips)
    return text.replace("\u2068", "").replace("\u2069", "")


def test_the_answer_names_each_side_and_its_size() -> None:
    flip = {"simulated": False, "arm": "mtp1", "gains": "code", "loses": "chat"}
    rows = (verdict("off", "chat", 0.96), verdict("on", "code", 1.07), verdict("on", "agent", 1.09))
    text = said(*rows, flips=(flip,))
    assert text.startswith(
        "Speculation pays for agent (+9.0 %) and code (+7.0 %) and costs time on chat (−4.0 %)."
    )
    assert "pooled" in text


def test_the_answer_says_what_is_open_and_why() -> None:
    text = said(verdict("undecided", "code", 1.02, "interval", "pairs"))
    assert text == (
        "Undecided: code (+2.0 %). Why: the interval of the speed-up includes no change; fewer "
        "than 5 prompts ran in both arms."
    )
    assert said(verdict(None, "code", None)) == "No verdict: no off arm."
    assert said().startswith("No run with speculation")


def test_every_reason_of_a_verdict_has_words() -> None:
    from tauscope.verdict import REASONS

    assert set(words.REASONS) == set(REASONS)


def test_the_answer_says_whose_data_it_is_where_there_is_one_machine_and_model() -> None:
    one = {**verdict("on", "code", 1.07), "machine": "M5", "model": "V4", "arm": "a"}
    two = {**one, "workload": "chat", "machine": "M4"}
    assert said(one) == "With V4 on M5: speculation pays for code (+7.0 %)."
    assert said(one, two).startswith("With V4: speculation pays for ")
    assert said({**one, "simulated": True}).startswith("In the simulated runs: ")


def test_a_pooled_figure_hides_the_flips_of_its_own_arm_alone() -> None:
    flip = {"simulated": False, "machine": "m", "model": None, "experiment": "e", "arm": "block3",
            "gains": "chat", "loses": "technical"}  # fmt: skip
    assert "technical" in words.hidden(flip, [flip])
    for name, other in (("arm", "mtp1"), ("simulated", True), ("machine", "n"), ("model", "x")):
        assert words.hidden({**flip, name: other}, [flip]) == ""
    rows = [{**verdict("on", "chat", 1.1), "arm": "block3"},
            {**verdict("off", "chat", 0.9), "arm": "mtp1"}]  # fmt: skip
    assert "Under block3 one pooled figure would hide" in said(*rows, flips=(flip,))


@pytest.mark.parametrize(
    ("name", "row", "text"),
    [
        ("interval", {"speedup_lo": None, "speedup_hi": None, "pairs": 1, "clusters": 1},
         "no interval: fewer than two prompts in both arms"),
        ("interval", {"speedup_lo": None, "speedup_hi": None, "speedup_why": "why", "clusters": 3},
         "no interval: why"),
        ("interval", {"speedup_lo": 0.9, "speedup_hi": 1.1}, words.REASONS["interval"]),
        ("interval", {"speedup_lo": 1.01, "speedup_hi": 1.1},
         "with 0.3 ms more for the plain step the interval includes no change"),
        ("baseline", {"baseline_drafts": True}, "the off arm drafts"),
        ("baseline", {"baseline_drafts": None}, "it isn't known whether the off arm drafts"),
        ("tokens", {"unattributed_tokens": 40.0}, words.REASONS["tokens"]),
        ("tokens", {"unattributed_tokens": None},
         "the engine's token count is unknown, or what its cycles emitted"),
        ("outputs", {"outputs_equal": None}, "the arms' outputs were not compared"),
        ("outputs", {"outputs_equal": False, "base_tokens": 9, "tokens": 5},
         "the arms' outputs differ in length by more than 5 %"),
        ("outputs", {"outputs_equal": False, "base_tokens": 9, "tokens": None},
         "the lengths of the arms' outputs are unknown"),
        ("bets", {"verified": None}, "the number of verified drafts is unknown"),
        ("pairs", {}, "fewer than 5 prompts ran in both arms"),
    ],
)  # fmt: skip
def test_a_reason_says_which_of_its_causes_it_was(name: str, row: dict, text: str) -> None:
    assert words.reasons([name], row) == text
    assert words.reasons([name, "drift"], row) == f"{text}; {words.REASONS['drift']}"


def test_remarks_name_their_rows_and_give_the_worst_of_what_is_alike() -> None:
    def row(*texts: str) -> dict:
        return {"remarks": list(texts)}

    drifts = [("a", row("a path drifts by -8.7%; x")), ("b", row("a path drifts by +3.1%; x"))]
    assert cells.remarks(drifts) == ("Remarks: a, the most of 2 rows: a path drifts by -8.7%; x.")
    assert cells.remarks([("a", row("odd")), ("b", row()), ("c", row("odd"))]) == (
        "Remarks: a and c: odd."
    )
    assert cells.remarks([("a", row("odd")), ("b", row("odd"))]) == "Remarks: every row: odd."
    assert cells.remarks([("a", row())]) == ""


def test_colours_are_fixed() -> None:
    assert set(palette.OUTCOMES) == set(schema.OUTCOMES)
    assert len(set(palette.OUTCOMES.values())) == len(schema.OUTCOMES)
    assert set(schema.WORKLOADS) <= set(palette.WORKLOADS)
    assert palette.workload("my own") == palette.workload("my own") in palette.OWN
    assert palette.in_order(["z", "chat", "unlabelled", "agent"]) == [
        "agent", "chat", "z", "unlabelled",
    ]  # fmt: skip


@pytest.mark.parametrize("label", HOSTILE)
def test_a_table_escapes_what_it_shows(label: str) -> None:
    import polars as pl

    cell = Cell(label, label, label, label, "#000", "unknown", label + "!")
    html = Table("t", label, [Head(label, label, label)], [[cell]], pl.DataFrame(), label).html()
    assert "<script" not in html
    assert "<img" not in html
    assert html.count("<th ") == 2  # one heading, one row name
    assert 'scope="col"' in html
    assert 'scope="row"' in html
