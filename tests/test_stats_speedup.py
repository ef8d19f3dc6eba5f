"""Speed-up of one arm over another: pairs, two sets of prompts, and what can't be known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tauscope import stats, within

T = {1: 12.7062, 2: 4.30265}


def test_pairs_by_hand():
    # Off 100 ms and 100 tokens a prompt: 1 ms a token. Treated 80 and 100 ms: 0.9.
    # S = 1/0.9; deviations of log S: 0 - (80/180 - 1/2) = +1/18 and -1/18;
    # variance 2/1 · 2/324 = 1/81, so the half width is t · S / 9.
    found = stats.speedup([100, 100], [100, 100], [80, 100], [100, 100], paired=True)
    assert found.value == pytest.approx(1 / 0.9)
    assert found.hi == pytest.approx((1 + T[1] / 9) / 0.9, rel=1e-5)
    assert found.lo == 0  # t on one degree of freedom
    assert (found.clusters, found.method) == (2, "paired-t")


def test_what_moves_both_arms_of_a_pair_cancels():
    slow = np.array([1.0, 1.5, 2.0])  # one prompt is twice as slow, in both arms
    tokens = np.full(3, 400.0)
    paired = stats.speedup(slow * 1100, tokens, slow * 1000, tokens, paired=True)
    unpaired = stats.speedup(slow * 1100, tokens, slow * 1000, tokens, paired=False)
    assert paired.value == unpaired.value == pytest.approx(1.1)
    assert paired.hi - paired.lo == pytest.approx(0, abs=1e-9)
    assert unpaired.hi - unpaired.lo > 0.5


def test_two_sets_of_prompts_by_welch():
    # Both arms as the treated one above: variance 2/81, each on 1 degree of freedom: 2 in all.
    found = stats.speedup([80, 100], [100, 100], [100, 80], [100, 100], paired=False)
    assert found.value == pytest.approx(1)
    assert found.hi == pytest.approx(1 + T[2] * math.sqrt(2) / 9, rel=1e-5)
    assert found.method == "welch-t"


def test_two_sets_may_differ_in_size_and_the_smaller_counts():
    found = stats.speedup([100, 101, 99], [100] * 3, [90, 91], [100, 100], paired=False)
    assert found.clusters == 2
    assert found.lo < found.value < found.hi


def test_pairs_need_both_arms():
    with pytest.raises(ValueError, match="both arms"):
        stats.speedup([100, 101, 99], [100] * 3, [90, 91], [100, 100], paired=True)


def test_a_modelled_step_comes_from_prompts_that_fold():
    # T = Σ ms of folds / folds; the second prompt never folds and still counts below the line.
    found = stats.speedup([680, 0, 690], [10, 0, 10], [900, 950, 940], [15, 16, 15], paired=True)
    assert found.value == pytest.approx((1370 / 20) / (2790 / 46))
    assert found.clusters == 3


def test_one_pair_has_no_interval():
    found = stats.speedup([100], [100], [90], [100], paired=True)
    assert found.value == pytest.approx(100 / 90)
    assert found.lo is found.hi is None
    assert found.reason == "one pair: no spread to see"


def test_unknown_time_and_no_time_are_null():
    unknown = stats.speedup([100, np.nan], [100, 100], [90, 95], [100, 100], paired=True)
    assert unknown.value is None
    assert unknown.reason == "unknown in 1 of 2 clusters"
    nothing = stats.speedup([], [], [90], [100], paired=False)
    assert nothing.value is None
    assert "no time" in nothing.reason


def test_one_run_an_arm_is_within_run():
    rng = np.random.default_rng(3)
    bet = rng.random(231) > 0.44
    won = bet & (rng.random(231) < 0.97)
    found = within.within_run_speedup(
        np.full(400, 68.0) + rng.normal(size=400), np.ones(400),
        np.where(bet, 112.0, 72.0), 1.0 + won,
    )  # fmt: skip
    assert found.method == "within-run"
    assert found.lo < found.value < found.hi
    assert found.hi - found.lo < 0.2


def test_an_off_arm_without_cycles_has_no_interval():
    # The engine printed one decode time for the whole run: 400 tokens in 27,200 ms.
    found = within.within_run_speedup([27200.0], [400.0], np.full(50, 95.0), np.full(50, 1.5))
    assert found.value == pytest.approx(68 / (95 / 1.5))
    assert found.lo is found.hi is found.method is None
    assert found.reason == "off arm: one time for the whole run: no cycles to resample"
