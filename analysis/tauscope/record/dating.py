"""When was a cycle logged? Logs don't say; the recorder knows when it saw each line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from tauscope.ingest.importer import read_rows


class Dating:
    """Fills `t_ms` with the time at which the recorder saw the row's line.

    It is as fine as the recorder's looks at the journal, some 20 ms, and never earlier
    than the truth. Times of a trace that logs its own are left alone. `before`: what an
    earlier take of the same journal had put on its lines, for a take over the past.
    """

    def __init__(self, before: Iterator[pl.DataFrame] | None = None) -> None:
        self._lines = 0
        # (lines so far, when they were seen), after the lines whose time no one knows.
        self._seen: list[tuple[int, float]] = []
        self._unseen = 0
        self._began: dict[str, float] = {}
        self._before = before or iter(())
        self._known = pl.DataFrame(schema={"line": pl.Int64, "t_ms": pl.Float64})

    def saw(self, lines: int, now: float | None) -> None:
        """So many lines more were there at `now` (s since the engine started; None: unknown)."""
        self._lines += lines
        if now is not None:
            self._seen.append((self._lines, now))
        elif not self._seen:
            self._unseen = self._lines

    def date(self, cycles: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
        """`cycles` with t_ms, in ms since their run began; null where no one saw the line."""
        return self._from_sight(self._from_before(cycles), runs)

    def _from_sight(self, cycles: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
        if not self._seen:
            return cycles
        lines, times = (np.array(column) for column in zip(*self._seen, strict=True))
        for run, index, first in runs.select("run_id", "run_index", "first_line").iter_rows():
            if run not in self._began:
                at = min(int(np.searchsorted(lines, first or 0)), len(times) - 1)
                self._began[run] = 0.0 if index == 0 else float(times[at])
        self._seen = self._seen[-1:]
        if cycles.is_empty():
            return cycles
        at = np.searchsorted(lines, cycles["line"].fill_null(0).to_numpy())
        began = cycles["run_id"].replace_strict(self._began, default=0.0, return_dtype=pl.Float64)
        seen = ((pl.Series(times[at.clip(max=len(times) - 1)]) - began) * 1000).round(1)
        return cycles.with_columns(
            pl.coalesce("t_ms", pl.when(pl.col("line") > self._unseen).then(seen)).alias("t_ms")
        )

    def _from_before(self, cycles: pl.DataFrame) -> pl.DataFrame:
        last = cycles["line"].max()
        if last is None:
            return cycles
        while (self._known["line"].max() or 0) < last:
            more = next(self._before, None)
            if more is None:
                break
            self._known = pl.concat([self._known, more.drop_nulls()])
        if self._known.is_empty():
            return cycles
        known = self._known.unique("line", keep="first").rename({"t_ms": "before"})
        self._known = self._known.filter(pl.col("line") > last)
        return (
            cycles.join(known, on="line", how="left", maintain_order="left")
            .with_columns(pl.coalesce("t_ms", "before").alias("t_ms"))
            .drop("before")
        )


def times_before(root: Path, log_id: str) -> Iterator[pl.DataFrame]:
    """(line, t_ms) of the committed rows, file by file; nothing where they are lost."""
    try:
        runs, _ = read_rows(root, log_id)
        for name in runs["cycle_files"].explode().drop_nulls().unique(maintain_order=True):
            yield pl.read_parquet(root / name, columns=["line", "t_ms"], glob=False)
    except (OSError, pl.exceptions.PolarsError):
        return
