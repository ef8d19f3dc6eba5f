"""The parser: blocks of bytes in, rows of the store's tables out."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from tauscope.schema import CYCLES, REFUSED, REQUESTS, RUNS, empty

# What a caller should read at a time: large enough for speed, small enough for memory.
BLOCK = 32 << 20


@dataclass
class Batch:
    """Rows that are new or changed since the last call.

    `cycles` and `refused` are appended; `requests` replace those of the same
    (run_id, request_id), `runs` those of the same run_id. The columns of `runs`
    that the log can't tell (labels, files, raw copy, version) are null.
    """

    cycles: pl.DataFrame = field(default_factory=lambda: empty(CYCLES))
    refused: pl.DataFrame = field(default_factory=lambda: empty(REFUSED))
    requests: pl.DataFrame = field(default_factory=lambda: empty(REQUESTS))
    runs: pl.DataFrame = field(default_factory=lambda: empty(RUNS))


class LogParser:
    """Turns the bytes of one log into rows. Feed blocks of any size in order, then finish."""

    def __init__(
        self, *, log_id: str, tokens: int | None = None, max_tokens: int | None = None
    ) -> None:
        self.log_id = log_id
        self.tokens = tokens
        self.max_tokens = max_tokens
        self.run_count = 0
        self.request_count = 0

    def feed(self, block: bytes) -> Batch:
        """Take the next bytes of the log; rows of the complete lines so far."""
        return Batch()

    def finish(self) -> Batch:
        """Take the cut last line too, close what is open, recover dark cycles."""
        return Batch()
