"""A take: one pass over the journal of a recording, from its first byte into the store.

Live recording is a take that waits for more; recovery after a kill is a take over what is
there. Both feed the parser of import, so their rows are those of an import of the same bytes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tauscope import labels as labelling
from tauscope import schema, store
from tauscope.ingest import LogParser, agree
from tauscope.ingest.gather import Rows, says_something
from tauscope.ingest.importer import Labels, apply_labels
from tauscope.record import marker as markers
from tauscope.record.dating import Dating, times_before
from tauscope.record.journal import BLOCK, Journal
from tauscope.record.marker import Marker
from tauscope.record.parts import Parts

# A take over the past packs so often: what isn't packed is kept in memory, compressed.
KEPT_BYTES = 64 << 20


@dataclass(slots=True)
class Totals:
    """What a take has committed so far."""

    cycles: int
    requests: int
    run_ids: list[str]


class Take:
    """The journal of one recording, into the store. `live`: it is seen while it grows."""

    def __init__(self, root: Path, marker: Marker, *, live: bool = False) -> None:
        self.root = root
        self.marker = marker
        # Before anything is written: an older take's files may be named by committed rows.
        marker.takes += 1
        markers.save(root, marker)
        self.journal = Journal(root, marker)
        self._truncations = 0
        self.offset = 0
        self.waiting_bytes = 0
        self.rows = Rows()
        self._waiting: list[bytes] = []
        self._digest = hashlib.sha256()
        self._dating = Dating(None if live else times_before(root, marker.log_id))
        self._parser = LogParser(
            log_id=marker.log_id, tokens=marker.tokens, max_tokens=marker.max_tokens
        )
        self._writer = store.LogWriter(root, marker.log_id, f"take{marker.takes}")
        self._parts = Parts(self._writer)

    def look(self, now: float) -> int:
        """Take in what the journal got since the last look; how many bytes.

        `now`: seconds since the engine started.
        """
        block = self.journal.read(self.offset, BLOCK)
        self._take_in(block, now)
        return len(block)

    def replay(self) -> None:
        """Take in and parse all that the journal holds by now, packed bytes included.

        Raises OSError or zstandard.ZstdError when its copy is broken.
        """
        for block in self.journal.blocks():
            self._parsed(block)
        self._parsed(b"")

    def catch_up(self) -> None:
        """Take in and parse what came to the journal after all else."""
        while block := self.journal.read(self.offset, BLOCK):
            self._parsed(block)
        self._parsed(b"")

    def _parsed(self, block: bytes) -> None:
        self._take_in(block, None)
        self.parse()
        if self.unpacked() >= KEPT_BYTES:
            self.pack()

    def _take_in(self, block: bytes, now: float | None) -> None:
        """Take in what was just read; packs all before it if the journal has it no more."""
        if self.journal.truncations > self._truncations:
            end = self.journal.base - self.offset
            self._add(block[:end], now)
            self.pack()
            self.marker.truncated += self.journal.truncations - self._truncations
            self.marker.base = self.journal.base
            markers.save(self.root, self.marker)
            self._truncations = self.journal.truncations
            block = block[end:]
        self._add(block, now)

    def _add(self, block: bytes, now: float | None) -> None:
        if not block:
            return
        self._waiting.append(block)
        self.waiting_bytes += len(block)
        self.offset += len(block)
        if (new := self.offset - self.marker.archived) > 0:
            self.journal.keep(block[-new:])
        self._digest.update(block)
        self._dating.saw(block.count(b"\n"), now)

    def parse(self, *, last: bool = False) -> pl.DataFrame:
        """Parse what was taken in; the new cycles. `last`: nothing more will come."""
        data = b"".join(self._waiting)
        self._waiting, self.waiting_bytes = [], 0
        batches = [self._parser.feed(data)] if data else []
        if last:
            batches.append(self._parser.finish())
        for batch in batches:
            batch.cycles = self._dating.date(batch.cycles, batch.runs)
            self.rows.take(batch, self._parts)
        return pl.concat([schema.empty(schema.CYCLES), *(batch.cycles for batch in batches)])

    def says_something(self) -> bool:
        """Is there a cycle, a request or a speed in what was parsed so far?"""
        return says_something(*self.rows.tables(), self.rows.cycles)

    def tokens_unused(self) -> bool:
        """Was a token count given that could not be meant for what was logged?"""
        return self.marker.tokens is not None and not self._parser.tokens_used

    def commit(self, state: str, output_hash: str | None = None) -> Totals:
        """Make all that was parsed visible in one step. Raises OSError."""
        self._parts.flush()
        runs, requests = self.rows.tables()
        if runs.is_empty():
            return Totals(0, 0, [])
        if state != "recording":
            parts = [self.root / name for name in self._writer.parts(schema.CYCLES)]
            runs = agree.with_checks(runs, self._parser.checks(), parts)
        self._writer.commit(self._described(runs, state), self._labelled(requests, output_hash))
        return Totals(self.rows.cycles, requests.height, runs["run_id"].to_list())

    def settle(self, *, last: bool = False) -> bool:
        """Merge small parts; the next commit names the merged ones. Raises OSError."""
        return self._parts.settle(last=last)

    def _described(self, runs: pl.DataFrame, state: str) -> pl.DataFrame:
        marker = self.marker
        runs = runs.with_columns(
            pl.lit(marker.log_id).alias("log_id"),
            pl.lit(marker.source).alias("source"),
            pl.lit("record").alias("source_kind"),
            pl.lit(state).alias("state"),
            pl.lit(False).alias("simulated"),
            pl.lit(marker.experiment, dtype=pl.String).alias("experiment"),
            pl.lit(f"raw/{self.journal.copy.name}").alias("raw_file"),
            pl.lit(self._digest.hexdigest()).alias("raw_sha256"),
            pl.lit(self.offset, dtype=pl.Int64).alias("raw_bytes"),
        )
        if marker.truncated:
            runs = runs.with_columns(
                pl.concat_list("facts", _truncated(marker.truncated, runs.schema["facts"])),
                # What was written between two looks may be cycles that no one saw.
                pl.lit(True).alias("hidden_cycles"),
            )
        return apply_labels(runs, Labels(marker.workload, marker.arm, marker.prompt_id))

    def _labelled(self, requests: pl.DataFrame, output_hash: str | None) -> pl.DataFrame:
        if output_hash is not None and requests.height == 1:
            # A trace's own hash is over token ids, which says more.
            requests = requests.with_columns(pl.col("output_hash").fill_null(output_hash))
        if not self.marker.rules:
            return requests
        rules = labelling.rules_of(self.marker.rules)
        served = pl.col("kind").is_in(["chat", "completion"])
        return requests.with_columns(
            pl.when(served)
            .then(labelling.workload_of(rules))
            .otherwise(pl.col("workload"))
            .alias("workload")
        )

    def unpacked(self) -> int:
        """Bytes that the journal holds and its compressed copy doesn't."""
        return self.offset - self.marker.archived

    def pack(self) -> None:
        """Put what was taken in into the compressed copy. Raises OSError."""
        self.journal.pack()

    def close(self) -> None:
        self.journal.close()


def _truncated(times: int, dtype: pl.DataType) -> pl.Expr:
    fact = [{"name": "journal_truncated", "value": str(times), "line": None}]
    return pl.lit(pl.Series([fact], dtype=dtype)).first()
