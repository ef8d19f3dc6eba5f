"""What a parser's batches come to: cycles handed on, requests and runs gathered."""

from __future__ import annotations

import polars as pl

from tauscope import schema, store
from tauscope.ingest.parser import Batch


class Rows:
    """Gathers a parser's batches: cycles go to the writer, requests and runs stay here."""

    def __init__(self) -> None:
        self._requests: list[pl.DataFrame] = []
        self._runs: list[pl.DataFrame] = []
        self.outcomes: dict[str, int] = {}
        self.cycles = 0
        self._emitted = 0
        self._emitted_known = True

    def take(self, batch: Batch, writer: store.LogWriter) -> None:
        """Pass a batch's cycles and refused rows on, and keep its latest other rows."""
        writer.add(schema.CYCLES, batch.cycles)
        writer.add(schema.REFUSED, batch.refused)
        for name, count in batch.cycles["outcome"].value_counts().iter_rows():
            self.outcomes[name] = self.outcomes.get(name, 0) + count
        self.cycles += batch.cycles.height
        self._emitted += int(batch.cycles["emitted"].cast(pl.Int64).sum() or 0)
        self._emitted_known &= batch.cycles["emitted"].null_count() == 0
        if batch.requests.height:
            self._requests.append(batch.requests)
        if batch.runs.height:
            self._runs.append(batch.runs)
        if len(self._requests) > 64 or len(self._runs) > 64:
            self._requests, self._runs = [self.tables()[1]], [self.tables()[0]]

    def tables(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """(runs, requests): the latest row of each."""
        runs = pl.concat(self._runs or [schema.empty(schema.RUNS)])
        requests = pl.concat(self._requests or [schema.empty(schema.REQUESTS)])
        return (
            runs.unique("run_id", keep="last", maintain_order=True).sort("run_index"),
            requests.unique(["run_id", "request_id"], keep="last", maintain_order=True),
        )

    def emitted_or_none(self) -> int | None:
        """Σ emitted; None when one cycle's is unknown, or when there is no cycle."""
        return self._emitted if self._emitted_known and self.cycles else None


def says_something(runs: pl.DataFrame, requests: pl.DataFrame, cycles: int) -> bool:
    """Does a log with these rows say anything of speculation, speed or requests?"""
    told = requests.filter(
        pl.col("decode_tokens_per_s").is_not_null()
        | pl.col("generated_tokens").is_not_null()
        | pl.col("finish").is_not_null()
        | pl.col("prompt_tokens").is_not_null()
    )
    return bool(cycles or not told.is_empty() or runs["refused_rows"].sum())
