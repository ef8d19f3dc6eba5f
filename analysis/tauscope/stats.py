"""Intervals for ratios of sums, at 95 %, over clusters of cycles.

Cycles of one prompt hang together, so the prompt is the unit that is drawn
again: every interval here is over clusters (prompts within a workload), by the
linearised variance of a ratio (Cochran, *Sampling Techniques*, 3rd ed., 6.4;
Taylor linearisation for clusters of unequal size) with Student's t on n - 1.
One cluster has no spread between clusters: `within.py` resamples its cycles.

What can't be known is None with a reason, never NaN and never a width of 0 by
default. A cluster with neither numerator nor denominator (a prompt without one
bet, asked for acceptance) says nothing and isn't counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

LEVEL = 0.95
TAIL = (1 - LEVEL) / 2
RATIO_T, LOGIT_T, EXACT = "ratio-t", "logit-t", "clopper-pearson"
KINDS = ("ratio", "proportion")
FLAT = 1e-24  # squared relative spread that is rounding
NOTHING = "nothing in the denominator"
ONE = "one cluster: no spread between clusters to see"
RANGE = "numbers too large or too small to reckon with"
OUTSIDE = "numerator outside 0 … denominator: not a share"


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its 95 % interval; `reason` says why a bound is None."""

    value: float | None
    lo: float | None
    hi: float | None
    clusters: int
    method: str | None
    reason: str | None = None

    def above(self, bar: float) -> bool:
        """The whole interval lies above `bar`."""
        return self.lo is not None and self.lo > bar

    def below(self, bar: float) -> bool:
        """The whole interval lies below `bar`."""
        return self.hi is not None and self.hi < bar


def ratio(num: ArrayLike, den: ArrayLike) -> Interval:
    """Interval of Σnum / Σden over clusters, unbounded above.

    `num`, `den`: shape (clusters,), one sum a cluster, any unit; NaN where unknown.
    Variance n/(n-1) Σ(num_i - R den_i)² / (Σden)² (Cochran 6.4), t on n - 1. A ratio of
    non-negative sums is not given a bound below 0. Raises ValueError on unequal shapes.
    """
    return _single(num, den, "ratio")


def proportion(num: ArrayLike, den: ArrayLike) -> Interval:
    """Interval of a share Σnum / Σden within [0, 1]: counts of a subset over counts.

    As `ratio`, on the logit scale: the standard error is divided by p(1 - p) (delta
    method) and the bounds are carried back. All or none, or clusters that agree to the
    last digit and so show no spread: Clopper-Pearson on the counts, which takes what was
    counted as independent. Raises ValueError on unequal shapes.
    """
    return _single(num, den, "proportion")


def speedup(
    base_num: ArrayLike,
    base_den: ArrayLike,
    treat_num: ArrayLike,
    treat_den: ArrayLike,
    paired: bool,
) -> Interval:
    """Interval of S = (Σbase_num/Σbase_den) / (Σtreat_num/Σtreat_den).

    Per cluster: ms and tokens of the baseline and of the treated arm; for a modelled step
    the folds' ms and their number stand as baseline, paired with the same clusters.

    Paired: element i of all four is one prompt; the linearised deviations of both arms are
    added before they are squared, so what moves both arms cancels. Unpaired: two sets of
    clusters, variances added, degrees of freedom by Welch and Satterthwaite; `clusters` is
    then the smaller set. Raises ValueError on shapes that don't match.
    """
    base, treat = _pair(base_num, base_den), _pair(treat_num, treat_den)
    if paired and base.shape != treat.shape:
        raise ValueError("speedup: pairs need as many clusters in both arms")
    unknown = _unknown(np.vstack([base, treat])) if paired else _unknown(base) + _unknown(treat)
    if paired:
        said = np.any(np.vstack([base, treat]) != 0, axis=0)
        base, treat = base[:, said], treat[:, said]
    else:
        base, treat = (arm[:, np.any(arm != 0, axis=0)] for arm in (base, treat))
    sizes = base.shape[1], treat.shape[1]
    clusters = min(sizes)
    if unknown:
        many = clusters if paired else sum(sizes)
        return Interval(None, None, None, clusters, None, _unknown_reason(unknown, many))
    sums = np.array([base.sum(axis=1), treat.sum(axis=1)])
    if clusters == 0 or not np.all(sums > 0):
        return Interval(None, None, None, clusters, None, "no time or no tokens in one of the arms")
    with np.errstate(all="ignore"):
        value = float((sums[0, 0] / sums[0, 1]) / (sums[1, 0] / sums[1, 1]))
        if not np.isfinite(value):
            return Interval(None, None, None, clusters, None, RANGE)
        if clusters < 2:
            reason = "one pair" if paired else "one cluster in an arm"
            return Interval(value, None, None, clusters, None, f"{reason}: no spread to see")
        # Deviations of log S; each arm's sum to 0, so no mean has to be taken off.
        up = base[0] / sums[0, 0] - base[1] / sums[0, 1]
        down = treat[0] / sums[1, 0] - treat[1] / sums[1, 1]
        if paired:
            variance, freedom = _spread(up - down), clusters - 1.0
        else:
            parts = np.array([_spread(up), _spread(down)])
            variance = float(parts.sum())
            weights = (parts**2 / (np.array(sizes) - 1)).sum()
            freedom = variance**2 / weights if weights > 0 else clusters - 1.0
        half = float(_student(np.array(freedom)) * np.sqrt(variance)) * value
    if not np.isfinite(half):
        return Interval(value, None, None, clusters, None, RANGE)
    method = "paired-t" if paired else "welch-t"
    return Interval(value, max(value - half, 0.0), value + half, clusters, method)


