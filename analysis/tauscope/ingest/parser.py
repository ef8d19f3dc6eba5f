"""The parser: blocks of bytes in, rows of the store's tables out.

The same path serves the import of a whole file and the live recording of a
growing one. What is carried from block to block is small: the bytes of an
unfinished line, the records of the last cycle while it may grow, the requests
that are open, and counters. The rows don't depend on where the blocks end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from tauscope.ingest import assemble, classify, ledger, native_log, runs
from tauscope.ingest.records import Rule
from tauscope.ingest.requests import Requests
from tauscope.ingest.scanner import Scan, Scanner
from tauscope.schema import CYCLES, REFUSED, REQUESTS, RUNS, Table, conform, empty

# Records that show an engine at work: a start-up line after one begins another run.
ACTIVITY = assemble.CYCLE_RULES | pl.col("rule").is_in(
    [int(Rule.SPEED), int(Rule.SERVER), int(Rule.TRACE)]
)
# More dark cycles than this is a wrong token count, not a log.
DARK_LIMIT = 10_000_000


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
    """Turns the bytes of one log into rows. Feed blocks of any size in order, then finish.

    `tokens` is the exact number of tokens that were generated, `max_tokens` a
    limit, which is never a count. `tokens` can only be meant for a log with one
    request: after `finish`, `run_count` and `request_count` tell whether it was,
    and `tokens_used` whether the count was taken. No bytes make a call raise.
    """

    def __init__(
        self, *, log_id: str, tokens: int | None = None, max_tokens: int | None = None
    ) -> None:
        self.log_id = log_id
        self.tokens = tokens
        self.max_tokens = max_tokens
        self.tokens_used = False
        self._scanner = Scanner()
        self._upto = 0
        self._requests = Requests()
        self._native = native_log.NativeLog(log_id, max_tokens)
        self._run = 0
        self._active = False  # a cycle, request or speed line was seen since the run began
        self._held = pl.DataFrame(schema=assemble.SPINE)
        self._order: tuple[int, bool] | None = None
        self._last_told = 0
        self._numbered_upto = (0, 0)  # the last line of slow records, and its pieces so far
        self._runs = {0: runs.Run(0, 1, 0)}
        self._next_cycle = 0
        self._last_request: pl.DataFrame | None = None

    @property
    def run_count(self) -> int:
        """Runs in the log so far."""
        return self._run + 1 - self._native.hidden + self._native.run_count

    @property
    def request_count(self) -> int:
        """Requests in the log so far, in all runs."""
        text = 0 if self._native.covered else self._requests.count
        return text + self._native.request_count

    def checks(self) -> list[tuple[str, pl.DataFrame]]:
        """(run_id, cycles): what the text of a run says beside its native trace."""
        return self._native.checks()

    @property
    def lines(self) -> int:
        """Complete lines read so far."""
        return self._scanner.lines

    def feed(self, block: bytes) -> Batch:
        """Take the next bytes of the log; rows of the cycles they complete."""
        return _join([self._take(scan, last=False) for scan in self._scanner.feed(block)])

    def finish(self) -> Batch:
        """Take the cut last line too, close what is open, recover dark cycles."""
        return self._settle(self._take(self._scanner.finish(), last=True))

    def _take(self, scan: Scan, *, last: bool) -> Batch:
        self._upto = scan.upto
        new, wrapped = scan.records, scan.wrapped
        traced, lines = native_log.cut(scan.lines)
        heads = self._native.read(traced)
        reading = None
        if lines.height or wrapped.facts.height:
            reading = classify.nothing()
            if lines.height:
                reading = classify.read(lines, self._numbered_upto)
                self._numbered_upto = reading.upto
            new = pl.concat([new, reading.records, wrapped.records]).sort(
                "line", "piece", maintain_order=True
            )
        if not new.height and not traced.height and not last:
            self._runs[self._run].last_line = self._upto
            return Batch(runs=self._run_rows())
        if heads.height:
            new = pl.concat([new, heads]).sort("line", "piece", maintain_order=True)
        new = self._in_runs(new)
        if heads.height:
            new = new.filter(pl.col("piece") < native_log.AFTER)
        if traced.height or len(self._begins) or not self._native.knows(self._run):
            active = new.filter(ACTIVITY).select("line", "run")
            self._native.place(active, self._run_of)
        if last and self._native.orphans.height:
            self._unfit(self._native.orphans.with_columns(run=pl.lit(self._run, pl.Int64)))
        touched = set(self._runs)
        if reading is not None:
            self._tell(reading, wrapped.facts)
        self._count_told(new)
        spine = new.filter(pl.col("rule") != Rule.EVENT).select(*assemble.SPINE)
        return self._cycles(spine, reading, touched, last)

    def _in_runs(self, new: pl.DataFrame) -> pl.DataFrame:
        """`new` with `run`; opens the runs that begin in it."""
        startup = pl.col("rule") == Rule.STARTUP
        start = self._run
        self._begins = np.empty(0, np.int64)
        self._first = start
        if new.height and new.select((pl.col("rule") >= int(Rule.STARTUP)).any()).item():
            bounds = new.filter(startup | ACTIVITY).with_columns(acts=ACTIVITY)
            begins = bounds.filter(
                ~pl.col("acts") & pl.col("acts").shift(1, fill_value=self._active)
            )
            self._begins = _key(begins["line"], begins["piece"])
            for line in begins["line"].to_list():
                self._runs[self._run].last_line = line - 1
                self._run += 1
                self._runs[self._run] = runs.Run(self._run, line, line)
            if bounds.height:
                self._active = bool(bounds["acts"][-1])
        elif new.height:
            self._active = self._active or bool(new.select(ACTIVITY.any()).item())
        self._runs[self._run].last_line = self._upto
        return new.with_columns(self._run_of(new))

    def _run_of(self, frame: pl.DataFrame) -> pl.Series:
        """Run of each row of a frame with line and piece."""
        if not len(self._begins):
            return pl.Series("run", [self._first], pl.Int64).new_from_index(0, frame.height)
        place = np.searchsorted(self._begins, _key(frame["line"], frame["piece"]), side="right")
        return pl.Series("run", place + self._first, pl.Int64)

    def _tell(self, reading: classify.Reading, stats: pl.DataFrame) -> None:
        """Give facts and unfit lines to their runs."""
        facts = pl.concat([reading.facts, stats])
        facts = facts.with_columns(self._run_of(facts)).sort("line", "piece", maintain_order=True)
        for keep in ("first", "last"):
            part = facts.filter(pl.col("keep") == keep).unique(
                ["run", "name"], keep=keep, maintain_order=True
            )
            for row in part.iter_rows(named=True):
                self._runs[row["run"]].tell(row["name"], row["value"], row["line"], keep)
        unfit = reading.unfit.with_columns(self._run_of(reading.unfit)).sort("line", "piece")
        self._unfit(unfit)
        begun = reading.records.filter(pl.col("rule") == Rule.STARTUP)
        begun = begun.select("line", "piece").with_columns(self._run_of(begun))
        for run, line in begun.group_by("run").agg(pl.col("line").min()).iter_rows():
            self._runs[run].tell("started", "", line, "first")

    def _unfit(self, unfit: pl.DataFrame) -> None:
        """Count unfit lines (line, text, run); keep the first three a run."""
        counts = unfit.group_by("run", maintain_order=True).agg(
            pl.len(), pl.struct("line", "text").head(runs.EXAMPLES)
        )
        for index, count, examples in counts.iter_rows():
            run = self._runs[index]
            run.unfit += count
            # A part left alone is known to be so only after the lines behind it.
            shown = sorted(run.examples + examples, key=lambda example: example["line"])
            run.examples = shown[: runs.EXAMPLES]

    def _count_told(self, new: pl.DataFrame) -> None:
        """Count the lines that said something; the rest of a run's lines are ignored."""
        if not new.height:
            return
        fresh = new.select("run", "line").filter(
            (pl.col("line") != pl.col("line").shift(1)).fill_null(True)
            & (pl.col("line") > self._last_told)
        )
        for run, count in fresh.group_by("run").len().iter_rows():
            self._runs[run].told += count
        self._last_told = max(self._last_told, int(new["line"][-1]))

    def _cycles(
        self,
        spine: pl.DataFrame,
        reading: classify.Reading | None,
        touched: set[int],
        last: bool,
    ) -> Batch:
        """Join, account, check, number: a block's rows."""
        spine = pl.concat([self._held, spine]) if self._held.height else spine
        spine, self._order = assemble.attach(spine, self._order)
        held = 0 if last else assemble.hold(spine)
        self._held = spine.tail(held).select(*assemble.SPINE)
        spine = spine.head(spine.height - held)
        merged, alone = assemble.merge(spine.filter(assemble.CYCLE_RULES))
        if alone.height:
            text = (
                pl.when(pl.col("rule") == Rule.STAGES)
                .then(pl.lit("Qwen MTP stages without their timing line"))
                .otherwise(pl.lit("dspark timing detail without its timing line"))
            )
            self._unfit(alone.select("line", "run", text.alias("text")))
        table = self._numbered(assemble.account(merged))
        marks = spine.filter(
            pl.col("rule").is_in([int(Rule.SPEED), int(Rule.SERVER), int(Rule.NOTE)])
        ).select("line", "piece", "run", "rule")
        blank = classify.nothing() if reading is None else reading
        speeds, events = blank.speeds, blank.server
        ids, requests = self._requests.assign(
            self._run,
            table,
            marks,
            speeds,
            events.with_columns(self._run_of(events)),
        )
        table = table.with_columns(ids.alias("request_id"))
        good, refused = ledger.split(table)
        good = self._native.uncover(good, keep=True)
        refused = self._native.uncover(refused)
        requests = self._native.uncover(requests, "first_line")
        runs.count_cycles(self._runs, good, refused)
        runs.count_requests(self._runs, requests)
        for index in marks.filter(pl.col("rule") != Rule.NOTE)["run"].unique().to_list():
            self._runs[index].spoke = True
        if requests.height:
            self._last_request = requests.tail(1)
        traced = self._native.rows(self._runs)
        batch = Batch(
            cycles=pl.concat([self._rows(good, CYCLES), traced.cycles]),
            refused=pl.concat([self._rows(refused, REFUSED), traced.refused]),
            requests=pl.concat([self._rows(requests, REQUESTS), traced.requests]),
            runs=pl.concat([self._run_rows(), traced.runs]),
        )
        # Runs that ended keep nothing: their last row has been given out.
        self._runs = {self._run: self._runs[self._run]}
        return batch

    def _numbered(self, table: pl.DataFrame) -> pl.DataFrame:
        """`table` with `cycle`, the place in the run; refused rows keep theirs."""
        if not table.height:
            return table.with_columns(cycle=pl.lit(None, pl.Int64))
        first, final = int(table["run"][0]), int(table["run"][-1])
        if final == first == self._count_run:
            start = self._next_cycle
            self._next_cycle += table.height
            return table.with_columns(cycle=pl.int_range(start, start + table.height))
        carried = pl.when(pl.col("run") == self._count_run).then(self._next_cycle).otherwise(0)
        table = table.with_columns(cycle=pl.int_range(pl.len()).over("run") + carried)
        self._count_run, self._next_cycle = final, int(table["cycle"][-1]) + 1
        return table

    _count_run = 0

    def _rows(self, table: pl.DataFrame, of: Table) -> pl.DataFrame:
        if not table.height:
            return empty(of)
        run_id = self._native.run_id(table["run"].unique().to_list())
        return conform(table.with_columns(run_id=run_id), of)

    def _run_rows(self) -> pl.DataFrame:
        rows = [
            run.row(self.log_id, self._native.number(index))
            for index, run in self._runs.items()
            if self._native.is_row(index)
        ]
        for row in rows:
            row["max_tokens"] = self.max_tokens
        return runs.frame(rows)

    def _settle(self, batch: Batch) -> Batch:
        """At the end: the given token count, and the dark cycles it proves."""
        run, request = self._runs[self._run], self._last_request
        if self.tokens is None or self.run_count != 1 or self.request_count != 1:
            return batch
        if self._native.run_count:
            told = self._native.counted(self.tokens)
            self.tokens_used = told.requests["tokens_source"].item() == "given"
            batch.runs, batch.requests = told.runs, told.requests
            return batch
        if request is None or "generated_tokens" in request.columns:
            # The engine printed its own count.
            return batch
        self.tokens_used = True
        run.exact = self.tokens
        count, rate = self.tokens, None
        if "decode_tokens_per_s" in request.columns:
            rate = request["decode_tokens_per_s"][0]
        request = request.with_columns(
            pl.lit(count, pl.Int64).alias("generated_tokens"),
            pl.lit("given").alias("tokens_source"),
            pl.lit(count / rate * 1000 if rate else None, pl.Float64).alias("decode_ms"),
        )
        # Without its speed line the log was cut, and what it lacks may be anything.
        ended = "kind" in request.columns and request["kind"][0] is not None
        dark = self._dark(run, count) if ended else 0
        if dark:
            run.unlogged = dark
            first = self._next_cycle
            rows = pl.DataFrame({"cycle": pl.int_range(first, first + dark, eager=True)})
            rows = rows.with_columns(
                self._native.run_id([run.index]).alias("run_id"),
                pl.lit(request["request_id"][0], pl.Int64).alias("request_id"),
                pl.lit("legacy").alias("dialect"),
                pl.lit("unlogged").alias("outcome"),
                pl.lit(1).alias("emitted"),
                *(pl.lit(0).alias(name) for name in ("verified", "accepted")),
            )
            batch.cycles = pl.concat([batch.cycles, conform(rows, CYCLES)])
        batch.requests = self._rows(request, REQUESTS)
        batch.runs = self._run_rows().with_columns(pl.lit(count, pl.Int64).alias("tokens_exact"))
        return batch

    @staticmethod
    def _dark(run: runs.Run, tokens: int) -> int:
        """Cycles that printed nothing, one token each (ds4-logs.md, dark cycles).

        Only where timing lines prove greedy decoding, no miss is logged, and every
        line that looks like speculation was counted; else the difference stays open.
        """
        if run.dialects != {"legacy"} or not run.timed or run.sampled or run.misses:
            return 0
        if run.unfit or run.refused or run.uncounted:
            return 0
        dark = tokens - run.emitted
        return dark if 0 < dark <= DARK_LIMIT else 0


def _key(lines: pl.Series, pieces: pl.Series) -> np.ndarray:
    """Place in the log as one number."""
    return lines.to_numpy() * (1 << 32) + pieces.to_numpy()


def _join(batches: list[Batch]) -> Batch:
    if len(batches) < 2:
        return batches[0] if batches else Batch()
    keys = {"requests": ["run_id", "request_id"], "runs": ["run_id"]}
    joined = {
        name: pl.concat([getattr(batch, name) for batch in batches])
        for name in ("cycles", "refused", "requests", "runs")
    }
    for name, key in keys.items():
        joined[name] = joined[name].unique(key, keep="last", maintain_order=True)
    return Batch(**joined)
