"""Break-even acceptance, of the run and of one more bet."""

from __future__ import annotations

from pathlib import Path

import pytest
import simulated
from frames import add_run, cycle, opened
from hypothesis import given, settings
from hypothesis import strategies as st

from tauscope.economics import breakeven, costs, modelled


def one(store: Path) -> dict:
    return breakeven.table(costs.each(opened(store))).row(0, named=True)


def test_the_published_run_breaks_even_near_0_69(store: Path) -> None:
    fold = cycle("fold", wall_ms=72.0, draft_ms=4.0, decode_ms=68.0)
    hit = cycle("bet+", wall_ms=112.0, draft_ms=4.0, verify_ms=108.0)
    miss = cycle("bet-", wall_ms=112.0, draft_ms=4.0, verify_ms=108.0)
    add_run(store, "r", [[fold] * 102 + [hit] * 125 + [miss] * 4], arm="mtp1", workload="code")
    row = one(store)
    # ((108 + 4 × 231/129)/68 − 1)
    assert row["breakeven"] == pytest.approx((108 + 4 * 231 / 129) / 68 - 1)
    assert row["breakeven"] == pytest.approx(0.69, abs=0.005)
    # (108 − 68) / λ, λ = (102 × 72 + 129 × 112)/356
    assert row["bet_breakeven"] == pytest.approx(40 / ((102 * 72 + 129 * 112) / 356))
    assert row["committed_acceptance"] == pytest.approx(125 / 129)


def test_the_legacy_path_pays_a_draft_that_no_line_shows(store: Path) -> None:
    cycles = [
        *[cycle("miss")] * 43,
        *[cycle("legacyfold", draft_ms=2.2, decode_ms=25.75, reported_ms=28.0)] * 46,
        *[cycle("legacy+", draft_ms=2.2, verify_ms=40.5, reported_ms=42.8)] * 36,
        *[cycle("legacy-", draft_ms=2.2, verify_ms=40.5, reported_ms=42.8)] * 6,
    ]
    add_run(store, "r", [cycles], [{"decode_ms": 6780.0, "generated_tokens": 255}],
            arm="mtp2", workload="chat")  # fmt: skip
    hidden = (43 * 2.2 + 46 * (2.2 + 2.2)) / (42 * 25.75)
    assert one(store)["breakeven"] == pytest.approx((2.2 + 2.2 + 40.5) / 25.75 - 1 + hidden)


def test_replays_are_part_of_what_a_bet_pays(store: Path) -> None:
    fold = cycle("fold", wall_ms=72.0, draft_ms=4.0, decode_ms=68.0)
    hit = cycle("bet+", wall_ms=113.0, draft_ms=4.0, snapshot_ms=1.0, verify_ms=108.0)
    lost = cycle("bet-", wall_ms=123.0, draft_ms=4.0, snapshot_ms=1.0, verify_ms=108.0,
                 commit_ms=10.0)  # fmt: skip
    add_run(store, "r", [[fold, hit, lost]], arm="mtp1", workload="code")
    assert one(store)["breakeven"] == pytest.approx((114 + 4 * 3 / 2) / 68 - 1)


@settings(max_examples=15, deadline=None)
@given(
    folds=st.integers(1, 40), hits=st.integers(1, 40), misses=st.integers(0, 40),
    verify=st.floats(20, 200), decode=st.floats(20, 100), draft=st.floats(0.5, 20),
    legacy=st.booleans(),
)  # fmt: skip
def test_acceptance_above_break_even_is_a_gain_and_below_it_a_loss(
    tmp_path_factory: pytest.TempPathFactory, folds: int, hits: int, misses: int,
    verify: float, decode: float, draft: float, legacy: bool,
) -> None:  # fmt: skip
    """S − 1 and (acceptance − a*) bets T are the same thing: S = T E / W."""
    store = tmp_path_factory.mktemp("s")
    if legacy:
        fold = cycle("legacyfold", draft_ms=draft, decode_ms=decode, reported_ms=draft + decode)
        hit = cycle("legacy+", draft_ms=draft, verify_ms=verify, reported_ms=draft + verify)
        lost = cycle("legacy-", draft_ms=draft, verify_ms=verify, reported_ms=draft + verify)
        spent = folds * (2 * draft + 2 * decode) + (hits + misses) * (2 * draft + verify + decode)
        request = {"decode_ms": spent, "generated_tokens": 2 * folds + 3 * hits + 2 * misses}
    else:
        fold = cycle("fold", draft_ms=draft, decode_ms=decode, wall_ms=draft + decode)
        hit = cycle("bet+", draft_ms=draft, verify_ms=verify, wall_ms=draft + verify)
        lost = cycle("bet-", draft_ms=draft, verify_ms=verify, wall_ms=draft + verify)
        request = {}
    cycles = [fold] * folds + [hit] * hits + [lost] * misses
    add_run(store, "r", [cycles, cycles], [request, request], arm="mtp1", workload="code")
    data = opened(store)
    found = costs.each(data)
    row = breakeven.table(found).row(0, named=True)
    gain = modelled.table(data, found)["speedup"][0]
    mine = found[0]
    over = (row["committed_acceptance"] - row["breakeven"]) * mine.sum("bets") * mine.step.ms
    assert gain - 1 == pytest.approx(over / mine.sum("total_ms"), abs=1e-9)


def test_intervals_hold_the_model_s_break_even(tmp_path: Path) -> None:
    data = simulated.made(tmp_path, [simulated.OFF, simulated.MTP1])
    row = breakeven.table(costs.each(data)).row(0, named=True)
    # Of one bet, V − T and λ alone; V and T are stated, λ measured.
    truth = (107.8 - 68) / costs.table(costs.each(data)).filter(arm="mtp1")["ms_per_token"][0]
    assert row["bet_breakeven_lo"] < truth < row["bet_breakeven_hi"]
    assert row["breakeven_lo"] < row["breakeven"] < row["breakeven_hi"]


def test_what_is_missing_is_said(store: Path) -> None:
    fold = cycle("fold", wall_ms=72.0, draft_ms=4.0, decode_ms=68.0)
    add_run(store, "a", [[fold] * 3], arm="mtp1", workload="prose")
    add_run(store, "b", [[fold, cycle("bet+", wall_ms=112.0, verify_ms=108.0)]],
            arm="mtp1", workload="code")  # fmt: skip
    rows = {r["workload"]: r for r in breakeven.table(costs.each(opened(store))).to_dicts()}
    assert rows["prose"]["breakeven"] is None and rows["prose"]["why"] == costs.NO_BET
    assert rows["code"]["why"] == "drafting times were not logged in 1 cycles"
