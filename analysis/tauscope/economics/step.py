"""The plain step T: what one ordinary token costs, from the best source there is.

Sources in order of trust ("Plain step" in the definitions of the metrics): a clean off arm;
folded cycles; an off arm that drafts, or the base decode, each less one draft. All that a
selection holds are measured, so that it shows how far they agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from tauscope import catalog, schema, stats, within
from tauscope.economics import sums
from tauscope.verdict import SOURCES_GAP

# Name of each source: trust (1 is best) and what it is.
SOURCES = {
    "off": (1, "off arm without a drafter"),
    "folds": (2, "folded cycles less their draft"),
    "folds_decode": (2, "decode time of folded cycles"),
    "shadow_folds": (2, "cycles of the shadow arm less their draft"),
    "off_drafting": (3, "off arm that drafts, less one draft"),
    "base": (3, "base decode as logged"),
    "base_left": (3, "base decode left over, less one draft"),
}
# The decode time of a fold leaves out sampling and printing: so much, at the most.
SAMPLING_MS = 0.3
SCHEMA = {
    **{name: pl.Boolean if name == "simulated" else pl.String for name in sums.GROUP},
    "step_ms": pl.Float64, "step_lo": pl.Float64, "step_hi": pl.Float64,
    "step_method": pl.String, "step_why": pl.String, "source": pl.String, "about": pl.String,
    "gap": pl.Float64, "gap_source": pl.String,
    "sources": pl.List(pl.Struct({"source": pl.String, "ms": pl.Float64, "lo": pl.Float64,
                                  "hi": pl.Float64, "clusters": pl.Int64})),
}  # fmt: skip
NO_SOURCE = "neither an off arm, nor a folded cycle with its times, nor a base decode"


@dataclass(frozen=True, slots=True)
class Source:
    """One measurement of T. `num` ms over `den` tokens, a value a cluster of `clusters`."""

    name: str
    ms: stats.Interval
    num: np.ndarray
    den: np.ndarray
    clusters: list[str]
    named: bool

    @property
    def trust(self) -> int:
        return SOURCES[self.name][0]


@dataclass(frozen=True, slots=True)
class Step:
    """The plain step of one arm; `best` is None where nothing gives it."""

    sources: tuple[Source, ...]

    @property
    def best(self) -> Source | None:
        return self.sources[0] if self.sources else None

    @property
    def ms(self) -> float | None:
        return self.best.ms.value if self.best else None

    def modelled(self) -> Source | None:
        """The best source other than a clean off arm."""
        return next((source for source in self.sources if source.trust > 1), None)

    def gap(self, of: Source | None = None) -> tuple[float | None, str | None]:
        """Greatest relative difference of another source from `of` (the best), and its name.

        None where there is nothing to hold it against.
        """
        of = of or self.best
        others = [source for source in self.sources if source is not of]
        if of is None or not others:
            return None, None
        gaps = [(source.ms.value / of.ms.value - 1, source.name) for source in others]
        return max(gaps, key=lambda pair: abs(pair[0]))

    def disagree(self) -> bool:
        gap, _ = self.gap()
        return gap is not None and abs(gap) > SOURCES_GAP


def table(data: catalog.Catalog, where: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """One row an arm of a cell: columns of SCHEMA; times in ms, `gap` as a fraction."""
    rows = sums.table(data, where)
    out = []
    for key, treated in sums.groups(rows):
        found = of(data, rows, key, treated)
        best = found.best
        interval = best.ms if best else stats.Interval(None, None, None, 0, None, NO_SOURCE)
        gap, other = found.gap()
        out.append({
            **key, "step_ms": interval.value, "step_lo": interval.lo, "step_hi": interval.hi,
            "step_method": interval.method, "step_why": interval.reason,
            "source": best.name if best else None,
            "about": SOURCES[best.name][1] if best else None, "gap": gap, "gap_source": other,
            "sources": [
                {"source": s.name, "ms": s.ms.value, "lo": s.ms.lo, "hi": s.ms.hi,
                 "clusters": s.ms.clusters}
                for s in found.sources
            ],
        })  # fmt: skip
    return pl.DataFrame(out, schema=SCHEMA, orient="row")


def of(
    data: catalog.Catalog, rows: pl.DataFrame, key: Mapping[str, Any], treated: pl.DataFrame
) -> Step:
    """T of the arm `key`, whose clusters are `treated`; `rows` are the sums of every arm."""
    arms = sums.cell(rows, key)
    off = _shared(arms.filter(pl.col("arm") == schema.OFF), treated)
    found = [_off(data, key, off), *_own(data, key, treated)]
    if key["arm"] not in (schema.OFF, schema.SHADOW):
        shadow = _shared(arms.filter(pl.col("arm") == schema.SHADOW), treated)
        found.append(_mean(data, key, shadow, "shadow_folds", "fold_wall", schema.SHADOW))
        found += [_off_drafting(off, treated), _base_left(treated)]
    known = [source for source in found if source is not None and source.ms.value]
    return Step(tuple(sorted(known, key=lambda source: source.trust)))


def draft_token_ms(treated: pl.DataFrame) -> float | None:
    """Mean ms of one timed draft token; None where none was timed."""
    tokens = sums.total(treated, "d_tokens")
    return sums.total(treated, "draft_ms") / tokens if tokens else None


def over(
    source: Source, rows: pl.DataFrame, num: str, den: str, invert: bool = False
) -> stats.Interval:
    """(Σ num / Σ den) / T over the clusters of `rows`, with its interval; T over it if `invert`.

    Paired where the source stands on the same prompts.
    """
    step, mine = (source.num, source.den), (rows[num].to_numpy(), rows[den].to_numpy())
    paired = source.clusters == rows["cluster"].to_list()
    if not paired and source.named and rows["named"].all():
        both = pl.DataFrame(
            {"cluster": source.clusters, "step_num": source.num, "step_den": source.den}
        ).join(rows.select("cluster", num, den), on="cluster")
        if both.height:
            paired = True
            step = both["step_num"].to_numpy(), both["step_den"].to_numpy()
            mine = both[num].to_numpy(), both[den].to_numpy()
    ends = (*step, *mine) if invert else (*mine, *step)
    return stats.speedup(*ends, paired=paired)


def _shared(base: pl.DataFrame, treated: pl.DataFrame) -> pl.DataFrame:
    """The clusters of `base` that `treated` has too, where prompts are named."""
    if base["named"].any() and treated["named"].any():
        return base.join(treated, on="cluster", how="semi", maintain_order="left")
    return base


def _off(data: catalog.Catalog, key: Mapping[str, Any], off: pl.DataFrame) -> Source | None:
    clean = bool((~off["baseline_drafts"]).all(ignore_nulls=False)) if off.height else False
    if not clean:
        return None
    num, den = off["total_ms"], off["total_tokens"]
    ms = stats.ratio(num, den)
    if ms.value is not None and ms.lo is None and off["time_basis"].first() == "cycles":
        cells = sums.cycle_cells(data, sums.alone({**key, "arm": schema.OFF}, off))
        ms = within.within_run(cells["wall_num"], cells["wall_den"])
    return _source("off", ms, num, den, off)


def _own(data: catalog.Catalog, key: Mapping[str, Any], rows: pl.DataFrame) -> list[Source | None]:
    whole = _mean(data, key, rows, "folds", "fold_wall", key["arm"])
    decode = None if whole else _mean(data, key, rows, "folds_decode", "fold_decode", key["arm"])
    return [whole, decode, _mean(data, key, rows, "base", "base", key["arm"])]


def _mean(
    data: catalog.Catalog, key: Mapping[str, Any], rows: pl.DataFrame, name: str, cells: str,
    arm: str,
) -> Source | None:  # fmt: skip
    """Mean of what the query calls `cells`, over the cycles that log it."""
    num, den = rows[f"{cells}_num"], rows[f"{cells}_den"]
    if not den.sum():
        return None
    ms = sums.mean(data, {**key, "arm": arm}, rows, f"{cells}_num", f"{cells}_den", cells)
    return _source(name, ms, num, den, rows)


def _off_drafting(off: pl.DataFrame, treated: pl.DataFrame) -> Source | None:
    draft = draft_token_ms(treated)
    if off.is_empty() or draft is None or not off["baseline_drafts"].any(ignore_nulls=False):
        return None
    num, den = off["total_ms"] - draft * off["total_tokens"], off["total_tokens"]
    return _source("off_drafting", stats.ratio(num, den), num, den, off)


def _base_left(treated: pl.DataFrame) -> Source | None:
    """What the listed stages leave of the decode time is base decodes and free drafts."""
    draft = draft_token_ms(treated)
    if not treated["two_pass"].all() or draft is None or treated["base_den"].sum():
        return None
    left = base_left(treated)
    if left is None:
        return None
    num = left - draft * treated["drafting"]
    return _source("base_left", stats.ratio(num, treated["timed_cycles"]),
                   num, treated["timed_cycles"], treated)  # fmt: skip


def base_left(rows: pl.DataFrame) -> pl.Series | None:
    """Decode time less what the printed totals account for, in ms, cluster by cluster.

    None where a total is unknown, or only a speed without a token count was printed.
    """
    if rows["weightless"].any() or rows["total_ms"].null_count():
        return None
    listed = "reported_ms" if rows["time_basis"].first() == "run" else "staged_ms"
    return rows["total_ms"] - rows[listed]


def _source(
    name: str, ms: stats.Interval, num: pl.Series, den: pl.Series, rows: pl.DataFrame
) -> Source | None:
    if num.null_count() or den.null_count():
        return None
    return Source(name, ms, num.to_numpy(), den.to_numpy(), rows["cluster"].to_list(),
                  bool(rows["named"].all()))  # fmt: skip
