"""Seconds of a whole request, with and without speculation, for those who wait for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from tauscope import catalog, ledger, schema
from tauscope.stats import TAIL

CELL = ("workload", "simulated", "machine", "model", "experiment")


def table(data: catalog.Catalog, where: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """One row a (CELL, treated arm): off_s, treated_s, saved_s with its 95 % interval, pairs.

    Seconds a request, means over prompts that ran in both arms; prefill is in both where
    both logged it (`prefill`). The interval is Student's over the paired differences;
    null with fewer than two pairs.
    """
    sums = ledger.grouped(data, "turns", (*CELL, "arm"), where)
    off = sums.filter(pl.col("arm") == schema.OFF)
    treated = sums.filter(~pl.col("arm").is_in([schema.OFF, schema.UNLABELLED]))
    pairs = treated.join(
        off, on=[*CELL, "cluster"], suffix="_off", nulls_equal=True, maintain_order="left"
    ).filter(pl.col("decode_s").is_not_null() & pl.col("decode_s_off").is_not_null())
    keys = [*CELL, "arm"]
    prefill = (pl.col("prefill_s").is_not_null() & pl.col("prefill_s_off").is_not_null()).all()
    pairs = pairs.with_columns(prefill=prefill.over(keys)).with_columns(
        treated_s=pl.col("decode_s") + pl.when("prefill").then("prefill_s").otherwise(0.0),
        off_s=pl.col("decode_s_off") + pl.when("prefill").then("prefill_s_off").otherwise(0.0),
    )
    saved = pl.col("off_s") - pl.col("treated_s")
    rows = pairs.group_by(keys, maintain_order=True).agg(
        pl.col("off_s").mean(),
        pl.col("treated_s").mean(),
        saved.mean().alias("saved_s"),
        (saved.std() / pl.len().sqrt()).alias("error"),
        pl.len().cast(pl.Int64).alias("pairs"),
        pl.col("prefill").first(),
    )
    half = rows["error"] * pl.Series(_student(rows["pairs"].to_numpy()), dtype=pl.Float64)
    half = half.fill_nan(None)
    return rows.with_columns(
        saved_s_lo=pl.col("saved_s") - half, saved_s_hi=pl.col("saved_s") + half
    ).drop("error")


def _student(pairs: np.ndarray) -> np.ndarray:
    from scipy.special import stdtrit

    with np.errstate(all="ignore"):
        return np.where(pairs > 1, stdtrit(np.maximum(pairs - 1, 1), 1 - TAIL), np.nan)
