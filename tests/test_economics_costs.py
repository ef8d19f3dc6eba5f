"""The cost model: T, d and V by path, by position and over time, against a stated truth."""

from __future__ import annotations

from pathlib import Path

import pytest
import simulated
from frames import add_run, cycle, opened

from tauscope.economics import costs


def test_means_ratios_and_replays_by_hand(store: Path) -> None:
    cycles = [
        cycle("bet+", wall_ms=112.0, draft_ms=4.0, verify_ms=108.0),
        cycle("bet-", wall_ms=122.0, draft_ms=4.0, verify_ms=106.0, commit_ms=12.0, replayed=True,
              target_forwards=2),
        cycle("fold", wall_ms=71.0, draft_ms=3.0, decode_ms=68.0),
    ]  # fmt: skip
    add_run(store, "mtp", [cycles], arm="mtp1", workload="code")
    data = opened(store)
    row = costs.table(costs.each(data)).row(0, named=True)
    assert row["verify_ms"] == 107.0
    assert row["bet_ms"] == 113.0  # replays are paid by bets, and are no verification
    assert row["draft_ms"] == pytest.approx(11 / 3)
    assert row["verify_draft_ratio"] == pytest.approx(214 / 8)
    assert row["verify_step_ratio"] == pytest.approx(107 / 68)
    paths = costs.paths(data)
    assert paths.filter(replayed=True)["commit_ms"].to_list() == [12.0]
    assert paths.filter(outcome="all_accepted", replayed=False)["wall_ms"].to_list() == [112.0]


def test_the_model_s_costs_are_found_within_their_intervals(tmp_path: Path) -> None:
    """T = 67.8 + 0.2, d = 4, V = 107.8: at 95 % a few of 60 intervals may miss."""
    truth = {"step": 68.0, "draft": 4.0, "verify": 107.8}
    hits = tried = 0
    for seed in range(10):
        data = simulated.made(
            tmp_path / str(seed), [simulated.OFF, simulated.MTP1], {"agent": {}, "code": {}},
            seed=seed,
        )  # fmt: skip
        for row in costs.table(costs.each(data)).filter(arm="mtp1").iter_rows(named=True):
            for name, value in truth.items():
                assert row[f"{name}_ms"] == pytest.approx(value, rel=2e-3)
                hits += row[f"{name}_ms_lo"] <= value <= row[f"{name}_ms_hi"]
                tried += 1
    assert tried == 60
    assert hits >= 51  # P(fewer | 95 %) < 0.001


def test_growing_context_shows_by_position(tmp_path: Path) -> None:
    longer = {"agent": {"tokens": 4000, "prompts": 3, "prompt_tokens": 500}}
    data = simulated.made(
        tmp_path, [simulated.OFF], longer, {"per_1k_tokens": 0.05, "cycle_noise": 0.0}
    )
    rows = costs.by_position(data)
    assert rows["pos_from"].to_list() == sorted(rows["pos_from"])
    assert rows["cycle_ms"].is_sorted()
    # 5 % a thousand tokens: near 68 × (1 + 0.05 × 3) in the middle of the band from 2048.
    band = rows.filter(pos_from=2048)["cycle_ms"][0]
    assert band == pytest.approx(68 * 1.15, rel=0.01)


def test_warm_up_is_found_and_left_out(tmp_path: Path) -> None:
    warm = {"warmup_cycles": 40, "warmup_slowdown": 1.0}
    data = simulated.made(tmp_path, [simulated.OFF, simulated.MTP1], None, warm)
    course = costs.course(data)
    assert course["warmup_cycles"].is_between(30, 40).all()
    assert course["flag"].to_list() == ["steady", "steady"]
    row = costs.table(costs.each(data)).filter(arm="mtp1").row(0, named=True)
    assert row["step_ms"] == pytest.approx(68.0, rel=2e-3)
    assert "warm-up cycles left out" in row["remarks"][0]
    slices = costs.over_time(data)
    assert slices.filter("warm")["slice"].unique().to_list() == [1]


def test_a_throttled_run_is_flagged_and_a_steady_twin_is_not(tmp_path: Path) -> None:
    # An hour of 8 %: the run lasts about 5 minutes of 68 ms cycles, so speed it up in time.
    steady = simulated.made(tmp_path / "steady", [simulated.MTP1], {"agent": {"tokens": 600}})
    hot = simulated.made(
        tmp_path / "hot", [simulated.MTP1], {"agent": {"tokens": 600}}, {"drift_per_hour": 1.2}
    )
    assert costs.course(steady)["flag"].to_list() == ["steady"]
    assert costs.course(hot)["flag"].to_list() == ["throttles"]


def test_no_rows_give_empty_frames(store: Path) -> None:
    data = opened(store)
    assert costs.table(costs.each(data)).is_empty()
    for frame in (costs.paths, costs.by_position, costs.over_time, costs.course):
        assert frame(data).is_empty()