def grouped(frame: pl.DataFrame, by: Sequence[str], metrics: Mapping[str, str]) -> pl.DataFrame:
    """Intervals of many ratios at once: one row a group of `by`, in order of appearance.

    `frame`: one row a (by…, cluster), with `<metric>_num` and `<metric>_den`; null or NaN
    means unknown in that cluster, and makes the metric of its group null. `metrics`: name
    to `ratio` or `proportion`. Returns `by`, `clusters` (rows of the group) and, a metric,
    `<metric>`, `_num`, `_den` (sums), `_lo`, `_hi`, `_method`, `_why` (why something is
    null). The same numbers as `ratio` and `proportion` cluster by cluster give.
    Raises ValueError for a kind that is neither.
    """
    wrong = sorted(set(metrics.values()) - set(KINDS))
    if wrong:
        raise ValueError(f"grouped: {', '.join(wrong)} is no kind of ratio; use {KINDS}")
    wanted = [pl.len().cast(pl.Int64).alias("clusters")]
    for name in metrics:
        wanted += _sums(name)
    by = list(by)
    sums = frame.group_by(by, maintain_order=True).agg(wanted) if by else frame.select(wanted)
    columns: list[pl.Series] = []
    for name, kind in metrics.items():
        columns += _finish(sums, name, kind)
    return sums.select(*by, "clusters").with_columns(columns)


def _sums(name: str) -> list[pl.Expr]:
    num, den = (
        pl.when(pl.col(column).cast(pl.Float64).is_finite()).then(pl.col(column).cast(pl.Float64))
        for column in (f"{name}_num", f"{name}_den")
    )
    slope = num.sum() / den.sum()
    return [
        num.sum().alias(f"{name}#num"),
        den.sum().alias(f"{name}#den"),
        # About its own line before squaring: sums of squares would lose the small spread
        # of long prompts in rounding.
        (num - slope * den).pow(2).sum().alias(f"{name}#square"),
        ((num != 0) | (den != 0)).sum().cast(pl.Int64).alias(f"{name}#said"),
        (num.is_null() | den.is_null()).sum().cast(pl.Int64).alias(f"{name}#unknown"),
    ]


def _finish(sums: pl.DataFrame, name: str, kind: str) -> list[pl.Series]:
    num, den, square, said, unknown = (
        sums[f"{name}#{part}"].to_numpy().astype(float)
        for part in ("num", "den", "square", "said", "unknown")
    )
    rows = sums["clusters"].to_numpy()
    value, lo, hi, method, why = _limits(num, den, square, said, unknown, rows, kind)
    known = np.where(unknown > 0, np.nan, 1.0)
    floats = {"": value, "_num": num * known, "_den": den * known, "_lo": lo, "_hi": hi}
    return [
        *(
            pl.Series(f"{name}{end}", data, dtype=pl.Float64).fill_nan(None)
            for end, data in floats.items()
        ),
        pl.Series(f"{name}_method", method, dtype=pl.String),
        pl.Series(f"{name}_why", why, dtype=pl.String),
    ]


