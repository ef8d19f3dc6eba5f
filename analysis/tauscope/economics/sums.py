"""Sums behind every cost: one query, prompt by prompt, and ratios of those sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from tauscope import catalog, stats, within

# What makes two arms comparable; an arm within one of these is a group.
CELL = ("workload", "simulated", "machine", "model", "experiment")
GROUP = (*CELL, "arm")
# Unknown in one cycle, unknown in the sum.
STRICT = (
    "emitted", "accepted", "free_accepted", "verified", "v_num", "bet_ms", "bet_verified",
    "won_ms", "lost_ms", "fold_ms",
)  # fmt: skip
# Sums over the cycles that log it, each with the number of those cycles beside it.
LOGGED = (
    "timed_cycles", "draft_ms", "d_num", "d_den", "d_tokens", "d_unlogged", "drafting",
    "bets",
    "bet_draft_ms", "bet_drafts_logged", "won", "lost", "folds", "folds_derived",
    "fold_wall_num", "fold_wall_den", "fold_decode_num", "fold_decode_den", "missed",
    "base_num", "base_den", "reported_ms", "reported_cycles", "staged_ms",
    "folds_right_num", "folds_right_den",
)  # fmt: skip


def table(data: catalog.Catalog, where: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """The query `cost_sums`: one row a (GROUP, cluster), columns STRICT, LOGGED and times."""
    condition, params = catalog.selection(where or {})
    wanted = [
        f"strict_sum(CASE WHEN timed_cycles IS NULL THEN 0 ELSE {name} END) AS {name}"
        for name in STRICT
    ]
    wanted += [f"COALESCE(SUM({name}), 0)::DOUBLE AS {name}" for name in LOGGED]
    text = catalog.sql_text("cost_sums").replace("{sums}", ",\n  ".join(wanted))
    return data.run(text.replace("{where}", condition), "cost_sums", params)


def groups(sums: pl.DataFrame) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
    """Each arm of each cell: its names and its clusters."""
    for key, rows in sums.group_by(GROUP, maintain_order=True):
        yield dict(zip(GROUP, key, strict=True)), rows


def cell(sums: pl.DataFrame, key: Mapping[str, Any]) -> pl.DataFrame:
    """Clusters of every arm in the cell of `key`."""
    return sums.filter(
        pl.all_horizontal(pl.col(name).eq_missing(pl.lit(key[name])) for name in CELL)
    )


def total(rows: pl.DataFrame, name: str) -> float | None:
    """Sum of a column over clusters; None where one is unknown."""
    column = rows[name]
    return None if rows.is_empty() or column.null_count() else float(column.sum())


def mean(
    data: catalog.Catalog,
    key: Mapping[str, Any],
    rows: pl.DataFrame,
    num: str,
    den: str,
    cells: str | None = None,
) -> stats.Interval:
    """Σ num / Σ den over clusters, with its interval.

    `cells` names the pair of columns of the query `cost_cells` that says the same cycle by
    cycle: with one prompt alone the interval is `within-run`.
    """
    found = stats.ratio(rows[num], rows[den])
    if found.value is None or found.lo is not None or cells is None:
        return found
    values = cycle_cells(data, alone(key, rows))
    return within.within_run(values[f"{cells}_num"], values[f"{cells}_den"])


def alone(key: Mapping[str, Any], rows: pl.DataFrame) -> dict[str, Any]:
    """The selection of the one prompt that `rows` is about, where it is one with a name."""
    prompts = rows["prompt_id"].drop_nulls().to_list() if rows.height == 1 else []
    return {**key, "prompt_id": prompts[0]} if prompts else dict(key)


def cycle_cells(data: catalog.Catalog, where: Mapping[str, Any]) -> pl.DataFrame:
    """Cycle by cycle, in order, what each adds to the means of costs: the query `cost_cells`."""
    condition, params = catalog.selection(where)
    text = catalog.sql_text("cost_cells").replace("{where}", condition)
    return data.run(text, "cost_cells", params)
