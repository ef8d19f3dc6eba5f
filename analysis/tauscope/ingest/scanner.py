"""Bytes to what a stretch of whole lines says, still unjudged.

Large blocks are taken a stretch at a time, and while the parser judges one
stretch, a thread scans the next: NumPy and Polars work without the
interpreter's lock, so the two overlap. The scanner's state is touched by that
one thread alone, and nothing of it by the parser.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import numpy as np
import polars as pl

from tauscope.ingest import legacy
from tauscope.ingest.candidates import Candidates, Wrapped
from tauscope.ingest.lines import SLICE, Chunk, LineReader
from tauscope.ingest.records import from_arrays, none

# Slices a stretch: long enough for vectors, short enough for memory and overlap.
STRETCH = 5


@dataclass(slots=True)
class Scan:
    """A stretch of whole lines."""

    records: pl.DataFrame  # RECORD, of the lines that fit a template
    lines: pl.DataFrame  # (line, text) of the others that name the engine
    wrapped: Wrapped  # aggregate lines put together
    upto: int  # complete lines of the log so far


class Scanner:
    """Scans the blocks of one log."""

    def __init__(self) -> None:
        self._reader = LineReader()
        self._candidates = Candidates()

    @property
    def lines(self) -> int:
        """Complete lines so far."""
        return self._reader.lines

    def feed(self, block: bytes) -> Iterator[Scan]:
        """The stretches that `block` completes; none when it ends no line."""
        chunks = self._reader.feed(block)
        if len(block) <= STRETCH * SLICE:
            scan = self._scan(chunks)
            if scan:
                yield scan
            return
        with ThreadPoolExecutor(1) as pool:
            ahead = pool.submit(self._scan, islice(chunks, STRETCH))
            while scan := ahead.result():
                ahead = pool.submit(self._scan, islice(chunks, STRETCH))
                yield scan

    def finish(self) -> Scan:
        """The last line, when no newline ends it; else a stretch of nothing."""
        return self._scan(self._reader.finish()) or Scan(
            none(), *self._candidates.take(), upto=self._reader.lines
        )

    def _scan(self, chunks: Iterator[Chunk]) -> Scan | None:
        parts: list[dict[str, np.ndarray]] = []
        seen = False
        for chunk in chunks:
            columns, left = legacy.fast(chunk)
            if columns is not None:
                parts.append(columns)
            self._candidates.add(chunk, left)
            seen = True
        if not seen:
            return None
        records = none()
        if parts:
            records = from_arrays(
                {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            )
        return Scan(records, *self._candidates.take(), upto=self._reader.lines)
