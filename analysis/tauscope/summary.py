"""All that metrics.md defines for each group, in one row: what `tauscope metrics` tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from tauscope import arms, catalog, metrics, schema, speedup, turns

# Of a row of speedup.table, what goes with a row of metrics.
_GAINS = (
    "baseline", "basis", "speedup", "speedup_lo", "speedup_hi", "speedup_method", "speedup_why",
    "base_ms_per_token", "base_time_basis", "pairs", "outputs_equal", "drift",
    "verdict", "reasons", "remarks",
)  # fmt: skip
_STEPS = ("verify_step_ratio", "verify_step_ratio_lo", "verify_step_ratio_hi")
_TURNS = {"treated_s": "seconds_per_request", "saved_s": "seconds_saved_per_request",
          "saved_s_lo": "seconds_saved_per_request_lo",
          "saved_s_hi": "seconds_saved_per_request_hi"}  # fmt: skip
_REFERENCE = "the off arm is what the others are held against"
_PARTS = "whole workloads are compared: group by workload and arm (machine, model, experiment)"
_SEVERAL = "several machines, models or experiments are in this row: group by them too"
_CYCLES = "the condition picks cycles, and parts of requests are not compared"


def rows(
    data: catalog.Catalog,
    by: Sequence[str] = ("workload", "arm"),
    where: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """A row a group of metrics.table, with `acceptance_at` (a list, by depth) and the speed-up.

    A treated arm's row has the columns of speedup.table, `flips` (workloads on the other side
    of 1 under the same arm), verify_step_ratio and the seconds of a whole request; where there
    is no speed-up `speedup_why` tells why.
    """
    where = dict(where or {})
    table = metrics.table(data, by, where)
    keys = list(table.columns[: table.columns.index("tau")])
    depths = _depths(metrics.acceptance_at(data, keys, where), keys)
    gains = compared(data, where)
    found = []
    for row in table.iter_rows(named=True):
        own = _of(row, keys, gains)
        found.append({**row, "acceptance_at": depths.get(_key(row, keys), []), **own})
    return found


def compared(data: catalog.Catalog, where: Mapping[str, Any]) -> pl.DataFrame:
    """speedup.table with `flips`, verify_step_ratio and the seconds of a request beside.

    Empty where `where` is on columns of cycles: parts of requests are not compared.
    """
    from tauscope.economics import costs

    if not compares(where):
        return pl.DataFrame(schema={**speedup.SCHEMA, "flips": pl.List(pl.String)})
    cell = [*speedup.CELL, "arm"]
    gains = speedup.table(data, where)
    pairs = speedup.flips(gains)
    both = [pairs.rename({one: "workload", other: "flips"})
            for one, other in (("gains", "loses"), ("loses", "gains"))]  # fmt: skip
    sides = pl.concat(both, how="diagonal").group_by(cell, maintain_order=True).agg("flips")
    steps = costs.table(costs.each(data, where)).select(*cell, *_STEPS)
    whole = turns.table(data, where).select(*cell, *_TURNS).rename(_TURNS)
    for more in (sides, steps, whole):
        gains = gains.join(more, on=cell, how="left", nulls_equal=True, maintain_order="left")
    return gains.with_columns(pl.col("flips").fill_null([]))


def compares(where: Mapping[str, Any]) -> bool:
    """Does `where` pick whole requests, whose speeds can be held against each other?"""
    return set(where) <= {*catalog.DIMENSIONS, catalog.SQL}


def _depths(frame: pl.DataFrame, keys: Sequence[str]) -> dict[tuple, list[dict[str, Any]]]:
    found: dict[tuple, list[dict[str, Any]]] = {}
    for row in frame.iter_rows(named=True):
        of = {name: value for name, value in row.items() if name not in keys}
        found.setdefault(_key(row, keys), []).append(of)
    return found


def _key(row: Mapping[str, Any], keys: Sequence[str]) -> tuple:
    return tuple(row[name] for name in keys)


def _of(row: Mapping[str, Any], keys: Sequence[str], gains: pl.DataFrame) -> dict[str, Any]:
    """The columns of the one speed-up that belongs to `row`, or why there is none."""
    nothing = dict.fromkeys((*_GAINS, *_STEPS, *_TURNS.values()))
    nothing |= {"reasons": [], "remarks": [], "flips": []}
    if row["arm"] in arms.UNTREATED:
        return {**nothing, "speedup_why": _REFERENCE if row["arm"] == schema.OFF else None}
    if not {"workload"} <= set(keys) <= {*speedup.CELL, "arm"}:
        return {**nothing, "speedup_why": _PARTS}
    same = pl.all_horizontal(pl.col(n).eq_missing(pl.lit(row[n])) for n in keys)
    mine = gains.filter(same) if gains.height else gains
    if mine.height != 1:
        why = _SEVERAL if mine.height else _CYCLES if gains.is_empty() else None
        return {**nothing, "speedup_why": why}
    (only,) = mine.iter_rows(named=True)
    return {name: only[name] for name in nothing}
