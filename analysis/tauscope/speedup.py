"""Speed-up of each treated arm over its off arm, workload by workload, with a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from tauscope import arms, catalog, metrics, schema, stats
from tauscope.verdict import MEASURED, Evidence, remarks, sign_flips, verdict

# Arms are only held against each other within one of these.
CELL = ("workload", "simulated", "machine", "model", "experiment")
SCHEMA = {
    **{name: pl.Boolean if name == "simulated" else pl.String for name in CELL},
    "arm": pl.String, "baseline": pl.String, "basis": pl.String,
    "speedup": pl.Float64, "speedup_lo": pl.Float64, "speedup_hi": pl.Float64,
    "speedup_method": pl.String, "speedup_why": pl.String,
    "base_ms_per_token": pl.Float64, "ms_per_token": pl.Float64,
    "base_time_basis": pl.String, "time_basis": pl.String,
    "clusters": pl.Int64, "pairs": pl.Int64, "verified": pl.Int64, "drafting_share": pl.Float64,
    "generated_tokens": pl.Float64, "unattributed_tokens": pl.Float64, "requests": pl.Int64,
    "baseline_drafts": pl.Boolean, "outputs_equal": pl.Boolean,
    "base_tokens": pl.Float64, "tokens": pl.Float64, "drift": pl.Float64,
    "verdict": pl.String, "reasons": pl.List(pl.String), "remarks": pl.List(pl.String),
}  # fmt: skip


def table(data: catalog.Catalog, where: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """One row a (workload, machine, model, experiment, treated arm): columns of SCHEMA.

    `speedup` is the off arm's ms_per_token over the treated arm's: 1.06 is 6 % faster.
    The arms `off`, `shadow` and `unlabelled` are never treated ones. Where prompts are
    named, only those that both arms ran count. Null with `speedup_why` where there is none.
    """
    where = where or {}
    by = (*CELL, "arm")
    sums = metrics.clusters(data, by, where)
    drifts, order = arms.drifts(data, where), arms.orders(data, where)
    rows = []
    for key, cell in sums.group_by(CELL, maintain_order=True):
        base = cell.filter(pl.col("arm") == schema.OFF)
        untreated = pl.col("arm").is_in(arms.UNTREATED)
        for (arm,), treated in cell.filter(~untreated).group_by("arm", maintain_order=True):
            names = dict(zip(CELL, key, strict=True))
            turns = arms.interleaved(order, names, (schema.OFF, arm))
            rows.append(_row(data, {**names, "arm": arm}, base, treated, drifts, turns))
    return metrics.in_order(pl.DataFrame(rows, schema=SCHEMA, orient="row"))


def flips(rows: pl.DataFrame) -> pl.DataFrame:
    """Pairs of workloads on opposite sides of 1 under one arm: columns CELL[1:], arm, gains, loses.

    Where there is one, a figure pooled over the workloads hides it.
    """
    shared = [*CELL[1:], "arm"]
    found = []
    for key, group in rows.filter(pl.col("verdict").is_not_null()).group_by(
        shared, maintain_order=True
    ):
        intervals = [
            (w, stats.Interval(s, lo, hi, 0, None))
            for w, s, lo, hi in group.select(
                "workload", "speedup", "speedup_lo", "speedup_hi"
            ).iter_rows()
        ]
        found += [(*key, *pair) for pair in sign_flips(intervals)]
    kinds = {name: SCHEMA[name] for name in shared}
    return pl.DataFrame(
        found, schema={**kinds, "gains": pl.String, "loses": pl.String}, orient="row"
    )


def pooled(data: catalog.Catalog, where: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Speed-up over all workloads together: one row an arm and machine, columns of SCHEMA.

    A true figure of this mix of prompts and of no other; shown struck out beside a flip.
    """
    sums = metrics.clusters(data, (*CELL, "arm"), where or {})
    rows = []
    for key, cell in sums.group_by(CELL[1:], maintain_order=True):
        if cell["workload"].n_unique() < 2:
            continue
        base = cell.filter(pl.col("arm") == schema.OFF)
        untreated = pl.col("arm").is_in(arms.UNTREATED)
        for (arm,), treated in cell.filter(~untreated).group_by("arm", maintain_order=True):
            both = set(base["workload"]) & set(treated["workload"])
            names = {**dict(zip(CELL[1:], key, strict=True)), "arm": arm}
            shared = pl.col("workload").is_in(both)
            interval, _, _, pairs = arms.interval(base.filter(shared), treated.filter(shared))
            rows.append(
                {**names, "baseline": schema.OFF, "basis": MEASURED, "speedup": interval.value,
                 "speedup_lo": interval.lo, "speedup_hi": interval.hi, "pairs": pairs,
                 "speedup_why": interval.reason, "clusters": interval.clusters}
            )  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA, orient="row").drop("workload")


