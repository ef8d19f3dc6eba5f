"""The plain step: which source is taken, what each says, and how far they differ."""

from __future__ import annotations

from pathlib import Path

import pytest
from frames import add_run, cycle, opened

from tauscope import speedup
from tauscope.economics import step

OFF = {"arm": "off", "baseline_drafts": False}
MTP = {"arm": "mtp1", "workload": "code"}


def plain(ms: float, n: int = 10) -> list[dict]:
    return [cycle("plain", wall_ms=ms) for _ in range(n)]


def gated(n: int = 10) -> list[dict]:
    return [
        *[cycle("fold", wall_ms=72.0, draft_ms=4.0, decode_ms=67.5) for _ in range(n)],
        *[cycle("bet+", wall_ms=112.0, draft_ms=4.0, verify_ms=108.0) for _ in range(n)],
    ]


def row(store: Path, arm: str) -> dict:
    return step.table(opened(store)).filter(arm=arm).row(0, named=True)


def test_a_clean_off_arm_goes_before_folds(store: Path) -> None:
    add_run(store, "off", [plain(66.0)], **OFF, workload="code", prompt_id="p")
    add_run(store, "mtp", [gated()], **MTP, prompt_id="p")
    found = row(store, "mtp1")
    assert (found["source"], found["step_ms"]) == ("off", 66.0)
    assert [s["source"] for s in found["sources"]] == ["off", "folds"]
    # 72 − 4 = 68 against 66.
    assert found["gap"] == pytest.approx(68 / 66 - 1)
    assert found["gap_source"] == "folds"


def test_only_prompts_that_both_arms_ran_count(store: Path) -> None:
    add_run(
        store, "off", [plain(66.0), plain(90.0)], [{"prompt_id": "p"}, {"prompt_id": "q"}],
        **OFF, workload="code",
    )  # fmt: skip
    add_run(store, "mtp", [gated()], **MTP, prompt_id="p")
    assert row(store, "mtp1")["step_ms"] == 66.0


def test_a_fold_is_its_cycle_less_its_draft(store: Path) -> None:
    add_run(store, "mtp", [gated()], **MTP)
    found = row(store, "mtp1")
    assert (found["source"], found["step_ms"]) == ("folds", 68.0)
    assert found["gap"] is None


def test_without_the_whole_cycle_the_decode_time_of_folds_counts(store: Path) -> None:
    folds = [cycle("legacyfold", draft_ms=2.0, decode_ms=25.0, reported_ms=27.1)] * 9
    add_run(
        store, "mtp", [[*folds, cycle("miss")]], [{"generated_tokens": 19, "decode_ms": 532.0}],
        **MTP,
    )  # fmt: skip
    found = row(store, "mtp1")
    assert (found["source"], found["step_ms"]) == ("folds_decode", 25.0)
    # 532 − 9 × 27.1 = 288.1 over ten base decodes, each with a draft of 2 ms inside.
    left = {s["source"]: s["ms"] for s in found["sources"]}["base_left"]
    assert left == pytest.approx(28.81 - 2.0)


def test_a_two_pass_fold_with_its_whole_time_is_not_one_token(store: Path) -> None:
    folds = [cycle("legacyfold", draft_ms=4.0, decode_ms=25.0, base_ms=26.0, wall_ms=55.5)] * 9
    add_run(store, "mtp", [folds], **MTP)
    found = row(store, "mtp1")
    assert (found["source"], found["step_ms"]) == ("folds_decode", 25.0)
    assert {s["source"]: s["ms"] for s in found["sources"]}["base"] == 26.0


def test_an_off_arm_that_drafts_is_taken_last_and_less_one_draft(store: Path) -> None:
    add_run(store, "off", [plain(72.0)], arm="off", baseline_drafts=True, workload="code")
    bets = [cycle("bet+", wall_ms=112.0, draft_ms=4.0, verify_ms=108.0)] * 9
    add_run(store, "mtp", [bets], **MTP)
    found = row(store, "mtp1")
    assert (found["source"], found["step_ms"]) == ("off_drafting", pytest.approx(68.0))


def test_an_off_arm_of_which_it_is_not_known_whether_it_drafts_is_no_source(store: Path) -> None:
    add_run(store, "off", [plain(66.0)], arm="off", workload="code")
    add_run(store, "mtp", [gated()], **MTP)
    assert row(store, "mtp1")["source"] == "folds"


def test_the_shadow_arm_gives_a_step_where_nothing_folds(store: Path) -> None:
    bets = [cycle("bet+", wall_ms=112.0, draft_ms=4.0, verify_ms=108.0)] * 9
    add_run(store, "mtp", [bets], **MTP)
    shadow = [cycle("fold", wall_ms=71.0, draft_ms=4.0)] * 9
    add_run(store, "shadow", [shadow], arm="shadow", workload="code")
    found = row(store, "mtp1")
    assert (found["source"], found["step_ms"]) == ("shadow_folds", 67.0)


def test_nothing_to_take_it_from_is_said(store: Path) -> None:
    add_run(store, "mtp", [[cycle("bet+", wall_ms=112.0, verify_ms=108.0)] * 9], **MTP)
    found = row(store, "mtp1")
    assert found["step_ms"] is None
    assert found["step_why"] == step.NO_SOURCE


def test_another_machine_is_no_source(store: Path) -> None:
    add_run(store, "off", [plain(66.0)], **OFF, workload="code", machine="a")
    add_run(store, "mtp", [gated()], **MTP, machine="b")
    assert row(store, "mtp1")["source"] == "folds"


def test_one_shared_prompt_is_timed_by_its_own_cycles_alone(store: Path) -> None:
    """The measured speed-up too: 66 ms a token against 92/1.5, whatever prompt q took."""
    prompts = [{"prompt_id": "p"}, {"prompt_id": "q"}]
    add_run(store, "off", [plain(66.0), plain(90.0)], prompts, **OFF, workload="code")
    add_run(store, "mtp", [gated()], **MTP, prompt_id="p")
    measured = speedup.table(opened(store)).row(0, named=True)
    assert measured["speedup"] == pytest.approx(66 / (184 / 3))
