"""A speed-up from costs alone: its value, its verdict, and what it may not say."""

from __future__ import annotations

from pathlib import Path

import pytest
import simulated
from frames import add_run, cycle, opened

from tauscope import speedup
from tauscope.economics import costs, modelled


def rows(store: Path) -> list[dict]:
    data = opened(store)
    return modelled.table(data, costs.each(data)).to_dicts()


def legacy(n: int, verify: float) -> list[dict]:
    fold = cycle("legacyfold", draft_ms=2.0, decode_ms=25.0, reported_ms=27.0)
    hit = cycle("legacy+", draft_ms=2.0, verify_ms=verify, reported_ms=verify + 2)
    return [fold] * n + [hit] * n


def test_it_is_the_step_times_tau_over_the_mean_cycle(store: Path) -> None:
    cycles = [
        *[cycle("fold", wall_ms=72.0, draft_ms=4.0)] * 2,
        *[cycle("bet+", wall_ms=112.0, draft_ms=4.0, verify_ms=108.0)] * 2,
    ]
    add_run(store, "r", [cycles], arm="mtp1", workload="code")
    (row,) = rows(store)
    assert row["basis"] == "modelled"
    assert row["speedup"] == pytest.approx(68 * (6 / 4) / (368 / 4))


def test_it_agrees_with_what_was_measured(tmp_path: Path) -> None:
    data = simulated.made(
        tmp_path, [simulated.OFF, simulated.MTP1], {"agent": {}, "prose": {"margin_mean": 0.9}}
    )
    guess = {r["workload"]: r for r in modelled.table(data, costs.each(data)).to_dicts()}
    for row in speedup.table(data).iter_rows(named=True):
        other = guess[row["workload"]]
        assert other["speedup"] == pytest.approx(row["speedup"], abs=0.004)
        assert other["verdict"] == row["verdict"] != "undecided"
        assert row["basis"] == "measured"


def test_a_verdict_must_also_hold_with_a_slower_step(store: Path) -> None:
    """Base and draft 1 take 27 ms: five tokens take 83 ms and a verification, against 5 T."""
    for name, verify in (("gain", 37.0), ("loss", 42.5)):
        requests, facts = [], []
        for prompt in range(6):
            requests.append(legacy(40 + prompt, verify))
            pairs = 40 + prompt
            facts.append({"prompt_id": f"p{prompt}", "generated_tokens": 5 * pairs,
                          "decode_ms": pairs * (83 + verify) * (1 + 1e-4 * prompt)})  # fmt: skip
        add_run(store, name, requests, facts, arm="mtp2", workload=name)
    found = {row["workload"]: row for row in rows(store)}
    gain, loss = found["gain"], found["loss"]
    assert gain["speedup"] == pytest.approx(125 / 120, rel=1e-3)
    assert gain["slower_step_speedup"] == pytest.approx(126.5 / 120, rel=1e-3)
    assert gain["verdict"] == "on"
    assert loss["speedup_hi"] < 1 < loss["slower_step_lo"]
    assert (loss["verdict"], loss["reasons"]) == ("undecided", ["interval"])


def test_sources_that_differ_take_the_verdict(store: Path) -> None:
    fold = cycle("fold", wall_ms=72.0, draft_ms=4.0)
    hit = cycle("bet+", wall_ms=112.0, draft_ms=4.0, verify_ms=108.0)
    prompts = [{"prompt_id": f"p{n}"} for n in range(6)]
    mixed = [[fold] * 9 + [hit] * (30 + n) for n in range(6)]
    counted = [{**p, "generated_tokens": 9 + 2 * (30 + n)} for n, p in enumerate(prompts)]
    add_run(store, "r", mixed, counted, arm="mtp1", workload="code")
    assert rows(store)[0]["verdict"] == "on"
    slow = [[cycle("plain", wall_ms=71.0)] * 9] * 6
    add_run(store, "off", slow, prompts, arm="off", workload="code", baseline_drafts=False)
    (row,) = rows(store)
    assert row["sources_gap"] == pytest.approx(71 / 68 - 1)
    assert row["reasons"] == ["sources"]


def test_an_arm_that_never_folds_beside_a_clean_off_arm_is_measured_only(store: Path) -> None:
    add_run(store, "r", [[cycle("bet+", wall_ms=112.0, draft_ms=4.0, verify_ms=108.0)]],
            arm="mtp1", workload="code")  # fmt: skip
    add_run(store, "off", [[cycle("plain", wall_ms=68.0)]], arm="off", workload="code",
            baseline_drafts=False)  # fmt: skip
    (row,) = rows(store)
    assert row["speedup"] is None
    assert row["speedup_why"] == modelled.OFF_ALONE
    assert (row["verdict"], row["reasons"]) == (None, [])


def test_one_prompt_has_a_within_run_interval_and_no_verdict(store: Path) -> None:
    cycles = [
        *[cycle("fold", wall_ms=72.0 + n % 3, draft_ms=4.0) for n in range(40)],
        *[cycle("bet+", wall_ms=112.0 + n % 5, draft_ms=4.0, verify_ms=108.0) for n in range(40)],
    ]
    add_run(store, "r", [cycles], arm="mtp1", workload="code")
    (row,) = rows(store)
    assert row["speedup_method"] == "within-run"
    assert row["speedup_lo"] < row["speedup"] < row["speedup_hi"]
    assert "clusters" in row["reasons"]