def _row(
    data: catalog.Catalog,
    key: dict[str, Any],
    base: pl.DataFrame,
    treated: pl.DataFrame,
    drifts: pl.DataFrame,
    interleaved: bool,
) -> dict[str, Any]:
    every_base, every_treated = base, treated
    interval, base, treated, pairs = arms.interval(
        base, treated, lambda cluster: _cells(data, key, cluster)
    )
    both = pl.concat([base, treated])
    share = arms.ratio(treated, "drafting_share")
    moves = drifts.filter(
        pl.all_horizontal(pl.col(name).eq_missing(pl.lit(key[name])) for name in CELL),
        pl.col("arm").is_in([schema.OFF, key["arm"]]),
    )["drift"]
    moved = arms.worst(moves)
    gap, made, requests = arms.ledger(base, treated)
    tokens_base, tokens_treated = arms.tokens(base), arms.tokens(treated)
    evidence = Evidence(
        speedup=interval, basis=MEASURED, clusters=interval.clusters, pairs=pairs,
        verified=arms.whole(arms.strict_sum(treated, "committed_acceptance_den")),
        drafting_share=share, unattributed_tokens=gap, generated_tokens=made, requests=requests,
        baseline_drafts=arms.any_true(every_base, "baseline_drafts"),
        outputs_equal=arms.outputs_equal(base, treated) if pairs else None,
        tokens_base=tokens_base, tokens_treated=tokens_treated, drift=moved,
        interleaved=interleaved,
    )  # fmt: skip
    said = None, []
    if interval.value is not None:
        said = verdict(evidence)
    notes = remarks(evidence) if interval.value is not None else []
    sources = {every_base["time_basis"].first(), every_treated["time_basis"].first()} - {None}
    if len(sources) > 1:
        notes.append("the arms' times come from different sources: see time_basis")
    if interval.value is not None and not pairs:
        notes.append("prompts have no names: each request counts as a prompt of its own")
    return {
        **key, "baseline": schema.OFF, "basis": MEASURED,
        "speedup": interval.value, "speedup_lo": interval.lo, "speedup_hi": interval.hi,
        "speedup_method": interval.method, "speedup_why": interval.reason,
        "base_ms_per_token": arms.ratio(base, "ms_per_token"),
        "ms_per_token": arms.ratio(treated, "ms_per_token"),
        "base_time_basis": base["time_basis"].first(),
        "time_basis": treated["time_basis"].first(),
        "clusters": interval.clusters, "pairs": pairs, "verified": evidence.verified,
        "drafting_share": share, "generated_tokens": made, "unattributed_tokens": gap,
        "requests": both["requests"].sum(), "baseline_drafts": evidence.baseline_drafts,
        "outputs_equal": evidence.outputs_equal, "base_tokens": tokens_base,
        "tokens": tokens_treated, "drift": moved,
        "verdict": said[0], "reasons": said[1], "remarks": notes,
    }  # fmt: skip


def _cells(data: catalog.Catalog, key: Mapping[str, Any], cluster: str) -> list:
    """Cycles' ms and tokens of the off arm and of the treated one, in order.

    `cluster` is the prompt that both ran, or empty where prompts have no names.
    """
    chosen = dict(key)
    if cluster:
        chosen["prompt_id"] = cluster.removeprefix(f"{key['workload']}/")
    cells = []
    for arm in (schema.OFF, key["arm"]):
        values = metrics.cycle_values(data, {**chosen, "arm": arm})
        cells += [values[f"ms_per_token_{end}"].to_numpy() for end in ("num", "den")]
    return cells
