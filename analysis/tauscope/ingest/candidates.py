"""The lines that need a closer look, as text: those that name the engine at all.

DSpark's aggregate line is long, and terminals wrap it: the lines after it are
looked at too, though they don't name the engine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from tauscope.ingest.lines import Chunk
from tauscope.ingest.native import MARKER
from tauscope.ingest.records import Rule, none, records
from tauscope.ingest.startup import LAST, STATS, WRAPPED, WRAPPED_LINES

_NAME = "ds4"
_LINES = {"line": pl.Int64(), "text": pl.String()}
_FACTS = {
    "line": pl.Int64(), "piece": pl.Int32(), "name": pl.String(), "value": pl.String(),
    "keep": pl.String(),
}  # fmt: skip


_NO_LINES, _NO_FACTS = pl.DataFrame(schema=_LINES), pl.DataFrame(schema=_FACTS)


@dataclass
class Wrapped:
    """The aggregate lines of a block, put together: their facts, and the lines they went on in."""

    records: pl.DataFrame
    facts: pl.DataFrame


class Candidates:
    """Collects a block's candidate lines; remembers an aggregate line that may go on."""

    def __init__(self) -> None:
        self._parts: list[pl.DataFrame] = []
        self._stats = pl.DataFrame(schema=_LINES)  # of the last aggregate, while it may go on
        self._until = 0  # last line it may go on in

    def add(self, chunk: Chunk, left: np.ndarray) -> None:
        """Take what is of interest among the lines `left` of `chunk`."""
        if not len(left):
            return
        size = len(chunk.starts)
        offsets = np.append(chunk.starts, chunk.stop).astype(np.int64)
        array = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), size, [None, pa.py_buffer(offsets), pa.py_buffer(chunk.data)]
        )
        series = pl.from_arrow(array)
        series = series if len(left) == size else series.gather(left)
        numbers = chunk.numbers[left]
        named = series.bin.contains(_NAME.encode()).to_numpy()
        traced = series.bin.contains(MARKER.encode()).to_numpy()
        goes_on = numbers <= self._until
        if named.any():
            stats = numbers[named & series.bin.contains(b"DSpark stats ").to_numpy()]
            if len(stats):
                # Distance to the last aggregate line before each line.
                place = np.searchsorted(stats, numbers) - 1
                after = numbers - stats[np.maximum(place, 0)]
                goes_on = goes_on | ((place >= 0) & (after > 0) & (after <= WRAPPED_LINES))
                self._until = int(stats[-1]) + WRAPPED_LINES
        keep = named | traced | goes_on
        if keep.any():
            text = decode(series.filter(pl.Series(keep)))
            self._parts.append(pl.DataFrame({"line": numbers[keep], "text": text}, schema=_LINES))

    def take(self) -> tuple[pl.DataFrame, Wrapped]:
        """The candidates (line, text) since the last call, and the aggregates among them.

        Lines that an aggregate goes on in are in the second only.
        """
        lines = pl.concat(self._parts) if self._parts else _NO_LINES
        self._parts = []
        wrapped = Wrapped(none(), _NO_FACTS)
        if not lines.height:
            return lines, wrapped
        bare = ~pl.col("text").str.contains_any([_NAME, MARKER])
        if self._until or lines.select(pl.col("text").str.contains(STATS).any()).item():
            wrapped = self._unwrap(lines, bare) or wrapped
        return lines.filter(~bare), wrapped

    def _unwrap(self, lines: pl.DataFrame, bare: pl.Expr) -> Wrapped | None:
        clean = pl.col("text").str.strip_chars_end("\r\n")
        first = pl.col("text").str.contains(STATS)
        known = self._stats.height
        chain = pl.concat([self._stats, lines.with_columns(clean).filter(
            first | (bare & pl.col("text").str.contains(WRAPPED))
        )]).with_row_index("at")  # fmt: skip
        chain = chain.with_columns(group=first.cum_sum()).filter(pl.col("group") > 0)
        nth = pl.int_range(pl.len()).over("group")
        chain = chain.with_columns(nth=nth, top=pl.col("line").first().over("group")).filter(
            (pl.col("line") - pl.col("top") == pl.col("nth")) & (pl.col("nth") <= WRAPPED_LINES)
        )
        if not chain.height:
            return None
        group = chain["group"][-1]
        self._stats = chain.filter(pl.col("group") == group).select(list(_LINES))
        more = chain.filter((pl.col("nth") > 0) & (pl.col("at") >= known))
        # A line is broken between fields or inside one.
        before = pl.col("text").shift(1).over("group")
        fresh = pl.col("text").str.contains(r"^[A-Za-z_][A-Za-z0-9_]*=") & before.str.contains(
            r"=[^ ]+$"
        )
        glue = pl.when((pl.col("nth") > 0) & fresh).then(pl.lit(" ")).otherwise(pl.lit(""))
        joined = (
            chain.with_columns(text=glue + pl.col("text"))
            .group_by("group", maintain_order=True)
            .agg(pl.col("line").first(), pl.col("text").str.join(""))
        )
        fields = (
            joined.select("line", pl.col("text").str.extract_all(r"[A-Za-z_][A-Za-z0-9_]*=[^ ]+"))
            .explode("text")
            .drop_nulls("text")
            .with_columns(pl.col("text").str.splitn("=", 2).struct.rename_fields(["name", "value"]))
            .unnest("text")
        )
        return Wrapped(
            records(
                more.select(
                    "line",
                    pl.lit(0, pl.Int32).alias("piece"),
                    pl.lit(int(Rule.EVENT), pl.UInt8).alias("rule"),
                )
            ),
            fields.select(
                "line",
                pl.lit(0, pl.Int32).alias("piece"),
                (pl.lit("dspark_stats.") + pl.col("name").str.slice(0, 60)).alias("name"),
                pl.col("value").str.slice(0, 200),
                pl.lit(LAST).alias("keep"),
            ),
        )


def decode(series: pl.Series) -> pl.Series:
    """Lines of bytes to text; bad UTF-8 becomes the replacement character."""
    try:
        return series.cast(pl.String)
    except pl.exceptions.ComputeError:
        rows = series.to_list()
        text = b"".join(rows)
        if text.count(b"\n") == len(rows):
            # Every line ends in its newline: joined, decoded and split in three calls.
            lines = text.decode("utf-8", "replace").split("\n")[:-1]
        else:
            # A slice with pieces of an overlong line in it: a few megabytes at most.
            lines = [row.decode("utf-8", "replace") for row in rows]
        return pl.Series(lines, dtype=pl.String)
