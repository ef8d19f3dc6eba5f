"""Two arms held against each other: what is common to `metrics`, `compare` and modelled figures.

Frames of clusters are those of `metrics.clusters`: one row a prompt of an arm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from tauscope import catalog, schema, stats, within

# Arms that are no treatment: nothing to gain from them, and nothing to decide.
UNTREATED = (schema.OFF, schema.SHADOW, schema.UNLABELLED)
# Turned round from prompt to prompt (A B, B A, …) no arm runs more often than this in a row.
LONGEST_STREAK = 2
ONE_TIME = "one prompt, and an arm with one time for the whole run: no spread to see"


def interval(
    base: pl.DataFrame, treated: pl.DataFrame, cells: Callable[[str], list] | None = None
) -> tuple[stats.Interval, pl.DataFrame, pl.DataFrame, int]:
    """Speed-up of `treated` over `base`, the clusters of both that it rests on, and the pairs.

    `cells` gives, for the one cluster of a name, the cycles' ms and tokens of both arms: four
    arrays as `within.within_run_speedup` takes them. Where prompts are named only shared ones
    count.
    """

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
    if found.lo is None and lone and cells is not None:
        if timed:
            found = within.within_run_speedup(*cells(base["cluster"][0] if paired else ""))
        else:
            found = stats.Interval(found.value, None, None, 1, None, ONE_TIME)
    return found, base, treated, base.height if paired else 0


def drifts(data: catalog.Catalog, where: Mapping[str, Any]) -> pl.DataFrame:
    """How each path's cost moved in the course of each arm's runs: the query `drift`."""
    condition, params = catalog.selection(where)
    return data.run(catalog.sql_text("drift").replace("{where}", condition), "drift", params)


def orders(data: catalog.Catalog, where: Mapping[str, Any]) -> pl.DataFrame:
    """Each run's place in its experiment, in that order: the query `arm_order`."""
    condition, params = catalog.selection(where)
    text = catalog.sql_text("arm_order").replace("{where}", condition)
    return data.run(text, "arm_order", params)


def interleaved(order: pl.DataFrame, key: Mapping[str, Any], pair: tuple[str, str]) -> bool:
    """Did the two arms of `pair` take turns throughout one experiment?

    `order`: rows of `orders`; `key`: the cell's columns in it.
    """
    same = pl.all_horizontal(pl.col(n).eq_missing(pl.lit(v)) for n, v in key.items())
    runs = order.filter(same, pl.col("arm").is_in(pair)).sort("place")
    one = runs["experiment"].null_count() == 0 and runs["experiment"].n_unique() == 1
    if not one or runs["arm"].n_unique() < 2 or runs["place"].null_count():
        return False
    return runs["arm"].rle().struct.field("len").max() <= LONGEST_STREAK


def worst(moves: pl.Series) -> float | None:
    """The drift farthest from 0; None when none could be seen."""
    return moves.gather([moves.abs().arg_max()]).to_list()[0] if len(moves) else None


def ratio(rows: pl.DataFrame, name: str) -> float | None:
    """Σ <name>_num / Σ <name>_den over clusters; None where a sum is unknown or nothing divides."""
    num, den = (strict_sum(rows, f"{name}_{end}") for end in ("num", "den"))
    return num / den if num is not None and den else None


def strict_sum(rows: pl.DataFrame, name: str) -> float | None:
    """Sum of a column; None when one of its values is unknown, or there are none."""
    column = rows[name]
    return None if rows.is_empty() or column.null_count() else float(column.sum())


def whole(value: float | None) -> int | None:
    """A count that came as a float."""
    return None if value is None else round(value)


def tokens(rows: pl.DataFrame) -> int | None:
    """Tokens that an arm made: what the engine says, else what its cycles emitted."""
    made = strict_sum(rows, "generated_tokens")
    if made is None and rows["requests_with_cycles"].sum() == rows["requests"].sum():
        made = strict_sum(rows, "tau_num")
    return whole(made)


def open_tokens(rows: pl.DataFrame) -> tuple[int | None, int | None, int | None]:
    """(tokens made less Σ emitted, tokens made, requests) of an arm that logs its cycles."""
    if rows["requests_with_cycles"].sum() != rows["requests"].sum():
        return None, None, None
    made, emitted = strict_sum(rows, "generated_tokens"), strict_sum(rows, "emitted")
    if made is None or emitted is None:
        return None, None, None
    return whole(made - emitted), whole(made), int(rows["requests"].sum())


def ledger(*sides: pl.DataFrame) -> tuple[int | None, int | None, int | None]:
    """`open_tokens` of the arm that leaves more open.

    An arm without any cycle lines has no ledger to close; one that logs cycles and has no
    token count to hold against them leaves it unknown.
    """
    logged = [rows for rows in sides if rows["requests_with_cycles"].sum()]
    found = [open_tokens(rows) for rows in logged]
    if not found or any(row[0] is None for row in found):
        return None, None, None
    return max(found, key=lambda row: abs(row[0]))


def any_true(rows: pl.DataFrame, name: str) -> bool | None:
    """True when any is, None when none is but some are unknown (or there are no rows)."""
    return None if rows.is_empty() else rows[name].any(ignore_nulls=False)


def same_outputs(one: str, other: str) -> pl.Expr:
    """Are two lists of output hashes equal? Null where one is unknown, or hashes another thing.

    A hash begins with what it was made of: `fnv1a64:` of token ids, `sha256:` of text.
    """
    kind = pl.element().str.extract(r"^(\w+):").fill_null("")
    kinds = [pl.col(name).list.eval(kind).list.unique().list.sort() for name in (one, other)]
    known = pl.col(one).is_not_null() & pl.col(other).is_not_null() & (kinds[0] == kinds[1])
    return pl.when(known).then(pl.col(one) == pl.col(other))


def outputs_equal(base: pl.DataFrame, treated: pl.DataFrame) -> bool | None:
    """Did every pair give the same output? None where an output was not recorded."""
    pairs = base.select("cluster", "outputs").join(
        treated.select("cluster", "outputs"), on="cluster", suffix="_treated"
    )
    same = pairs.select(same_outputs("outputs", "outputs_treated")).to_series()
    return same.all(ignore_nulls=False) if len(same) else None
