"""A broken interval misses the truth too often, or never: counted on cheap draws."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

from tauscope import stats

TRIALS = 3000
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)


def mean_share(centre: float, sd: float) -> float:
    """Mean of expit(centre + sd · z) over a standard normal z, by quadrature."""
    return float((WEIGHTS * expit(centre + sd * NODES)).sum() / WEIGHTS.sum())


def trials(clusters: int, cycles: int, centre: float, sd: float, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    share = expit(centre + sd * rng.standard_normal(TRIALS * clusters))
    return pl.DataFrame(
        {
            "trial": np.repeat(np.arange(TRIALS), clusters),
            "x_num": rng.binomial(cycles, share),
            "x_den": np.full(share.size, cycles),
        }
    )


def covered(frame: pl.DataFrame, kind: str, truth: float) -> float:
    found = stats.grouped(frame, ["trial"], {"x": kind})
    return found.select(pl.lit(truth).is_between("x_lo", "x_hi").mean()).item()


# Three binomial errors of 3,000 trials are 1.2 points.
@pytest.mark.parametrize("clusters", [5, 8, 20, 50])
def test_fold_rate_covers_95(clusters):
    frame = trials(clusters, 260, -0.25, 0.3, seed=clusters)
    assert covered(frame, "proportion", mean_share(-0.25, 0.3)) == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize("clusters", [5, 8, 20, 50])
def test_tau_covers_95(clusters):
    frame = trials(clusters, 260, 0.2, 0.3, seed=100 + clusters)
    frame = frame.with_columns(x_num=pl.col("x_num") + pl.col("x_den"))
    assert covered(frame, "ratio", 1 + mean_share(0.2, 0.3)) == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize("clusters", [5, 8, 20, 50])
@pytest.mark.parametrize("bets", [20, 140])
def test_acceptance_near_1_covers_at_least_925(clusters, bets):
    frame = trials(clusters, bets, 3.47, 0.3, seed=200 + clusters + bets)
    share = covered(frame, "proportion", mean_share(3.47, 0.3))
    assert 0.925 <= share <= 0.99


@pytest.mark.parametrize("clusters", [5, 8, 20])
@pytest.mark.parametrize("paired", [True, False])
def test_speedup_covers_95(clusters, paired):
    rng = np.random.default_rng(300 + clusters)
    held = 0
    for _ in range(2000):
        # A prompt's own pace moves both arms of a pair; unpaired prompts have each their own.
        pace = np.exp(rng.normal(0, 0.02, (2, clusters)))
        gain = rng.normal(1.04, 0.018, clusters)
        base, treated = 27200 * pace[0], 27200 * pace[0 if paired else 1] / gain
        tokens = np.full(clusters, 400.0)
        found = stats.speedup(base, tokens, treated, tokens, paired=paired)
        held += found.lo <= 1.04 <= found.hi
    assert held / 2000 == pytest.approx(0.95, abs=0.02)
