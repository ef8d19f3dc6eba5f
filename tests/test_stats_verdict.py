"""Each condition of a verdict: evidence that fails just that one, and a twin that passes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tauscope.stats import Interval
from tauscope.verdict import REASONS, Evidence, remarks, sign_flips, verdict


def between(lo: float | None, hi: float | None) -> Interval:
    value = None if lo is None or hi is None else (lo + hi) / 2
    return Interval(value, lo, hi, 12, "paired-t")


MEASURED = Evidence(
    speedup=between(1.08, 1.10),
    basis="measured",
    clusters=12,
    pairs=12,
    verified=600,
    drafting_share=0.98,
    unattributed_tokens=0,
    generated_tokens=4800,
    requests=12,
    baseline_drafts=False,
    outputs_equal=True,
    tokens_base=4800,
    tokens_treated=4800,
    drift=0.0,
)
MODELLED = replace(
    MEASURED,
    basis="modelled",
    pairs=None,
    baseline_drafts=None,
    outputs_equal=None,
    tokens_base=None,
    sources_gap=0.01,
)

CASES = [
    # reason, base, what fails it, what just passes it
    ("interval", MEASURED, {"speedup": between(0.999, 1.2)}, {"speedup": between(1.001, 1.2)}),
    ("interval", MEASURED, {"speedup": between(1.0, 1.2)}, {"speedup": between(0.9, 0.999)}),
    ("interval", MEASURED, {"speedup": between(None, None)}, {}),
    (
        "interval",
        MODELLED,
        {"speedup": between(0.98, 0.996), "speedup_slower_step": between(0.985, 1.001)},
        {"speedup": between(0.98, 0.990), "speedup_slower_step": between(0.985, 0.995)},
    ),
    ("clusters", MEASURED, {"clusters": 4}, {"clusters": 5}),
    ("bets", MEASURED, {"verified": 29}, {"verified": 30}),
    ("bets", MEASURED, {"verified": None}, {}),
    ("treatment", MEASURED, {"drafting_share": 0.5}, {"drafting_share": 0.501}),
    ("treatment", MEASURED, {"drafting_share": None}, {}),
    # 1 % of 4,800 is 48; 2 a request are 24: both must be passed, by either sign.
    ("tokens", MEASURED, {"unattributed_tokens": 49}, {"unattributed_tokens": 48}),
    ("tokens", MEASURED, {"unattributed_tokens": -49}, {"unattributed_tokens": -48}),
    (
        "tokens",
        MEASURED,
        {"unattributed_tokens": 49, "requests": 24},
        {"unattributed_tokens": 49, "requests": 25},
    ),
    ("tokens", MEASURED, {"generated_tokens": None}, {}),
    ("tokens", MEASURED, {"unattributed_tokens": None}, {}),
    ("baseline", MEASURED, {"baseline_drafts": True}, {"baseline_drafts": False}),
    ("baseline", MEASURED, {"baseline_drafts": None}, {}),
    ("baseline", MODELLED, {"baseline_drafts": True}, {"baseline_drafts": None}),
    ("sources", MODELLED, {"sources_gap": 0.031}, {"sources_gap": 0.03}),
    ("sources", MODELLED, {"sources_gap": -0.031}, {"sources_gap": None}),
    ("pairs", MEASURED, {"pairs": 4}, {"pairs": 5}),
    ("pairs", MEASURED, {"pairs": None}, {}),
    ("outputs", MEASURED, {"outputs_equal": None}, {"outputs_equal": False}),
    ("outputs", MEASURED, {"tokens_treated": 5041}, {"tokens_treated": 5040}),
    ("outputs", MEASURED, {"tokens_treated": 4559}, {"tokens_treated": 4560}),
    ("outputs", MEASURED, {"tokens_base": None}, {}),
    # S - 1 = 0.09: more than 0.045 is too much.
    ("drift", MEASURED, {"drift": 0.046}, {"drift": 0.044}),
    ("drift", MEASURED, {"drift": -0.046}, {"drift": -0.046, "interleaved": True}),
    ("drift", MODELLED, {"drift": 0.046}, {"drift": None}),
]


@pytest.mark.parametrize(("reason", "base", "fails", "passes"), CASES)
def test_just_one_condition(reason, base, fails, passes):
    assert verdict(replace(base, **fails)) == ("undecided", [reason])
    answer, reasons = verdict(replace(base, **passes))
    assert answer in ("on", "off")
    assert reasons == []


def test_every_reason_has_its_case():
    assert {case[0] for case in CASES} == set(REASONS)


def test_on_and_off():
    assert verdict(MEASURED) == ("on", [])
    assert verdict(replace(MEASURED, speedup=between(0.95, 0.97))) == ("off", [])


def test_measured_conditions_are_not_asked_of_a_model_nor_the_other_way():
    assert verdict(MODELLED) == ("on", [])
    assert verdict(replace(MEASURED, sources_gap=0.5)) == ("on", [])


def test_reasons_come_in_order():
    nothing = Evidence(speedup=between(None, None), basis="measured", clusters=0)
    answer, reasons = verdict(nothing)
    assert answer == "undecided"
    assert reasons == [
        "interval", "clusters", "bets", "treatment", "tokens", "baseline", "pairs", "outputs",
    ]  # fmt: skip


def test_an_unknown_basis_is_refused():
    with pytest.raises(ValueError, match="guessed"):
        verdict(replace(MEASURED, basis="guessed"))


def test_remarks_tell_what_was_not_held_against_it():
    assert remarks(MEASURED) == []
    said = remarks(replace(MEASURED, drift=None, outputs_equal=False, baseline_drafts=True))
    assert [text.split(":")[0] for text in said] == [
        "drift can't be seen",
        "the arms' outputs are not the same text",
        "against a baseline that drafts",
    ]
    assert "interleaved" in remarks(replace(MEASURED, drift=0.2, interleaved=True))[0]
    assert remarks(replace(MODELLED, sources_gap=None))[0].startswith("one source")


def test_sign_flips_are_pairs_on_opposite_sides():
    rows = [
        ("agent", between(1.08, 1.10)),
        ("mixed", between(0.98, 1.03)),
        ("prose", between(0.95, 0.97)),
        ("chat", between(0.95, 0.98)),
        ("new", between(None, None)),
    ]
    assert sign_flips(rows) == [("agent", "prose"), ("agent", "chat")]
    assert sign_flips(rows[:2]) == []
