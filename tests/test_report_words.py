"""How numbers and labels are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_stores import HOSTILE

from tauscope import schema
from tauscope.figures import palette, words
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


def verdict(name: str | None, workload: str, speedup: float | None, *reasons: str) -> dict:
    return {"verdict": name, "workload": workload, "speedup": speedup, "reasons": list(reasons),
            "simulated": False, "speedup_why": "no off arm", "pairs": 12}  # fmt: skip


def said(*rows: dict, flips: tuple[dict, ...] = ()) -> str:
    text = words.speedup_answer(rows, flips)
    return text.replace("\u2068", "").replace("\u2069", "")


def test_the_answer_names_each_side_and_its_size() -> None:
    flip = {"simulated": False, "gains": "code", "loses": "chat"}
    rows = (verdict("off", "chat", 0.96), verdict("on", "code", 1.07), verdict("on", "agent", 1.09))
    text = said(*rows, flips=(flip,))
    assert text.startswith(
        "Speculation pays for agent (+9.0 %) and code (+7.0 %) and costs time on chat (−4.0 %)."
    )
    assert "pooled" in text


def test_the_answer_says_what_is_open_and_why() -> None:
    text = said(verdict("undecided", "code", 1.02, "interval", "pairs"))
    assert text == (
        "Undecided: code (+2.0 %). Why: the interval of the speed-up includes 1 and fewer than 5 "
        "prompts ran in both arms."
    )
    assert said(verdict(None, "code", None)) == "No verdict: no off arm."
    assert said().startswith("No run with speculation")


def test_every_reason_of_a_verdict_has_words() -> None:
    from tauscope.verdict import REASONS

    assert set(words.REASONS) == set(REASONS)


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
