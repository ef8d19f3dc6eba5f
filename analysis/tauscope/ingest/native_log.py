"""A log that holds a native trace, alone or among the engine's other lines.

An engine can write its trace into the very file that takes its stderr. Then one
process says everything twice, and the trace counts: from a run's first native
line on, its text cycles are no rows but a check (`covered`), and its text facts
(device, memory, context) fill in what the header leaves open. Text before any
native line of its run stays a run of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import polars as pl

from tauscope.ingest import native
from tauscope.ingest.native_runs import NativeReader, Rows
from tauscope.ingest.records import Rule, none, records
from tauscope.ingest.runs import Run
from tauscope.schema import CYCLES, conform

# The piece of a native record: behind any text on its line.
AFTER = (1 << 31) - 1
_FILLED = ("machine", "model", "drafter", "draft_depth", "ctx", "backend")
RunOf = Callable[[pl.DataFrame], pl.Series]


def cut(lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(native lines, the others): text before a native record stays with the others."""
    is_native = native.is_native(pl.col("text"))
    mixed = lines.filter(is_native)
    if not mixed.height:
        return mixed, lines
    head = pl.col("text").str.split(native.MARKER).list.first()
    others = lines.with_columns(text=pl.when(is_native).then(head).otherwise("text"))
    return mixed, others.filter(pl.col("text") != "")


@dataclass
class Covered:
    """A run of text that has a native trace: where that begins, whose it is, what text says."""

    line: int
    run_ids: list[str] = field(default_factory=list)
    cycles: list[pl.DataFrame] = field(default_factory=list)


