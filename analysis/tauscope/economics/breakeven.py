"""Break-even: the acceptance at which speculation neither gains nor loses.

Always an acceptance, never a number of emitted tokens. Formulas: "Break-even" in the
definitions of the metrics; V there is what a bet pays, snapshot and repair included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from scipy.special import stdtrit

from tauscope import arms, stats
from tauscope.economics import sums
from tauscope.economics.costs import Costs

SCHEMA = {
    **{name: pl.Boolean if name == "simulated" else pl.String for name in sums.GROUP},
    "breakeven": pl.Float64, "breakeven_lo": pl.Float64, "breakeven_hi": pl.Float64,
    "bet_breakeven": pl.Float64, "bet_breakeven_lo": pl.Float64, "bet_breakeven_hi": pl.Float64,
    "committed_acceptance": pl.Float64, "bets": pl.Int64, "bet_share": pl.Float64,
    "formula": pl.String, "why": pl.String,
}  # fmt: skip
ONE_PASS = "((V + d/q)/T - 1)/k"
TWO_PASS = "((d1 + d + V)/T - 1 + (missed d1 + folded (d1 + d))/(bets T))/k"


def table(found: list[Costs]) -> pl.DataFrame:
    """One row an arm that drafts: columns of SCHEMA; acceptances as fractions (above 1: never)."""
    rows = []
    for costs in found:
        if not costs.drafts:
            continue
        why = costs.missing()
        none = stats.Interval(None, None, None, 0, None, why)
        whole, single = (none, none) if why else (run(costs), bet(costs))
        bets, cycles = costs.sum("bets"), costs.sum("timed_cycles")
        rows.append({
            **costs.key, **_ends("breakeven", whole), **_ends("bet_breakeven", single),
            "committed_acceptance": arms.ratio(costs.counts, "committed_acceptance"),
            "bets": arms.whole(bets), "bet_share": bets / cycles if cycles else None,
            "formula": TWO_PASS if costs.two_pass else ONE_PASS, "why": why,
        })  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def run(costs: Costs) -> stats.Interval:
    """a*, the acceptance at which the run as a whole breaks even.

    d/q is the drafting of all cycles over the bets: folds pay it too. With a base pass of its
    own (two-pass) draft 1 is judged for free, stands in no field, and is paid by misses too.
    Call it only where `costs.missing()` is None.
    """
    d1, two = costs.free_draft_ms, costs.two_pass

    def value(s: dict[str, Any]) -> Any:
        per_bet = (s["bet_ms"] + s["draft_ms"]) / s["bets"]
        if two:
            per_bet = per_bet + d1 * (s["missed"] + s["folds"] + s["bets"]) / s["bets"]
        return (per_bet / (s["step_num"] / s["step_den"]) - 1) * s["bets"] / s["bet_verified"]

    return _interval(
        costs, value, ("bet_ms", "draft_ms", "bets", "bet_verified", "missed", "folds")
    )


def bet(costs: Costs) -> stats.Interval:
    """a_bet, the acceptance at which one more bet pays, its draft being made: (V − T)/λ a draft."""

    def value(s: dict[str, Any]) -> Any:
        extra = s["bet_ms"] / s["bets"] - s["step_num"] / s["step_den"]
        return extra / (s["total_ms"] / s["total_tokens"]) * s["bets"] / s["bet_verified"]

    if costs.ms_per_token is None:
        return stats.Interval(None, None, None, 0, None, "the run's own time per token is unknown")
    return _interval(costs, value, ("bet_ms", "bets", "bet_verified", "total_ms", "total_tokens"))


def _interval(costs: Costs, value: Any, names: tuple[str, ...]) -> stats.Interval:
    """`value` of the sums, by the jackknife over clusters (each left out in turn, t on n − 1).

    A plain step from other clusters than the arm's own stands as a constant.
    """
    source = costs.step.best
    columns = {name: costs.rows[name].to_numpy().astype(float) for name in names}
    if source.clusters == costs.rows["cluster"].to_list():
        columns |= {"step_num": source.num, "step_den": source.den}
        fixed = {}
    else:
        fixed = {"step_num": source.num.sum(), "step_den": source.den.sum()}
    totals = {name: column.sum() for name, column in columns.items()}
    point = float(value(totals | fixed))
    n = costs.rows.height
    if n < 2:
        return stats.Interval(point, None, None, n, None, stats.ONE)
    with np.errstate(all="ignore"):
        left = value({name: totals[name] - column for name, column in columns.items()} | fixed)
    if not np.isfinite(left).all():
        reason = "all bets are in one cluster: no spread to see"
        return stats.Interval(point, None, None, n, None, reason)
    spread = float(np.sqrt((n - 1) / n * ((left - left.mean()) ** 2).sum()))
    half = float(stdtrit(n - 1, 1 - stats.TAIL)) * spread
    return stats.Interval(point, point - half, point + half, n, "jackknife-t")


def _ends(name: str, interval: stats.Interval) -> dict[str, float | None]:
    return {name: interval.value, f"{name}_lo": interval.lo, f"{name}_hi": interval.hi}
