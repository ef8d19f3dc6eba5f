"""Speed-up of each treated arm over its off arm, workload by workload, with a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from tauscope import catalog, metrics, schema, stats, within
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
    drifts = _drifts(data, where)
    rows = []
    for key, cell in sums.group_by(CELL, maintain_order=True):
        base = cell.filter(pl.col("arm") == schema.OFF)
        untreated = pl.col("arm").is_in([schema.OFF, schema.SHADOW, schema.UNLABELLED])
        for (arm,), treated in cell.filter(~untreated).group_by("arm", maintain_order=True):
            names = dict(zip(CELL, key, strict=True))
            rows.append(_row(data, {**names, "arm": arm}, base, treated, drifts))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row").sort(
        "simulated", *CELL[2:], "arm", "workload", maintain_order=True
    )


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
        untreated = pl.col("arm").is_in([schema.OFF, schema.SHADOW, schema.UNLABELLED])
        for (arm,), treated in cell.filter(~untreated).group_by("arm", maintain_order=True):
            both = set(base["workload"]) & set(treated["workload"])
            names = {**dict(zip(CELL[1:], key, strict=True)), "arm": arm}
            shared = pl.col("workload").is_in(both)
            interval, _, _, pairs = _interval(None, {}, base.filter(shared), treated.filter(shared))
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
) -> dict[str, Any]:
    every_base, every_treated = base, treated
    interval, base, treated, pairs = _interval(data, key, base, treated)
    both = pl.concat([base, treated])
    share = _ratio(treated, "drafting_share")
    moves = drifts.filter(
        pl.all_horizontal(pl.col(name).eq_missing(pl.lit(key[name])) for name in CELL),
        pl.col("arm").is_in([schema.OFF, key["arm"]]),
    )["drift"]
    worst = moves.gather([moves.abs().arg_max()]).to_list() if len(moves) else [None]
    open_tokens = [_open_tokens(arm) for arm in (base, treated)]
    known = [pair for pair in open_tokens if pair[0] is not None]
    # The arm that leaves more open counts; an off arm without cycle lines has no ledger.
    gap, made, requests = max(known, key=lambda pair: abs(pair[0])) if known else (None,) * 3
    tokens_base, tokens_treated = _tokens(base), _tokens(treated)
    evidence = Evidence(
        speedup=interval, basis=MEASURED, clusters=interval.clusters, pairs=pairs,
        verified=_whole(_strict_sum(treated, "committed_acceptance_den")),
        drafting_share=share, unattributed_tokens=gap, generated_tokens=made, requests=requests,
        baseline_drafts=_any(every_base, "baseline_drafts"),
        outputs_equal=_outputs_equal(base, treated) if pairs else None,
        tokens_base=tokens_base, tokens_treated=tokens_treated, drift=worst[0],
    )  # fmt: skip
    said = None, []
    if interval.value is not None:
        said = verdict(evidence)
    notes = remarks(evidence) if interval.value is not None else []
    if every_base["time_basis"].first() != every_treated["time_basis"].first():
        notes.append("the arms' times come from different sources: see time_basis")
    if interval.value is not None and not pairs:
        notes.append("prompts have no names: each request counts as a prompt of its own")
    return {
        **key, "baseline": schema.OFF, "basis": MEASURED,
        "speedup": interval.value, "speedup_lo": interval.lo, "speedup_hi": interval.hi,
        "speedup_method": interval.method, "speedup_why": interval.reason,
        "base_ms_per_token": _ratio(base, "ms_per_token"),
        "ms_per_token": _ratio(treated, "ms_per_token"),
        "base_time_basis": base["time_basis"].first(),
        "time_basis": treated["time_basis"].first(),
        "clusters": interval.clusters, "pairs": pairs, "verified": evidence.verified,
        "drafting_share": share, "generated_tokens": made, "unattributed_tokens": gap,
        "requests": both["requests"].sum(), "baseline_drafts": evidence.baseline_drafts,
        "outputs_equal": evidence.outputs_equal, "base_tokens": tokens_base,
        "tokens": tokens_treated, "drift": worst[0],
        "verdict": said[0], "reasons": said[1], "remarks": notes,
    }  # fmt: skip


def _interval(
    data: catalog.Catalog | None, key: Mapping[str, Any], base: pl.DataFrame, treated: pl.DataFrame
) -> tuple[stats.Interval, pl.DataFrame, pl.DataFrame, int]:
    """The speed-up, the clusters of both arms that it rests on, and how many are pairs."""

    def none(reason: str) -> tuple[stats.Interval, pl.DataFrame, pl.DataFrame, int]:
        return stats.Interval(None, None, None, 0, None, reason), base, treated, 0

    if base.is_empty():
        return none("no off arm with the same workload, model, machine and experiment")
    named = [arm.filter(pl.col("named")) for arm in (base, treated)]
    paired = bool(named[0].height and named[1].height)
    if paired:
        base = named[0].join(named[1], on="cluster", how="semi").sort("cluster")
        treated = named[1].join(named[0], on="cluster", how="semi").sort("cluster")
        if base.is_empty():
            return none("the arms have no prompt in common")
    if base["unweighted"].any() or treated["unweighted"].any():
        return none("speeds without token counts can't be added up; import with --tokens N")
    columns = [arm[f"ms_per_token_{end}"].to_numpy()
               for arm in (base, treated) for end in ("num", "den")]  # fmt: skip
    if any(arm["time_basis"].null_count() for arm in (base, treated)):
        return none("some requests have neither cycle times nor a decode time")
    found = stats.speedup(*columns, paired)
    lone = base.height == 1 and treated.height == 1
    timed = all(arm["time_basis"].first() == "cycles" for arm in (base, treated))
    if found.lo is None and lone and data is not None:
        if timed:
            cells = []
            for arm in (schema.OFF, key["arm"]):
                values = metrics.cycle_values(data, {**key, "arm": arm})
                cells += [
                    values["ms_per_token_num"].to_numpy(),
                    values["ms_per_token_den"].to_numpy(),
                ]
            found = within.within_run_speedup(*cells)
        else:
            reason = "one prompt, and an arm with one time for the whole run: no spread to see"
            found = stats.Interval(found.value, None, None, 1, None, reason)
    return found, base, treated, base.height if paired else 0


def _drifts(data: catalog.Catalog, where: Mapping[str, Any]) -> pl.DataFrame:
    condition, params = catalog.selection(where)
    return data.run(catalog.sql_text("drift").replace("{where}", condition), "drift", params)


def _ratio(rows: pl.DataFrame, name: str) -> float | None:
    """Σ <name>_num / Σ <name>_den over clusters; None where a sum is unknown or nothing divides."""
    num, den = (_strict_sum(rows, f"{name}_{end}") for end in ("num", "den"))
    return num / den if num is not None and den else None


def _strict_sum(rows: pl.DataFrame, name: str) -> float | None:
    column = rows[name]
    return None if rows.is_empty() or column.null_count() else float(column.sum())


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _tokens(rows: pl.DataFrame) -> int | None:
    """Tokens that an arm made: what the engine says, else what its cycles emitted."""
    made = _strict_sum(rows, "generated_tokens")
    if made is None and rows["requests_with_cycles"].sum() == rows["requests"].sum():
        made = _strict_sum(rows, "tau_num")
    return _whole(made)


def _open_tokens(rows: pl.DataFrame) -> tuple[int | None, int | None, int | None]:
    """(tokens made less Σ emitted, tokens made, requests) of an arm that logs its cycles."""
    if rows["requests_with_cycles"].sum() != rows["requests"].sum():
        return None, None, None
    made, emitted = _strict_sum(rows, "generated_tokens"), _strict_sum(rows, "tau_num")
    if made is None or emitted is None:
        return None, None, None
    return _whole(made - emitted), _whole(made), int(rows["requests"].sum())


def _any(rows: pl.DataFrame, name: str) -> bool | None:
    """True when any is, None when none is but some are unknown (or there are no rows)."""
    return None if rows.is_empty() else rows[name].any(ignore_nulls=False)


def _outputs_equal(base: pl.DataFrame, treated: pl.DataFrame) -> bool | None:
    """Did every pair give the same output? None where an output was not recorded."""
    pairs = base.select("cluster", "outputs").join(
        treated.select("cluster", "outputs"), on="cluster", suffix="_treated"
    )
    same = pairs.select(
        pl.when(pl.col("outputs").is_not_null() & pl.col("outputs_treated").is_not_null()).then(
            pl.col("outputs") == pl.col("outputs_treated")
        )
    ).to_series()
    return same.all(ignore_nulls=False) if len(same) else None
