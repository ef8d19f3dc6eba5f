"""Groups of rows as charts and tables show them: in one order, under short names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from tauscope.figures import palette, words

# What tells groups of one workload apart, in the order in which a name says it.
DIMS = ("arm", "simulated", "machine", "model", "experiment")


def ordered(rows: pl.DataFrame) -> pl.DataFrame:
    """Real rows before simulated ones, workloads as they are always shown, else as they were."""
    if rows.is_empty():
        return rows
    rank = {label: place for place, label in enumerate(palette.in_order(rows["workload"]))}
    kinds = [pl.col("simulated").fill_null(False)] if "simulated" in rows.columns else []
    place = pl.col("workload").replace_strict(rank, return_dtype=pl.Int64)
    return rows.sort(*kinds, place, maintain_order=True)


def keys(rows: pl.DataFrame) -> list[str]:
    """The columns of `rows` that make a group."""
    return ["workload", *(name for name in DIMS if name in rows.columns)]


def named(rows: pl.DataFrame) -> pl.DataFrame:
    """`rows` with `row`, a short name of the group, the same for all rows of one group."""
    groups = rows.select(keys(rows)).unique(maintain_order=True)
    names = words.row_names(groups.to_dicts(), DIMS)
    return rows.join(
        groups.with_columns(row=pl.Series(names, dtype=pl.String)), on=keys(rows),
        nulls_equal=True, maintain_order="left",
    )  # fmt: skip


def rows_of(rows: pl.DataFrame) -> Sequence[tuple[str, dict[str, Any]]]:
    """(name, row) of every row."""
    return [(row["row"], row) for row in named(rows).to_dicts()]


def under(rows: pl.DataFrame) -> str:
    """`under block3 (real) and mtp1 (simulated)`: the arms of rows that show one arm a group."""
    pairs = rows.select("arm", "simulated").unique(maintain_order=True).rows()
    shown = [f"{words.label(arm, 24)} ({words.made(simulated)})" for arm, simulated in pairs]
    return f"under {words.listed(shown)}"
