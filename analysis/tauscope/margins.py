"""How far ahead the draft's first choice was, in bins: the frame behind charts.margins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from tauscope import catalog, ledger, schema

WIDTHS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 1000.0)
MOST_BINS = 24


def by_bin(data: catalog.Catalog, where: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Shares of margin readings: ledger.BY, margin_lo, margin_hi, margin, readings, share, …

    Logits; every group has every bin. Of arms that bet where there are any: a shadow arm reads
    every position, so its distribution is another one. `right` of `known` gated drafts were
    right. The last bin has no `margin_hi` where it holds margins beyond its width.
    """
    where = dict(where or {})
    condition, params = catalog.selection(where)
    span = data.run(
        catalog.sql_text("margin_range").replace("{where}", condition), "margin_range", params
    ).row(0, named=True)
    if span["least"] is None:
        span = {"least": 0.0, "most": 0.0}
    spread = span["most"] - span["least"]
    width = next((w for w in WIDTHS if spread <= w * MOST_BINS), WIDTHS[-1])
    rows = ledger.grouped(
        data, "margins", ledger.BY, where, width=width, least=span["least"], most=span["most"]
    )
    betting = rows.filter(pl.col("arm") != schema.SHADOW)
    return betting if betting.height else rows
