"""The metrics by name: unit, denominator and direction, and the frames that hold them.

What each metric divides by what is written in sql/macros.sql and nowhere else; here
it is only asked for, grouped, and given its interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tauscope import catalog, columns, schema, stats, texts, within


@dataclass(frozen=True, slots=True)
class Metric:
    """One ratio of sums. `kind` picks its interval; `better` is up, down or none."""

    name: str
    label: str
    unit: str
    num: str
    den: str
    kind: str
    better: str


METRICS = tuple(
    Metric(*row)
    for row in (
        ("tau", "τ, tokens per cycle", "tokens/cycle", "Σ emitted", "cycles", "ratio", "up"),
        ("tau_forward", "tokens per target pass", "tokens/pass", "Σ emitted",
         "Σ target_forwards", "ratio", "up"),
        ("committed_acceptance", "committed-draft acceptance", "ratio", "Σ accepted",
         "Σ verified, fallback cycles left out", "proportion", "up"),
        ("fold_rate", "fold rate", "ratio", "folded cycles", "all cycles", "proportion", "none"),
        ("gated_fold_rate", "gated fold rate", "ratio", "folded cycles with a margin",
         "cycles whose margin the gate read", "proportion", "none"),
        ("draft_hit_rate", "draft hit rate", "ratio", "Σ (free_accepted + accepted)",
         "Σ (free_checked + verified)", "proportion", "up"),
        ("draft_yield", "draft yield", "ratio", "Σ (free_accepted + accepted)", "Σ drafted",
         "proportion", "up"),
        ("draft_accuracy", "draft accuracy", "ratio", "first draft right",
         "cycles in which that is known, folds included", "proportion", "up"),
        ("drafting_share", "drafting share", "ratio", "cycles with drafted > 0", "all cycles",
         "proportion", "none"),
        ("verify_draft_ratio", "verification over draft", "×", "Σ verify_ms over bets",
         "Σ draft_ms over bets", "ratio", "none"),
        ("ms_per_token", "time per token", "ms/token", "decode time", "tokens", "ratio", "down"),
    )
)  # fmt: skip
BY_NAME = {metric.name: metric for metric in METRICS}
# Metrics whose sums come straight from the cycles; ms_per_token chooses its source.
_SUMMED = tuple(m.name for m in METRICS if m.name != "ms_per_token")
HIDDEN = (
    "cycles may be missing from the log: record with DS4_MTP_TIMING=1 and DS4_MTP_SPEC_LOG=1, "
    "or import with --tokens N where the log holds one request and its cycles add up to N; a "
    "refused row and a log that its engine truncated make it so too"
)
COUNTS = (
    "requests", "requests_with_cycles", "cycles", *schema.OUTCOMES, "warmup_cycles",
)  # fmt: skip


def clusters(
    data: catalog.Catalog,
    by: Sequence[str] = ("workload", "arm"),
    where: Mapping[str, Any] | None = None,
) -> pl.DataFrame:
    """Sums behind every metric: one row a (`by`…, cluster), columns <metric>_num and _den.

    `by` and the keys of `where` are columns of runs, requests or cycles. Simulated and real
    runs are always apart, so `simulated` is added to `by`. The arm `shadow` is an instrument:
    it is left out unless `where` asks for it. Split by columns of cycles, a row has no times
    but those of its cycles. Raises Problem for another name.
    """
    by, where = grouped_by(by), dict(where or {})
    chosen = where.pop(catalog.CYCLE_SQL, "")
    condition, params = catalog.selection(where, columns.known)
    condition += _without_shadow(where, chosen)
    dims = ", ".join(by)
    sums = ",\n  ".join(
        f"strict_sum(CASE WHEN cycles IS NULL THEN 0 ELSE {name}_{end} END) AS {name}_{end}"
        for name in _SUMMED
        for end in ("num", "den")
    )
    cell = "".join(f"{name}, " for name in by if name not in ("arm", "run_id", "request_id"))
    parts = {
        "dims": dims, "sums": sums, "cell": cell, "where": condition,
        "sums_of": _sums_of({*by, *where} - {catalog.SQL}, chosen),
    }  # fmt: skip
    return data.run(texts.filled("clusters", parts), "clusters", params)


def _without_shadow(where: Mapping[str, Any], chosen: str) -> str:
    """A condition that leaves the instrument out, where nothing asks for it."""
    asked = "arm" in where or schema.SHADOW in f"{where.get(catalog.SQL)} {chosen}"
    return "" if asked else f" AND arm <> '{schema.SHADOW}'"


def _sums_of(names: set[str], chosen: str) -> str:
    """The relation that clusters sums over: request_sums, with what columns it lacks."""
    lacking = sorted(names - set(catalog.DIMENSIONS))
    if chosen or any(columns.of_cycles(name) for name in lacking):
        return f"({catalog.request_sums(lacking, chosen)})"
    if not lacking:
        return "request_sums"
    return (
        f"(SELECT s.*, {', '.join(f'a.{name}' for name in lacking)} FROM request_sums AS s "
        "LEFT JOIN asked_rows AS a ON a.run_id = s.run_id "
        "AND a.request_id IS NOT DISTINCT FROM s.request_id)"
    )


def table(
    data: catalog.Catalog,
    by: Sequence[str] = ("workload", "arm"),
    where: Mapping[str, Any] | None = None,
) -> pl.DataFrame:
    """Every metric by group, with its interval: one row a group.

    Columns: `by` and `simulated`; clusters, named (clusters with a prompt id); the counts
    of COUNTS; for each metric <m>, <m>_num, <m>_den, <m>_lo, <m>_hi, <m>_method, <m>_why;
    tokens_per_s with its bounds; time_basis; generated_tokens, emitted,
    unattributed_tokens; baseline_drafts. Units are those of METRICS.

    Arms never share a row: without `arm` in `by` it is added, and the off arm, which the
    others are held against, is left out.
    """
    by = grouped_by(by)
    treated = pl.lit(True)
    if "arm" not in by:
        by, treated = [*by[:-1], "arm", *by[-1:]], pl.col("arm") != schema.OFF
    sums = clusters(data, by, where).filter(treated)
    intervals = stats.grouped(sums, by, {m.name: m.kind for m in METRICS})
    counts = sums.group_by(by, maintain_order=True).agg(
        pl.col("named").sum().cast(pl.Int64),
        (pl.col("requests") > 0).sum().cast(pl.Int64).alias("clusters"),
        pl.col("hidden", "overlapped").any(),
        _strict("emitted"),
        *(pl.col(name).sum() for name in COUNTS),
        pl.col("time_basis").first(),
        pl.col("unweighted").any(),
        _strict("generated_tokens"),
        pl.col("baseline_drafts").any(ignore_nulls=False),
    )
    intervals = intervals.drop("clusters")
    rows = intervals.join(counts, on=by, how="left", nulls_equal=True, maintain_order="left")
    rows = _single_clusters(data, rows, by, where or {})
    return in_order(rows).with_columns(
        tokens_per_s=1000 / pl.col("ms_per_token"),
        tokens_per_s_lo=1000 / pl.col("ms_per_token_hi"),
        tokens_per_s_hi=1000 / pl.col("ms_per_token_lo"),
        unattributed_tokens=pl.when(pl.col("requests_with_cycles") > 0).then(
            pl.col("generated_tokens") - pl.col("emitted")
        ),
        ms_per_token_why=_time_reason(),
        **{f"{name}_why": _count_reason(name) for name in _SUMMED},
    )


def in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """`rows` with real before simulated, known workloads in their order, off first, shadow last."""
    ranks = {
        "simulated": {False: 0, True: 1},
        "workload": {name: place for place, name in enumerate(schema.WORKLOADS)},
        "arm": {schema.OFF: -1, schema.SHADOW: 1},
    }
    keys = []
    for name, rank in ranks.items():
        if name in rows.columns:
            other = 0 if name == "arm" else len(rank)
            keys += [pl.col(name).replace_strict(rank, default=other), pl.col(name)]
    return rows.sort(keys, nulls_last=True, maintain_order=True) if keys else rows


def grouped_by(by: Sequence[str]) -> list[str]:
    """The columns that rows are grouped by when `by` is asked for."""
    names = [columns.known(name) for name in dict.fromkeys(by)]
    return names if "simulated" in names else [*names, "simulated"]


def _strict(name: str) -> pl.Expr:
    column = pl.col(name)
    return pl.when(column.null_count() == 0).then(column.sum()).alias(name)


def _count_reason(name: str) -> pl.Expr:
    """Why a count metric is null, in words that say what to do where something can be done."""
    why = pl.col(f"{name}_why")
    missing = pl.col(f"{name}_num").is_null() | pl.col(f"{name}_den").is_null()
    return (
        pl.when((pl.col("cycles") == 0) & pl.col("overlapped"))
        .then(pl.lit("requests ran side by side: their cycles can't be told apart"))
        .when(pl.col("cycles") == 0)
        .then(pl.lit("no cycle was logged"))
        .when(missing & pl.col("hidden"))
        .then(pl.lit(HIDDEN))
        .when(missing & (pl.col("unknown") > 0))
        .then(pl.format("{} cycles of a kind whose accounting is not documented", "unknown"))
        .when(missing & (pl.col("unlogged") > 0))
        .then(pl.format("{} cycles were printed nowhere; what they drafted is unknown", "unlogged"))
        .when(missing)
        .then(pl.lit("a column it needs was not logged in some cycles"))
        .when(pl.col(name).is_null())
        .then(pl.format("nothing to divide by: no {}", pl.lit(BY_NAME[name].den)))
        .otherwise(why)
    )


def _time_reason() -> pl.Expr:
    return (
        pl.when(pl.col("time_basis").is_not_null())
        .then(pl.col("ms_per_token_why"))
        .when(pl.col("unweighted"))
        .then(
            pl.lit(
                "speeds without token counts can't be added up; import --tokens N gives a log's "
                "count where it holds one request"
            )
        )
        .otherwise(pl.lit("some requests have neither cycle times nor a decode time"))
    )


def _single_clusters(
    data: catalog.Catalog, rows: pl.DataFrame, by: Sequence[str], where: Mapping[str, Any]
) -> pl.DataFrame:
    """Give groups of one prompt the interval that its cycles allow, labelled `within-run`."""
    alone = rows.filter((pl.col("clusters") == 1) & (pl.col("cycles") > 1))
    for group in alone.select(by).iter_rows(named=True):
        cells = cycle_values(data, {**where, **group})
        same = pl.all_horizontal(pl.col(k).eq_missing(pl.lit(v)) for k, v in group.items())
        for metric in METRICS:
            whole = rows.filter(same).row(0, named=True)
            if whole[metric.name] is None:
                continue
            if metric.name == "ms_per_token" and whole["time_basis"] != "cycles":
                continue
            num, den = cells[f"{metric.name}_num"], cells[f"{metric.name}_den"]
            found = within.within_run(num.to_numpy(), den.to_numpy(), metric.kind)
            if found.lo is None and found.reason is None:
                continue
            rows = rows.with_columns(
                pl.when(same).then(pl.lit(value, dtype=dtype)).otherwise(pl.col(name)).alias(name)
                for name, value, dtype in (
                    (f"{metric.name}_lo", found.lo, pl.Float64),
                    (f"{metric.name}_hi", found.hi, pl.Float64),
                    (f"{metric.name}_method", found.method, pl.String),
                    (f"{metric.name}_why", found.reason, pl.String),
                )
            )
    return rows


def cycle_values(data: catalog.Catalog, where: Mapping[str, Any]) -> pl.DataFrame:
    """Numerator and denominator of every metric for each cycle of a selection, in order.

    The macros of the metrics are used over groups of one cycle, so that what a cycle adds
    to a sum is not written a second time.
    """
    condition, params = catalog.selection(where, columns.known)
    parts = {"where": condition, "cycles": columns.cycles(where)}
    return data.run(texts.filled("cycle_values", parts), "cycle_values", params)


def acceptance_at(
    data: catalog.Catalog,
    by: Sequence[str] = ("workload", "arm"),
    where: Mapping[str, Any] | None = None,
) -> pl.DataFrame:
    """Acceptance by depth: one row a (`by`…, position), columns num, conditional_den,
    marginal_den, conditional, marginal. Positions count verified drafts from 1.
    """
    by, where = grouped_by(by), dict(where or {})
    condition, params = catalog.selection(where, columns.known)
    condition += _without_shadow(where, where.get(catalog.CYCLE_SQL, ""))
    parts = {
        "dims": ", ".join(by),
        "of_depths": ", ".join(f"depths.{name}" for name in by),
        "same": " AND ".join(f"depths.{n} IS NOT DISTINCT FROM bets.{n}" for n in by),
        "cycles": columns.cycles({**where, **dict.fromkeys(by)}),
        "where": condition,
    }
    return data.run(texts.filled("acceptance_at", parts), "acceptance_at", params)
