"""Cells that tables of several pages have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
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


MOST_NAMED = 4
_FIGURE = re.compile(r"[+\-−]?\d[\d.,]*(?= ?%)")


def remarks(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Remarks of named rows, each with whom it is about; of those alike but for a percentage
    only the worst.
    """
    alike: dict[str, list[tuple[str, str]]] = {}
    for name, row in rows:
        for text in row["remarks"]:
            alike.setdefault(_FIGURE.sub("#", text), []).append((name, text))
    said = []
    for found in alike.values():
        names = list(dict.fromkeys(name for name, _ in found))
        if len({text for _, text in found}) > 1:
            name, text = max(found, key=lambda pair: _size(pair[1]))
            who = f"{name}, the most of {len(names)} rows"
        else:
            text = found[0][1]
            every = len(names) == len(rows) and len(rows) > 1
            few = words.listed(names) if len(names) <= MOST_NAMED else f"{len(names)} rows"
            who = "every row" if every else few
        said.append(f"{who}: {text}")
    return f"Remarks: {'; '.join(said)}." if said else ""


def _size(text: str) -> float:
    figure = _FIGURE.search(text)
    return abs(float(figure.group().replace("−", "-").replace(",", ""))) if figure else 0.0


def with_sql(
    rows: pl.DataFrame, query: Callable[[Mapping[str, Any]], str] = evidence.cycles
) -> pl.DataFrame:
    """`rows` with the query for the rows behind each, for those who take the table away."""
    return rows.with_columns(sql=pl.Series([query(row) for row in rows.iter_rows(named=True)]))


def one(value: float | None) -> str:
    return words.number(value, 1)


def two(value: float | None) -> str:
    return words.number(value, 2)
