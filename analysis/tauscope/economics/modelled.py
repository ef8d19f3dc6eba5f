"""Speed-up from the costs of one arm alone: T × τ over its mean cycle, with a verdict.

For runs without a clean off arm beside them, and to hold the cost model against what was
measured. Never in one column with a measured speed-up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from tauscope import arms, catalog, schema, stats, within
from tauscope.economics import step, sums
from tauscope.economics.costs import Costs
from tauscope.verdict import MODELLED, Evidence, remarks, verdict

SCHEMA = {
    **{name: pl.Boolean if name == "simulated" else pl.String for name in sums.GROUP},
    "basis": pl.String, "speedup": pl.Float64, "speedup_lo": pl.Float64, "speedup_hi": pl.Float64,
    "speedup_method": pl.String, "speedup_why": pl.String,
    "slower_step_speedup": pl.Float64, "slower_step_lo": pl.Float64, "slower_step_hi": pl.Float64,
    "step_ms": pl.Float64, "step_source": pl.String, "sources_gap": pl.Float64,
    "ms_per_token": pl.Float64, "time_basis": pl.String, "clusters": pl.Int64,
    "verified": pl.Int64, "drafting_share": pl.Float64, "unattributed_tokens": pl.Float64,
    "drift": pl.Float64, "verdict": pl.String, "reasons": pl.List(pl.String),
    "remarks": pl.List(pl.String),
}  # fmt: skip
OFF_ALONE = "no folded cycle, base decode or drafting off arm to take the plain step from"


def table(
    data: catalog.Catalog, found: list[Costs], where: Mapping[str, Any] | None = None
) -> pl.DataFrame:
    """One row an arm that drafts: columns of SCHEMA, `basis` always `modelled`.

    The verdict must also hold with T + 0.3 ms (`slower_step_*`) where T is the decode time
    of folds, and fails when sources of T differ by more than 3 %.
    """
    moves = arms.drifts(data, where or {})
    rows = [_row(data, costs, found, moves) for costs in found if costs.drafts]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def speedup(data: catalog.Catalog, costs: Costs, source: step.Source) -> stats.Interval:
    """T of `source` over the arm's own time per token: S, paired by prompt where it can be."""
    if costs.ms_per_token is None:
        reason = "the arm's own time per token is unknown"
        return stats.Interval(None, None, None, 0, None, reason)
    found = step.over(source, costs.rows, "total_ms", "total_tokens", invert=True)
    if found.value is None or found.lo is not None or costs.rows.height > 1:
        return found
    if costs.rows["time_basis"].first() != "cycles" or source.name not in ("folds", "base"):
        return stats.Interval(found.value, None, None, 1, None, arms.ONE_TIME)
    cells = sums.cycle_cells(data, sums.alone(costs.key, costs.rows))
    name = {"folds": "fold_wall", "base": "base"}[source.name]
    mine = cells.filter(pl.col(f"{name}_den") > 0)
    return within.within_run_speedup(
        mine[f"{name}_num"], mine[f"{name}_den"], cells["wall_num"], cells["wall_den"]
    )


def _row(
    data: catalog.Catalog, costs: Costs, found: list[Costs], moves: pl.DataFrame
) -> dict[str, Any]:
    source = costs.step.modelled()
    slower = None
    if source is None:
        interval = stats.Interval(None, None, None, 0, None, OFF_ALONE)
    else:
        interval = speedup(data, costs, source)
        if source.name == "folds_decode":
            later = replace(source, num=source.num + step.SAMPLING_MS * source.den)
            slower = speedup(data, costs, later)
    gap = costs.step.gap(source)[0] if source else None
    open_, made, requests = arms.open_tokens(costs.counts)
    off = [c.rows for c in found if c.key == {**costs.key, "arm": schema.OFF}]
    mine = moves.filter(
        pl.all_horizontal(pl.col(n).eq_missing(pl.lit(costs.key[n])) for n in sums.GROUP)
    )
    evidence = Evidence(
        speedup=interval, basis=MODELLED, clusters=costs.rows.height,
        verified=arms.whole(arms.strict_sum(costs.counts, "committed_acceptance_den")),
        drafting_share=arms.ratio(costs.counts, "drafting_share"),
        unattributed_tokens=open_, generated_tokens=made, requests=requests,
        baseline_drafts=arms.any_true(off[0], "baseline_drafts") if off else None,
        sources_gap=gap, drift=arms.worst(mine["drift"]), speedup_slower_step=slower,
    )  # fmt: skip
    said, notes = (None, []), []
    if interval.value is not None:
        said, notes = verdict(evidence), remarks(evidence)
    return {
        **costs.key, "basis": MODELLED, "speedup": interval.value, "speedup_lo": interval.lo,
        "speedup_hi": interval.hi, "speedup_method": interval.method,
        "speedup_why": interval.reason,
        "slower_step_speedup": slower.value if slower else None,
        "slower_step_lo": slower.lo if slower else None,
        "slower_step_hi": slower.hi if slower else None,
        "step_ms": source.ms.value if source else None,
        "step_source": source.name if source else None, "sources_gap": gap,
        "ms_per_token": costs.ms_per_token, "time_basis": costs.rows["time_basis"].first(),
        "clusters": costs.rows.height, "verified": evidence.verified,
        "drafting_share": evidence.drafting_share, "unattributed_tokens": open_,
        "drift": evidence.drift, "verdict": said[0], "reasons": said[1], "remarks": notes,
    }  # fmt: skip
