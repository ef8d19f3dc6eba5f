"""Within one run: blocks of cycles, how long they are, and what can't be resampled."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from tauscope import within


def series(rho: float, n: int, seed: int = 1) -> np.ndarray:
    shocks = np.random.default_rng(seed).standard_normal(n) * np.sqrt(1 - rho**2)
    return lfilter([1.0], [1.0, -rho], shocks)


def test_independent_cycles_have_the_textbook_width():
    emitted = 1.0 + (np.random.default_rng(2).random(4000) < 0.5)
    found = within.within_run(emitted, np.ones(4000))
    expected = 2 * 1.96 * emitted.std() / np.sqrt(4000)
    assert found.value == emitted.mean()
    assert found.hi - found.lo == pytest.approx(expected, rel=0.12)
    assert (found.clusters, found.method) == (1, "within-run")


def test_cycles_that_hang_together_widen_it():
    # AR(1) with 0.8: the variance of a mean is (1 + 0.8)/(1 - 0.8) = 9 times as large.
    plain, chained = (
        within.within_run(100 + series(rho, 8000), np.ones(8000)) for rho in (0.0, 0.8)
    )
    assert (chained.hi - chained.lo) / (plain.hi - plain.lo) == pytest.approx(3, rel=0.25)


def test_block_length_by_hand():
    # Alternating ±1: ρ = -(n-1)/n, cut at 0.97; as many as leave eight blocks.
    assert within.block_length(np.tile([1.0, -1.0], 400)) == 100
    # No autocorrelation worth the name: the cube root.
    assert within.block_length(np.random.default_rng(0).standard_normal(1000)) <= 20
    # A long run still has at most 2,048 blocks.
    assert within.block_length(np.random.default_rng(0).standard_normal(2_000_000)) >= 976


def test_the_same_seed_gives_the_same_interval():
    emitted = 1.0 + (np.random.default_rng(2).random(231) < 0.5)
    first, again = (within.within_run(emitted, np.ones(231)) for _ in range(2))
    other = within.within_run(emitted, np.ones(231), seed=1)
    assert first == again
    assert first != other


def test_a_share_stays_within_bounds_and_all_is_exact():
    bets = np.ones(129)
    accepted = np.ones(129)
    every = within.within_run(accepted, bets, "proportion")
    assert (every.value, every.hi, every.method) == (1.0, 1.0, "within-run-exact")
    assert every.lo == pytest.approx(0.025 ** (1 / 129))
    accepted[[7, 30, 55, 80]] = 0
    most = within.within_run(accepted, bets, "proportion")
    assert most.value == pytest.approx(125 / 129)
    assert 0.9 < most.lo < most.value < most.hi <= 1


@pytest.mark.parametrize(("num", "den", "value", "reason"), [
    ([], [], None, "nothing in the denominator"),
    ([27200.0], [400.0], 68.0, "one time for the whole run: no cycles to resample"),
    ([1, 2, 1], [1, 1, 1], 4 / 3, "only 3 cycles: too few to resample"),
    ([1, np.nan], [1, 1], None, "unknown in 1 of 2 cycles"),
])  # fmt: skip
def test_what_cannot_be_resampled_says_so(num, den, value, reason):
    found = within.within_run(num, den)
    assert found.value == (None if value is None else pytest.approx(value))
    assert found.lo is found.hi is found.method is None
    assert found.reason == reason


def test_rare_denominators_are_no_nan():
    num, den = np.zeros(16), np.zeros(16)
    num[3] = den[3] = 1
    found = within.within_run(num, den)
    assert found.value == 1
    assert found.lo is None
    assert "nothing in the denominator" in found.reason
