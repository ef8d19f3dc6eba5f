"""Cells that tables of several pages have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from tauscope.figures import evidence, palette, words
from tauscope.figures.tabling import Cell


def workload(name: str, row: Mapping[str, Any]) -> Cell:
    """The first cell of a row: what its group is called, in its workload's colour."""
    label = row["workload"]
    return Cell(name, colour=palette.workload(label), full=words.label(label, 400))


def known(value: float | None, write: Callable[[float], str] = words.count) -> Cell:
    """A value, or the word for one that nothing tells."""
    return Cell("unknown", kind="unknown") if value is None else Cell(write(value))


def unknown(reason: str | None) -> Cell:
    """A value that is not known, and why."""
    return Cell("unknown", reason or "", kind="unknown")


def with_sql(
    rows: pl.DataFrame, query: Callable[[Mapping[str, Any]], str] = evidence.cycles
) -> pl.DataFrame:
    """`rows` with the query for the rows behind each, for those who take the table away."""
    return rows.with_columns(sql=pl.Series([query(row) for row in rows.iter_rows(named=True)]))


def one(value: float | None) -> str:
    return words.number(value, 1)


def two(value: float | None) -> str:
    return words.number(value, 2)
