"""A take: one pass over the journals of a recording, from their first byte into the store.

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
from tauscope.ingest import LogParser
from tauscope.ingest.importer import Labels, Rows, apply_labels, says_something
from tauscope.record import marker as markers
from tauscope.record.dating import Dating, times_before
from tauscope.record.journal import BLOCK, Journal
from tauscope.record.marker import LOG, TRACE, Marker
from tauscope.record.parts import Parts


class Stream:
    """One journal on its way through a parser."""

    def __init__(self, journal: Journal, marker: Marker, dating: Dating) -> None:
        self.journal = journal
        self.offset = 0
        self.parser = LogParser(
            log_id=marker.log_id, tokens=marker.tokens, max_tokens=marker.max_tokens
        )
        suffix = "" if journal.stream == LOG else journal.stream[0]
        self.writer = store.LogWriter(journal.root, marker.log_id, f"take{marker.takes}{suffix}")
        self.parts = Parts(self.writer)
        self.rows = Rows()
        self.digest = hashlib.sha256()
        self._waiting: list[bytes] = []
        self.waiting_bytes = 0
        self._dating = dating

    def take_in(self, block: bytes, now: float | None = None) -> None:
        """Take bytes that were seen at `now` (seconds since the start; None: unknown)."""
        self._waiting.append(block)
        self.waiting_bytes += len(block)
        self.offset += len(block)
        self.digest.update(block)
        self._dating.saw(block.count(b"\n"), now)

    def look(self, now: float) -> int:
        """Take in what the journal got since the last look; how many bytes."""
        block = self.journal.read(self.offset, BLOCK)
        if block:
            self.take_in(block, now)
        return len(block)

    def parse(self, *, last: bool = False) -> pl.DataFrame:
        """Parse what was taken in; the new cycles. `last`: nothing more will come."""
        data = b"".join(self._waiting)
        self._waiting, self.waiting_bytes = [], 0
        new = []
        if data:
            new.append(self.parser.feed(data))
        if last:
            new.append(self.parser.finish())
        for batch in new:
            batch.cycles = self._dating.date(batch.cycles, batch.runs)
            self.rows.take(batch, self.parts)
        return pl.concat([schema.empty(schema.CYCLES), *(batch.cycles for batch in new)])


@dataclass(slots=True)
class Totals:
    """What a take has committed so far."""

    cycles: int
    requests: int
    run_ids: list[str]


class Take:
    """The journals of one recording, into the store. `clock` is None for a take over the past."""

    def __init__(self, root: Path, marker: Marker, *, live: bool = False) -> None:
        self.root = root
        self.marker = marker
        marker.takes += 1
        markers.save(root, marker)
        self.streams = {
            name: Stream(
                Journal(root, marker, name),
                marker,
                Dating() if live else Dating(times_before(root, marker.log_id)),
            )
            for name in (LOG, TRACE)
        }

    def look(self, now: float) -> int:
        """Take in what the journals got since the last look; how many bytes."""
        return sum(stream.look(now) for stream in self.streams.values())

    @property
    def waiting_bytes(self) -> int:
        return sum(stream.waiting_bytes for stream in self.streams.values())

    def replay(self) -> None:
        """Take in and parse all that the journals hold by now, packed bytes included.

        Raises OSError or zstandard.ZstdError when a journal's copy is broken.
        """
        for stream in self.streams.values():
            for block in stream.journal.blocks():
                stream.take_in(block)
                self.parse()

    def parse(self, *, last: bool = False) -> pl.DataFrame:
        """Parse what waits; the new cycles of the stream that counts."""
        new = {name: stream.parse(last=last) for name, stream in self.streams.items()}
        if self.counting == TRACE:
            self.streams[LOG].parts.mute()
        return new[self.counting]

    @property
    def counting(self) -> str:
        """The stream whose rows count: a native trace with cycles goes before the log."""
        return TRACE if self.streams[TRACE].rows.cycles else LOG

    def says_something(self) -> bool:
        """Is there a cycle, a request or a speed in what was parsed so far?"""
        stream = self.streams[self.counting]
        runs, requests = stream.rows.tables()
        return says_something(runs, requests, stream.rows.cycles)

    def commit(self, state: str, output_hash: str | None = None) -> Totals:
        """Make all that was parsed visible in one step. Raises OSError."""
        stream = self.streams[self.counting]
        stream.parts.flush()
        runs, requests = stream.rows.tables()
        if runs.is_empty():
            return Totals(0, 0, [])
        runs = self._described(runs, stream, state)
        requests = self._labelled(requests, output_hash)
        stream.writer.commit(runs, requests)
        return Totals(stream.rows.cycles, requests.height, runs["run_id"].to_list())

    def settle(self, *, last: bool = False) -> bool:
        """Merge small parts; the next commit names the merged ones. Raises OSError."""
        return self.streams[self.counting].parts.settle(last=last)

    def _described(self, runs: pl.DataFrame, stream: Stream, state: str) -> pl.DataFrame:
        marker, journal = self.marker, stream.journal
        other = self.streams[LOG].rows.tables()[0]
        if journal.stream == TRACE and runs.height == other.height == 1:
            # What the engine printed of itself fills what its trace leaves open.
            for name in ("machine", "model", "drafter", "draft_depth", "ctx", "backend"):
                runs = runs.with_columns(pl.col(name).fill_null(other[name][0]))
        runs = runs.with_columns(
            pl.lit(marker.log_id).alias("log_id"),
            pl.lit(marker.source).alias("source"),
            pl.lit("record").alias("source_kind"),
            pl.lit(state).alias("state"),
            pl.lit(False).alias("simulated"),
            pl.lit(marker.experiment, dtype=pl.String).alias("experiment"),
            pl.lit(f"raw/{journal.copy.name}").alias("raw_file"),
            pl.lit(stream.digest.hexdigest()).alias("raw_sha256"),
            pl.lit(stream.offset, dtype=pl.Int64).alias("raw_bytes"),
        )
        return apply_labels(runs, Labels(marker.workload, marker.arm, marker.prompt_id))

    def _labelled(self, requests: pl.DataFrame, output_hash: str | None) -> pl.DataFrame:
        if output_hash is not None and requests.height == 1:
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

    def pack(self, *, last: bool = False) -> None:
        """Put what was parsed into the compressed copies. Raises OSError."""
        for stream in self.streams.values():
            if stream.offset or (last and stream.journal.stream == LOG):
                stream.journal.pack(stream.offset)

    def hollow(self, before: dict[str, int]) -> None:
        """Give packed bytes before these offsets, by stream, back to the disk. Raises OSError."""
        for name, offset in before.items():
            if offset:
                self.streams[name].journal.hollow(offset)

    def unpacked(self) -> int:
        """Most bytes that a journal holds and its copy doesn't."""
        return max(s.offset - s.journal.kept.archived for s in self.streams.values())

    def close(self) -> None:
        for stream in self.streams.values():
            stream.journal.close()
