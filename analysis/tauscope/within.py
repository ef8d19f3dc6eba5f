"""Intervals within one cluster: cycles of one run, resampled in blocks.

Neighbouring cycles resemble each other, so whole stretches are drawn: the
moving-block bootstrap (Künsch 1989), with the run's end joined to its start
(Politis and Romano 1992) so that every cycle is drawn equally often. It says
how well this run's figure is known, not how another prompt would fare, and is
labelled `within-run`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tauscope.stats import NOTHING, OUTSIDE, TAIL, Interval, _pair, _unknown, clopper_pearson

WITHIN, WITHIN_EXACT = "within-run", "within-run-exact"
SEED = 20240229
RESAMPLES = 2000
LEAST_BLOCKS = 8
# So many blocks tell the width to 1.6 %, as do the resamples; a longer run takes longer blocks
# (less bias), and 33 MB of draws are enough for any.
MOST_BLOCKS = 2048


def within_run(num: ArrayLike, den: ArrayLike, kind: str = "ratio", seed: int = SEED) -> Interval:
    """Interval of Σnum / Σden over the cycles of one run, in order.

    `num`, `den`: shape (cycles,), any unit. `kind`: `ratio`, or `proportion`, which takes
    Clopper-Pearson on the counts when all or none. Percentiles of `RESAMPLES` block
    resamples, drawn apart for the few blocks there are (Hesterberg 2015, expanded
    percentile). Null with a reason under 8 cycles. Raises ValueError on unequal shapes.
    """
    pair = _pair(num, den)
    plain = _plain(pair)
    if plain.reason:
        return plain
    value, totals = plain.value, pair.sum(axis=1)
    if kind == "proportion":
        if not 0 <= value <= 1:
            return Interval(value, None, None, 1, None, OUTSIDE)
        if value in (0.0, 1.0):
            lo, hi = clopper_pearson(totals[:1], totals[1:])
            return Interval(value, float(lo[0]), float(hi[0]), 1, WITHIN_EXACT)
    sums, blocks = _resampled(pair, np.random.default_rng(seed))
    with np.errstate(all="ignore"):
        return _percentiles(value, sums[0] / sums[1], blocks)


def within_run_speedup(
    base_num: ArrayLike,
    base_den: ArrayLike,
    treat_num: ArrayLike,
    treat_den: ArrayLike,
    seed: int = SEED,
) -> Interval:
    """Speed-up of one run over another, both resampled: see `within_run` and `stats.speedup`.

    Shapes (cycles,) of each arm, in ms and tokens. An arm with one time for the whole run
    (length 1) has no cycles to draw: the value stands, its bounds are None with the reason.
    """
    pairs = _pair(base_num, base_den), _pair(treat_num, treat_den)
    plain = [_plain(pair) for pair in pairs]
    if plain[0].value is None or not plain[1].value:
        reason = plain[0].reason or plain[1].reason or "no time in the treated arm"
        return Interval(None, None, None, 1, None, reason)
    value = plain[0].value / plain[1].value
    for arm, interval in zip(("off arm", "treated arm"), plain, strict=True):
        if interval.reason:
            return Interval(value, None, None, 1, None, f"{arm}: {interval.reason}")
    rng = np.random.default_rng(seed)
    (base, base_blocks), (treat, treat_blocks) = (_resampled(pair, rng) for pair in pairs)
    with np.errstate(all="ignore"):
        draws = (base[0] / base[1]) / (treat[0] / treat[1])
    return _percentiles(value, draws, min(base_blocks, treat_blocks))


def block_length(deviations: NDArray) -> int:
    """Cycles in a block, from the deviations num - R·den of a run, in order.

    The block bootstrap's variance is a Bartlett-weighted sum of autocovariances, so the
    best length for an AR(1) series is Andrews' (Econometrica 1991, eq. 6.2 and 6.4):
    1.1447 (n 4ρ²/(1-ρ²)²)^(1/3); at least n^(1/3), and 8 to 2048 blocks.
    """
    n = len(deviations)
    square = float(deviations @ deviations)
    rho = float(deviations[1:] @ deviations[:-1]) / square if square > 0 else 0.0
    rho = min(abs(rho), 0.97)
    best = 1.1447 * (n * 4 * rho**2 / (1 - rho**2) ** 2) ** (1 / 3)
    best = max(best, n ** (1 / 3), -(-n // MOST_BLOCKS))
    return max(1, min(round(best), n // LEAST_BLOCKS))


def _plain(pair: NDArray) -> Interval:
    """The value alone, and the reason for which nothing can be resampled."""
    cycles = pair.shape[1]
    unknown = _unknown(pair)
    if unknown:
        return Interval(None, None, None, 1, None, f"unknown in {unknown} of {cycles} cycles")
    num, den = pair.sum(axis=1)
    if den == 0:
        return Interval(None, None, None, 1, None, NOTHING)
    value = float(num / den)
    if cycles == 1:
        reason = "one time for the whole run: no cycles to resample"
        return Interval(value, None, None, 1, None, reason)
    if cycles < LEAST_BLOCKS:
        return Interval(value, None, None, 1, None, f"only {cycles} cycles: too few to resample")
    return Interval(value, None, None, 1, None)


def _resampled(pair: NDArray, rng: np.random.Generator) -> tuple[NDArray, int]:
    """Sums of `RESAMPLES` resamples, shape (2, RESAMPLES), and the number of blocks in each."""
    n = pair.shape[1]
    num, den = pair.sum(axis=1)
    length = block_length(pair[0] - num / den * pair[1])
    blocks = -(-n // length)
    draws = rng.integers(0, n, size=(RESAMPLES, blocks))
    return np.array([_block_sums(row, length)[draws].sum(axis=1) for row in pair]), blocks


def _block_sums(row: NDArray, length: int) -> NDArray:
    """Sum of the `length` cycles from each cycle on, the run closed to a ring.

    Differences of running sums, taken about the mean: ten million cycles would lose a
    small spread to rounding.
    """
    mean = row.mean()
    run = np.concatenate([[0.0], row, row[: length - 1]])
    run[1:] -= mean
    np.cumsum(run, out=run)
    return run[length:] - run[:-length] + mean * length


def _percentiles(value: float, draws: NDArray, blocks: int) -> Interval:
    from scipy.special import ndtr, stdtrit

    if not np.isfinite(draws).all():
        reason = "a resample had nothing in the denominator"
        return Interval(value, None, None, 1, None, reason)
    # A few blocks resampled spread too little: by (k-1)/k, and without Student's tails.
    tail = float(ndtr(-np.sqrt(blocks / (blocks - 1)) * stdtrit(blocks - 1, 1 - TAIL)))
    lo, hi = np.quantile(draws, [tail, 1 - tail])
    return Interval(value, float(min(lo, value)), float(max(hi, value)), 1, WITHIN)