class NativeLog:
    """The native side of a parser, and the numbers of all runs of the log."""

    def __init__(self, log_id: str, max_tokens: int | None = None) -> None:
        self.log_id = log_id
        self.max_tokens = max_tokens
        self.covered: dict[int, Covered] = {}
        self._reader = NativeReader(log_id, self._count)
        self._numbers: dict[int, int] = {}  # text run to its index in the log
        self._free = 0
        self._waiting: list[tuple[int, int]] = []  # (line, text run) to be numbered
        self._read: native.Native | None = None
        self._rows = Rows()
        self._last = Rows()  # the latest row of a run and of a request

    @property
    def run_count(self) -> int:
        return self._reader.run_count

    @property
    def request_count(self) -> int:
        return self._reader.request_count

    @property
    def hidden(self) -> int:
        """Runs of text that a trace covers wholly."""
        return sum(not self.is_row(run) for run in self.covered)

    @property
    def orphans(self) -> pl.DataFrame:
        """Unfit native lines (line, text) of a log without a native run."""
        return self._reader.orphans

    def read(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Read a block's native lines; records (of piece AFTER) that runs of text are cut at."""
        self._read = native.parse_native(lines) if lines.height else None
        if self._read is None:
            return none()
        head = pl.col("kind") == "run"
        rule = pl.when(head).then(int(Rule.STARTUP)).otherwise(int(Rule.TRACE))
        return records(self._read.records.select("line", piece=pl.lit(AFTER, pl.Int32), rule=rule))

    def place(self, active: pl.DataFrame, run_of: RunOf) -> None:
        """Give the runs of a block their numbers, in the order of the log.

        `active`: (line, run) of the text records that make a run of text real.
        """
        found = None if self._read is None else self._read.records
        if found is not None and found.height:
            at = found.select("line", piece=pl.lit(AFTER, pl.Int32))
            at = at.with_columns(run_of(at)).group_by("run").agg(pl.col("line").min())
            for line, run in at.select("line", "run").sort("line").iter_rows():
                self.covered.setdefault(run, Covered(line))
        new = active.filter(~pl.col("run").is_in(list(self._numbers)))
        if new.height:
            bare = new.filter(~self._is_covered(pl.col("line")))
            firsts = bare.group_by("run").agg(pl.col("line").min()).sort("line")
            self._waiting = [(line, run) for run, line in firsts.iter_rows()]
        self._rows = Rows() if self._read is None else self._reader.take(self._read)
        if found is not None and found.height:
            first = pl.col("first_line").alias("line")
            here = pl.concat(
                [
                    self._rows.cycles.select("run_id", "line"),
                    self._rows.runs.select("run_id", first),
                ]
            ).with_columns(piece=pl.lit(AFTER, pl.Int32))
            here = here.filter(pl.col("line") >= found["line"].min())
            here = (
                here.with_columns(run_of(here))
                .sort("line")
                .select("run", "run_id")
                .unique(maintain_order=True)
            )
            for run, run_id in here.iter_rows():
                if run in self.covered and run_id not in self.covered[run].run_ids:
                    self.covered[run].run_ids.append(run_id)
        self._count(pl.Series([], dtype=pl.Int64))
        self._read = None

    def knows(self, run: int) -> bool:
        """Whether a text run has its number."""
        return run in self._numbers

    def run_id(self, runs: list[int]) -> pl.Expr:
        """The run_id of a table with `run`, which is one of `runs`."""
        names = {run: f"{self.log_id}-{self.number(run)}" for run in runs}
        if len(names) == 1:
            return pl.lit(*names.values())
        return pl.col("run").replace_strict(names, return_dtype=pl.String)

    def number(self, run: int) -> int:
        """Index of a text run in the log; of one that said nothing so far, the next free one."""
        return self._numbers.get(run, self._free)

    def is_row(self, run: int) -> bool:
        """Whether a text run is a run of the log: always, unless a trace covers all it says."""
        return run in self._numbers or run not in self.covered

    def uncover(self, table: pl.DataFrame, line: str = "line", keep: bool = False) -> pl.DataFrame:
        """Rows of `table` (with `run`) that no trace covers; `keep` keeps the others as a check."""
        if not self.covered or not table.height:
            return table
        hidden = self._is_covered(pl.col(line))
        if keep:
            for (run,), part in table.filter(hidden).group_by("run", maintain_order=True):
                self.covered[run].cycles.append(conform(part, CYCLES))
        return table.filter(~hidden)

    def rows(self, runs: dict[int, Run]) -> Rows:
        """The block's native rows; a run's open facts are filled in from its text."""
        rows, self._rows = self._rows, Rows()
        for run, cover in self.covered.items():
            if run in runs and len(cover.run_ids) == 1:
                rows.runs = _filled(rows.runs, cover.run_ids[0], runs[run].row(self.log_id, 0))
        rows.runs = rows.runs.with_columns(max_tokens=pl.lit(self.max_tokens, pl.Int64))
        if rows.runs.height:
            self._last = Rows(runs=rows.runs, requests=self._last.requests)
        if rows.requests.height:
            self._last.requests = rows.requests
        return rows

    def counted(self, tokens: int) -> Rows:
        """The rows of a log with one native run and request, told its exact token count.

        An engine's own count stays; a count made from cycles gives way.
        """
        exact = pl.lit(tokens, pl.Int64)
        guess = pl.col("tokens_source").ne_missing("engine")
        return Rows(
            runs=self._last.runs.tail(1).with_columns(tokens_exact=exact),
            requests=self._last.requests.tail(1).with_columns(
                generated_tokens=pl.when(guess).then(exact).otherwise("generated_tokens"),
                tokens_source=pl.when(guess).then(pl.lit("given")).otherwise("tokens_source"),
                decode_tokens_per_s=pl.when(guess & (pl.col("decode_ms") > 0))
                .then(1000 * exact / pl.col("decode_ms"))
                .otherwise("decode_tokens_per_s"),
            ),
        )

    def checks(self) -> list[tuple[str, pl.DataFrame]]:
        """(run_id of a native run, what its text says): pairs for `agree.disagreements`."""
        return [
            (cover.run_ids[0], pl.concat(cover.cycles))
            for cover in self.covered.values()
            if len(cover.run_ids) == 1 and cover.cycles
        ]

    def _is_covered(self, line: pl.Expr) -> pl.Expr:
        lines = {run: cover.line for run, cover in self.covered.items()}
        start = pl.col("run").replace_strict(lines, default=None, return_dtype=pl.Int64)
        return (line > start).fill_null(False)

    def _count(self, lines: pl.Series) -> list[int]:
        """Numbers for native runs that begin at `lines`, and for the text runs waiting."""
        asked = [(line, -1, place) for place, line in enumerate(lines)]
        asked += [(line, run, -1) for line, run in self._waiting]
        self._waiting = []
        given = [0] * len(lines)
        for _, run, place in sorted(asked):
            if place < 0:
                self._numbers[run] = self._free
            else:
                given[place] = self._free
            self._free += 1
        return given


def _filled(rows: pl.DataFrame, run_id: str, text: dict) -> pl.DataFrame:
    """`rows` with the run's null facts taken from its text, and the text's facts behind its own."""
    mine = pl.col("run_id") == run_id
    facts = pl.Series("more", [text["facts"]], dtype=rows.schema["facts"])
    return rows.with_columns(
        *(
            pl.when(mine)
            .then(pl.coalesce(name, pl.lit(text[name], dtype=rows.schema[name])))
            .otherwise(name)
            .alias(name)
            for name in _FILLED
        ),
        facts=pl.when(mine).then(pl.concat_list("facts", pl.lit(facts).first())).otherwise("facts"),
    )