def _single(num: ArrayLike, den: ArrayLike, kind: str) -> Interval:
    pair = _pair(num, den)
    unknown = _unknown(pair)
    rows = pair.shape[1]
    x, y = np.where(np.isfinite(pair), pair, 0.0)
    total = y.sum()
    with np.errstate(all="ignore"):
        square = ((x - x.sum() / total * y) ** 2).sum()
    said = int(((x != 0) | (y != 0)).sum())
    cells = (np.array([float(cell)]) for cell in (x.sum(), total, square, said, unknown))
    *numbers, method, why = _limits(*cells, np.array([rows]), kind)
    value, lo, hi = (None if np.isnan(cell[0]) else float(cell[0]) for cell in numbers)
    return Interval(value, lo, hi, said, method[0], why[0])


def _limits(
    num: NDArray,
    den: NDArray,
    square: NDArray,
    said: NDArray,
    unknown: NDArray,
    rows: NDArray,
    kind: str,
) -> tuple[NDArray, NDArray, NDArray, list[str | None], list[str | None]]:
    """Value, bounds (NaN where null), method and reason of each row: the one definition."""
    with np.errstate(all="ignore"):
        value = np.where((unknown == 0) & (den != 0), num / den, np.nan)
        error = np.sqrt(said / (said - 1) * square) / np.abs(den)
        half = _student(said - 1) * error
        value = np.where(np.isfinite(value), value, np.nan)
        flat = square <= FLAT * num**2  # all, none, or the same share in every cluster
    share = kind == "proportion"
    outside = share & ~np.isnan(value) & ((value < 0) | (value > 1))
    able = ~np.isnan(value) & (said > 1) & ~outside
    exact = able & share & flat
    lo, hi = _logit_bounds(value, half) if share else _plain_bounds(value, half)
    if exact.any():
        low, high = clopper_pearson(num, den)
        lo, hi = np.where(exact, low, lo), np.where(exact, high, hi)
    able &= np.isfinite(lo) & np.isfinite(hi)
    exact &= able
    lo, hi = (np.where(able, bound, np.nan) for bound in (lo, hi))
    usual = LOGIT_T if share else RATIO_T
    method = [(EXACT if e else usual) if a else None for a, e in zip(able, exact, strict=True)]
    why: list[str | None] = [None] * len(value)
    for row in np.flatnonzero(~able):
        if unknown[row]:
            why[row] = _unknown_reason(int(unknown[row]), int(rows[row]))
        elif np.isnan(value[row]):
            why[row] = RANGE if den[row] else NOTHING
        elif outside[row]:
            why[row] = OUTSIDE
        else:
            why[row] = ONE if said[row] < 2 else RANGE
    return value, lo, hi, method, why


def _plain_bounds(value: NDArray, half: NDArray) -> tuple[NDArray, NDArray]:
    low = value - half
    return np.where(value >= 0, np.maximum(low, 0.0), low), value + half


def _logit_bounds(value: NDArray, half: NDArray) -> tuple[NDArray, NDArray]:
    from scipy.special import expit, logit

    with np.errstate(all="ignore"):
        centre, reach = logit(value), half / (value * (1 - value))
        # Carried there and back a bound can miss the value by a rounding.
        return np.minimum(expit(centre - reach), value), np.maximum(expit(centre + reach), value)


def clopper_pearson(num: NDArray, den: NDArray) -> tuple[NDArray, NDArray]:
    """Exact binomial bounds of `num` out of `den` (Clopper and Pearson 1934), any shape."""
    from scipy.special import betaincinv

    rest = den - num
    # The beta distribution has no zero parameter: the bound at all or none is the edge itself.
    lo = betaincinv(np.where(num > 0, num, 1), rest + 1, TAIL)
    hi = betaincinv(num + 1, np.where(rest > 0, rest, 1), 1 - TAIL)
    return np.where(num > 0, lo, 0.0), np.where(rest > 0, hi, 1.0)


def _spread(deviations: NDArray) -> float:
    """Variance of a sum of n cluster deviations that add to 0."""
    n = len(deviations)
    return n / (n - 1) * float((deviations**2).sum())


def _student(freedom: NDArray) -> NDArray:
    # scipy.special, not scipy.stats: the latter takes over a second to import.
    from scipy.special import stdtrit

    return stdtrit(freedom, 1 - TAIL)


def _pair(num: ArrayLike, den: ArrayLike) -> NDArray:
    x, y = np.atleast_1d(np.asarray(num, dtype=float)), np.atleast_1d(np.asarray(den, dtype=float))
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"numerator {x.shape} and denominator {y.shape} don't match; want (n,)")
    return np.vstack([x, y])


def _unknown(cells: NDArray) -> int:
    return int((~np.isfinite(cells)).any(axis=0).sum())


def _unknown_reason(unknown: int, clusters: int) -> str:
    return f"unknown in {unknown} of {clusters} clusters"
