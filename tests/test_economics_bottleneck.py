"""The bottleneck, by a trace for each, and whether folds were right."""

from __future__ import annotations

from pathlib import Path

import pytest
import simulated
from frames import add_run, cycle, opened

from tauscope.economics import bottleneck, costs


def named(store: Path, cycles: list[dict], **run: object) -> dict:
    add_run(store, "r", [cycles], **{"arm": "mtp1", "workload": "code", **run})
    data = opened(store)
    return bottleneck.table(data, costs.each(data)).row(0, named=True)


def fold(right: bool | None = None, **columns: object) -> dict:
    tokens = {} if right is None else {"draft_token": 7, "next_token": 7 if right else 8}
    return cycle("fold", wall_ms=72.0, draft_ms=4.0, decode_ms=68.0, margin=1.0, threshold=3.0,
                 **tokens, **columns)  # fmt: skip


def bet(kind: str, verify: float = 108.0, draft: float = 4.0) -> dict:
    return cycle(kind, wall_ms=verify + draft, draft_ms=draft, verify_ms=verify)


def test_a_dear_verification_is_the_verifier(store: Path) -> None:
    row = named(store, [fold()] * 10 + [bet("bet+", verify=130.0)] * 10)
    assert row["bottleneck"] == "verifier"
    assert row["verifier_bar"] == pytest.approx((130 + 4) / 68 - 1)


def test_a_bar_just_passed_is_written_with_as_many_digits_as_it_takes(store: Path) -> None:
    row = named(store, [fold()] * 10 + [bet("bet+", verify=1.9502 * 68 - 4)] * 10)
    assert row["because"] == "break-even acceptance without a fold 95.02 % is above 95 %"


def test_cycles_of_an_undocumented_kind_may_have_bet(store: Path) -> None:
    row = named(store, [cycle("unknown", drafted=2, wall_ms=90.0)] * 7, arm="dspark")
    assert row["bottleneck"] is None
    assert row["because"] == (
        "it is unknown whether they bet: 7 cycles are of an undocumented kind"
    )


def test_dear_drafts_are_the_draft_cost(store: Path) -> None:
    cheap = cycle("fold", wall_ms=88.0, draft_ms=20.0, decode_ms=68.0)
    row = named(store, [cheap] * 5 + [bet("bet+", verify=78.0, draft=20.0)] * 10)
    assert row["bottleneck"] == "draft cost"
    assert row["draft_share"] == pytest.approx(20 / 78)


def test_rejected_drafts_are_the_drafter(store: Path) -> None:
    row = named(store, [fold()] + [bet("bet+")] * 7 + [bet("bet-")] * 3)
    assert row["bottleneck"] == "drafter"
    assert row["committed_acceptance"] == pytest.approx(0.7)


def test_right_folds_are_the_drafter_and_wrong_ones_the_gate(store: Path) -> None:
    row = named(store, [fold(False)] * 30 + [bet("bet+")] * 30)
    assert (row["folds_right"], row["bottleneck"]) == ("yes", "drafter")
    assert (row["folded_right"], row["folded_known"], row["folds_from"]) == (0, 30, "next_token")


def test_folds_of_good_drafts_are_the_gate(store: Path) -> None:
    row = named(store, [fold(True)] * 30 + [bet("bet+")] * 30)
    assert (row["folds_right"], row["bottleneck"]) == ("no", "gate")


def test_folds_of_which_nothing_is_known_are_the_gate(store: Path) -> None:
    row = named(store, [fold()] * 30 + [bet("bet+")] * 30)
    assert (row["folds_right"], row["bottleneck"]) == ("unknown", "gate")


def test_few_folds_of_good_drafts_are_no_bottleneck(store: Path) -> None:
    row = named(store, [fold(True)] * 5 + [bet("bet+")] * 30)
    assert row["bottleneck"] == "none"


def test_an_arm_without_times_names_none_and_says_why(store: Path) -> None:
    row = named(store, [cycle("fold")] * 5 + [cycle("bet+")] * 5)
    assert row["bottleneck"] is None
    assert row["because"].startswith("no plain step")


def test_the_shadow_arm_tells_of_folds_that_log_no_next_token(store: Path) -> None:
    shadow = [fold(False)] * 40 + [
        cycle("fold", wall_ms=72.0, draft_ms=4.0, margin=5.0, draft_token=1, next_token=1)
    ] * 40
    add_run(store, "s", [shadow], arm="shadow", workload="code")
    row = named(store, [fold()] * 30 + [bet("bet+")] * 30)
    assert (row["folds_from"], row["folded_known"]) == ("shadow", 40)  # above the bar: no folds
    # One prompt has no spread between prompts, but none of 40 is exact enough.
    assert row["folded_right"] == 0


def test_a_two_pass_path_is_not_judged_by_a_shadow(store: Path) -> None:
    add_run(store, "s", [[fold(False)] * 40], arm="shadow", workload="code")
    two = cycle("legacyfold", draft_ms=2.0, decode_ms=25.0, reported_ms=27.0, threshold=3.0)
    row = named(store, [two] * 30)
    assert row["folds_from"] is None


@pytest.mark.parametrize(("floor", "said"), [(0.7, ("no", "gate")), (0.2, ("yes", "drafter"))])
def test_the_truth_of_a_simulated_gate_is_found(
    tmp_path: Path, floor: float, said: tuple[str, str]
) -> None:
    stated = {"agent": {"right_floor": floor, "right_middle": 2.9, "right_slope": 50.0,
                        "margin_mean": 2.0}}  # fmt: skip
    data = simulated.made(tmp_path, [simulated.OFF, simulated.MTP1], stated)
    row = bottleneck.table(data, costs.each(data)).row(0, named=True)
    assert (row["folds_right"], row["bottleneck"]) == said
    assert row["folded_right_lo"] < floor < row["folded_right_hi"]
