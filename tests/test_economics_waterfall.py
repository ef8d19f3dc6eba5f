"""The waterfall adds up, and what stands in it is told apart from what is left."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import simulated
from frames import add_run, cycle, opened
from hypothesis import given, settings
from hypothesis import strategies as st

from tauscope.economics import costs, waterfall


def parts(store: Path, arm: str = "mtp1") -> dict[str, dict]:
    rows = waterfall.table(costs.each(opened(store))).filter(arm=arm)
    return {row["part"]: row for row in rows.iter_rows(named=True)}


def test_every_part_by_hand(store: Path) -> None:
    cycles = [
        cycle("fold", wall_ms=72.5, draft_ms=4.0, decode_ms=68.0),
        cycle("bet+", wall_ms=113.0, draft_ms=4.0, snapshot_ms=1.0, verify_ms=108.0),
        cycle("bet-", wall_ms=123.0, draft_ms=4.0, snapshot_ms=1.0, verify_ms=108.0, commit_ms=10),
    ]  # fmt: skip
    add_run(store, "mtp", [cycles], arm="mtp1", workload="code", prompt_id="p")
    add_run(store, "off", [[cycle("plain", wall_ms=67.0)] * 4], arm="off", workload="code",
            prompt_id="p", baseline_drafts=False)  # fmt: skip
    found = parts(store)
    # T = 67 ms, four tokens.
    expected = {
        "accepted": 67, "drafting": -12, "bets_won": 67 - 109, "bets_lost": 67 - 119,
        "folds": 67 - 68, "base": 0, "unattributed": -0.5,
    }  # fmt: skip
    assert {name: row["part_ms"] for name, row in found.items()} == pytest.approx(expected)
    assert sum(row["ms_each_token"] for row in found.values()) == pytest.approx(
        67 - (72.5 + 113 + 123) / 4
    )
    assert not any(row["derived"] for row in found.values())


def test_a_legacy_base_decode_is_derived_and_marked(store: Path) -> None:
    cycles = [
        cycle("miss"),
        cycle("legacyfold", draft_ms=2.0, decode_ms=25.0, reported_ms=27.1),
        cycle("legacy+", draft_ms=2.0, verify_ms=40.0, reported_ms=42.2),
    ]
    add_run(store, "mtp", [cycles], [{"generated_tokens": 6, "decode_ms": 150.0}],
            arm="mtp1", workload="chat")  # fmt: skip
    found = parts(store)
    left = 150 - 27.1 - 42.2
    expected = {
        "accepted": 25, "drafting": -4, "bets_won": 25 - 40, "bets_lost": 0, "folds": 0,
        "base": 3 * 25 - left, "unattributed": -0.3,
    }  # fmt: skip
    assert {name: row["part_ms"] for name, row in found.items()} == pytest.approx(expected)
    assert [name for name, row in found.items() if row["derived"]] == ["base"]


def test_tokens_that_no_cycle_shows_stand_under_unattributed(store: Path) -> None:
    fold = cycle("legacyfold", draft_ms=2.0, decode_ms=25.0, reported_ms=27.0)
    add_run(store, "mtp", [[fold] * 4], [{"generated_tokens": 9, "decode_ms": 220.0}],
            arm="mtp1", workload="chat")  # fmt: skip
    assert parts(store)["unattributed"]["part_ms"] == pytest.approx(25.0)


def test_a_speed_without_tokens_gives_no_waterfall_and_says_what_to_do(store: Path) -> None:
    fold = cycle("legacyfold", draft_ms=2.0, decode_ms=25.0, reported_ms=27.0)
    add_run(store, "mtp", [[fold] * 4], [{"decode_tokens_per_s": 37.0}], arm="mtp1")
    found = parts(store)
    assert list(found) == ["unattributed"]
    assert found["unattributed"]["why"] == waterfall.SPEED_ONLY


def test_unknown_accounting_gives_no_waterfall(store: Path) -> None:
    fold = cycle("fold", wall_ms=72.0, draft_ms=4.0, decode_ms=68.0)
    add_run(store, "mtp", [[fold, cycle("unknown", wall_ms=99.0)]], arm="mtp1", workload="code")
    assert parts(store)["unattributed"]["part_ms"] is None


times = st.floats(0.01, 500)


@settings(max_examples=15, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from(["fold", "bet+", "bet-", "plain"]), times, times, times, times),
        min_size=1, max_size=30,
    ),
    step=times,
)  # fmt: skip
def test_parts_always_add_up(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple], step: float
) -> None:
    store = tmp_path_factory.mktemp("s")
    cycles = []
    for kind, wall, draft, verify, commit in rows:
        stages = {
            "fold": {"draft_ms": draft, "decode_ms": verify}, "plain": {},
            "bet+": {"draft_ms": draft, "verify_ms": verify},
            "bet-": {"draft_ms": draft, "verify_ms": verify, "commit_ms": commit},
        }[kind]  # fmt: skip
        cycles.append(cycle(kind, wall_ms=wall, **stages))
    prompts = [{"prompt_id": "p"}, {"prompt_id": "q"}]  # two: nothing to resample
    add_run(store, "mtp", [cycles, cycles], prompts, arm="mtp1", workload="code")
    add_run(store, "off", [[cycle("plain", wall_ms=step)] * 3] * 2, prompts, arm="off",
            workload="code", baseline_drafts=False)  # fmt: skip
    found = parts(store)
    row = found["unattributed"]
    total = sum(part["ms_each_token"] for part in found.values())
    assert total == pytest.approx(row["step_ms"] - row["ms_per_token"], abs=1e-6)


@pytest.mark.parametrize("run", [simulated.MTP1, simulated.LEGACY], ids=["one-pass", "two-pass"])
def test_at_most_one_percent_is_unattributed_in_simulated_runs(tmp_path: Path, run: dict) -> None:
    data = simulated.made(
        tmp_path, [simulated.OFF, run], {"agent": {}, "prose": {"margin_mean": 1.0}},
        {"replay_ms": 20.0, "snapshot_ms": 0.5},
    )  # fmt: skip
    rows = waterfall.table(costs.each(data)).filter(arm=run["arm"], part="unattributed")
    assert rows.height == 2
    share = rows["ms_each_token"].abs() / rows["ms_per_token"]
    assert (share < 0.01).all()
    assert rows.select(pl.col("ms_each_token").abs().max()).item() > 0  # other_ms is no stage
