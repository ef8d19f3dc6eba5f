"""Native records to runs, requests and cycles, with the memory that spans blocks.

A record carries its run's token, so the lines of two processes that append to
one file come apart however they are mixed. A header begins a run; a token that
has a second header is a second run (an engine that gives itself a fixed token),
and one without any is a run whose facts are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import polars as pl

from tauscope.ingest import ledger, native
from tauscope.schema import CYCLES, REFUSED, REQUESTS, RUNS, conform, empty

_FACTS = (
    "engine", "engine_version", "model", "drafter", "draft_depth", "threshold", "arm", "backend",
    "machine", "ctx", "pid", "unix_ms",
)  # fmt: skip
_COLUMNS = ("model", "drafter", "draft_depth", "threshold", "arm", "backend", "machine", "ctx")
_START = ("engine_id", "workload", "prompt_id", "prompt_tokens", "cached_tokens")
_END = ("generated_tokens", "prefill_ms", "decode_ms", "finish", "error", "output_hash")


@dataclass
class Rows:
    """Rows that are new or changed: as a parser's Batch, and as complete."""

    cycles: pl.DataFrame = field(default_factory=lambda: empty(CYCLES))
    refused: pl.DataFrame = field(default_factory=lambda: empty(REFUSED))
    requests: pl.DataFrame = field(default_factory=lambda: empty(REQUESTS))
    runs: pl.DataFrame = field(default_factory=lambda: empty(RUNS))


class NativeReader:
    """Reads the native lines of one log, block after block.

    `number` gives the runs that begin at these lines their index in the log; a
    parser that finds runs of other dialects there too counts both. `orphans` are
    unfit lines (line, text) before any run: the parser's to report at the end.
    """

    def __init__(
        self, log_id: str, number: Callable[[pl.Series], Sequence[int] | pl.Series] | None = None
    ) -> None:
        self.log_id = log_id
        self._number = number or (lambda lines: range(self.run_count, self.run_count + len(lines)))
        self.orphans = pl.DataFrame(schema={"line": pl.Int64, "text": pl.String})
        # (run token, headers so far) is a run; both frames have one row of it.
        self._runs = pl.DataFrame(
            schema={"run": pl.String, "header": pl.Int64, "run_id": pl.String, "seen": pl.Int64}
        )
        self._rows = empty(RUNS).with_columns(
            drafting=pl.lit(None, pl.Boolean), judging=pl.lit(None, pl.Boolean)
        )
        self._requests = pl.DataFrame(schema=_request_schema())

    @property
    def run_count(self) -> int:
        """Native runs so far."""
        return self._runs.height

    @property
    def request_count(self) -> int:
        """Requests so far, in all native runs."""
        return self._requests.height

    def take(self, read: native.Native) -> Rows:
        """Rows of what `parse_native` read in the next lines."""
        if not read.records.height and not read.unfit.height and not read.kinds.height:
            return Rows()
        records = self._place(read.records)
        cycles, refused = ledger.split(self._cycles(records))
        requests = self._take_requests(records, pl.concat([cycles, refused.select(cycles.columns)]))
        runs = self._take_runs(records, cycles, refused, read)
        return Rows(conform(cycles, CYCLES), conform(refused, REFUSED), requests, runs)

    def _place(self, records: pl.DataFrame) -> pl.DataFrame:
        """`records` with run_id; makes the runs that they begin known."""
        before = self._runs.group_by("run").agg(pl.col("header").max().alias("before"))
        records = (
            records.join(before, on="run", how="left", maintain_order="left")
            .with_columns(
                header=pl.col("before").fill_null(0)
                + (pl.col("kind") == "run").cum_sum().over("run").cast(pl.Int64)
            )
            .drop("before")
        )
        keys = ["run", "header"]
        new = (
            records.unique(keys, keep="first", maintain_order=True)
            .join(self._runs, on=keys, how="anti", maintain_order="left")
            .select(*keys, "line")
        )
        new = new.with_columns(
            index=pl.Series(self._number(new["line"]), dtype=pl.Int64)
        ).with_columns(
            run_id=pl.format("{}-{}", pl.lit(self.log_id), "index"), seen=pl.lit(0, pl.Int64)
        )
        self._runs = pl.concat([self._runs, new.select(self._runs.columns)])
        index = new.select("run_id", pl.col("index").cast(pl.Int32).alias("run_index"))
        self._rows = pl.concat([self._rows, index], how="diagonal")
        return records.join(self._runs, on=keys, how="left", maintain_order="left")

    def _cycles(self, records: pl.DataFrame) -> pl.DataFrame:
        """Cycle records as rows of `cycles`, numbered within their run."""
        cycles = records.filter(pl.col("kind") == "cycle").with_columns(
            cycle=pl.col("seen") + pl.int_range(pl.len()).over("run_id"),
            request_id=pl.col("request"),
            first_line=pl.col("line"),
            last_line=pl.col("line"),
            dialect=pl.lit("native"),
            outcome=native.outcome(),
            extra=_with_said(),
        )
        more = cycles.group_by("run_id").agg(more=pl.len().cast(pl.Int64))
        self._runs = (
            self._runs.join(more, on="run_id", how="left", maintain_order="left")
            .with_columns(seen=pl.col("seen") + pl.col("more").fill_null(0))
            .drop("more")
        )
        nothing = pl.lit(None, pl.Int64)
        return conform(cycles, CYCLES).with_columns(said_emitted=nothing, said_forwards=nothing)

    def _take_requests(self, records: pl.DataFrame, cycles: pl.DataFrame) -> pl.DataFrame:
        """Rows of the requests that these records begin, continue or end."""
        keys = ["run_id", "request_id"]
        emitted = cycles.select(
            *keys,
            pl.col("emitted").cast(pl.Int64),
            "line",
            unknown=pl.col("emitted").is_null().cast(pl.Int64),
        )
        ends = pl.col("kind") == "end"
        lines = records.filter(pl.col("kind").is_in(("request", "end"))).select(
            "run_id",
            pl.col("request").alias("request_id"),
            "line",
            *_START,
            *_END,
            "extra",
            ended=ends,
        )
        new = pl.concat([lines, emitted], how="diagonal_relaxed").filter(
            pl.col("request_id").is_not_null()
        )
        if not new.height:
            return empty(REQUESTS)
        new = new.with_columns(first_line="line", last_line="line")
        members = pl.col("extra").drop_nulls().str.strip_prefix("{").str.strip_suffix("}")
        merged = (
            pl.concat([self._requests, new.drop("line")], how="diagonal_relaxed")
            .group_by(keys, maintain_order=True)
            .agg(
                *(pl.col(name).drop_nulls().first() for name in _START),
                *(pl.col(name).drop_nulls().last() for name in _END),
                pl.col("emitted", "unknown").sum(),
                pl.col("ended").any(),
                pl.col("first_line").min(),
                pl.col("last_line").max(),
                extra=members.str.join(","),
            )
            .with_columns(extra=_braces(pl.col("extra")))
        )
        self._requests = conform_to(merged, _request_schema())
        changed = merged.join(new.select(keys).unique(), on=keys, how="semi", maintain_order="left")
        # What the engine didn't count, its cycles did; a request still open has no count.
        counted = pl.when(pl.col("ended") & (pl.col("unknown") == 0)).then("emitted")
        tokens = pl.coalesce("generated_tokens", counted)
        rows = changed.with_columns(
            generated_tokens=tokens,
            tokens_source=pl.when(pl.col("generated_tokens").is_not_null())
            .then(pl.lit("engine"))
            .when(tokens.is_not_null())
            .then(pl.lit("cycles")),
            decode_tokens_per_s=pl.when(pl.col("decode_ms") > 0).then(
                1000 * tokens / pl.col("decode_ms")
            ),
            kind=pl.lit("native"),
            overlapped=pl.lit(False),
        )
        return conform(rows, REQUESTS)

    def _take_runs(
        self,
        records: pl.DataFrame,
        cycles: pl.DataFrame,
        refused: pl.DataFrame,
        read: native.Native,
    ) -> pl.DataFrame:
        """Rows of the runs that these lines begin or continue."""
        unfit = self._belonging(records, read.unfit)
        newest = self._runs.group_by("run").agg(pl.col("run_id").last())
        kinds = read.kinds.join(newest, on="run", how="inner").with_columns(
            unknown_kinds=pl.format("native {}", "kind")
        )
        drafts = pl.max_horizontal(pl.col("drafted", "draft_ms").cast(pl.Float64)) > 0
        judged = (pl.col("verified") > 0) | (pl.col("free_checked") > 0)
        lines = pl.concat(
            [
                records.select("run_id", "line"),
                unfit.select("run_id", "line"),
                kinds.select("run_id", "line"),
            ]
        )
        parts = [
            self._rows,
            self._headers(records),
            lines.unique().select(
                "run_id", lines=pl.lit(1, pl.Int64), first_line="line", last_line="line"
            ),
            # A trace has a record for every cycle; a refused one is missing.
            cycles.select("run_id", drafting=drafts, judging=judged, hidden_cycles=pl.lit(False)),
            refused.select("run_id", refused_rows=pl.lit(1, pl.Int64), hidden_cycles=pl.lit(True)),
            unfit.select(
                "run_id",
                unfit_lines=pl.lit(1, pl.Int64),
                unfit_examples=pl.concat_list(pl.struct("line", "text")),
            ),
            kinds.select("run_id", unknown_kinds=pl.concat_list("unknown_kinds")),
        ]
        sums = ("lines", "refused_rows", "unfit_lines")
        lists = ("facts", "unfit_examples", "unknown_kinds")
        flat = {name: pl.col(name).drop_nulls().explode(empty_as_null=False) for name in lists}
        self._rows = (
            pl.concat(parts, how="diagonal_relaxed")
            .group_by("run_id", maintain_order=True)
            .agg(
                pl.col("run_index", *_COLUMNS, "extra").drop_nulls().first(),
                pl.col(*sums).sum(),
                pl.col("first_line").min(),
                pl.col("last_line").max(),
                pl.col("drafting", "judging", "hidden_cycles").max(),
                flat["facts"],
                flat["unfit_examples"].head(3),
                flat["unknown_kinds"].unique(maintain_order=True),
            )
        )
        changed = self._rows.join(lines.select("run_id").unique(), on="run_id", how="semi")
        headless = self._runs.filter(pl.col("header") == 0).select("run_id", headless=True)
        missing = pl.concat_list(
            pl.struct(
                pl.lit("header").alias("name"),
                pl.lit("missing").alias("value"),
                pl.lit(None, pl.Int64).alias("line"),
            )
        )
        rows = changed.join(headless, on="run_id", how="left").with_columns(
            facts=pl.when("headless").then(missing).otherwise("facts"),
            dialects=pl.lit(["native"]),
            ignored_lines=pl.lit(0),
            unlogged_cycles=pl.lit(0),
            # Drafts that nothing ever judged, in a run said to be without speculation, or not
            # said to be with any: its label may come later.
            baseline_drafts=pl.when(pl.col("arm").fill_null("off") == "off").then(
                pl.col("drafting") & ~pl.col("judging").fill_null(False)
            ),
        )
        return conform(rows.sort("run_index"), RUNS)

    def _headers(self, records: pl.DataFrame) -> pl.DataFrame:
        """Facts of the runs whose header is among `records`."""
        headers = records.filter(pl.col("kind") == "run")
        facts = (
            headers.select("run_id", "line", *(pl.col(name).cast(pl.String) for name in _FACTS))
            .unpivot(index=["run_id", "line"], variable_name="name")
            .drop_nulls("value")
            .group_by("run_id", maintain_order=True)
            .agg(facts=pl.struct("name", "value", "line"))
        )
        return headers.select("run_id", *_COLUMNS, "extra").join(
            facts, on="run_id", how="left", maintain_order="left"
        )

    def _belonging(self, records: pl.DataFrame, unfit: pl.DataFrame) -> pl.DataFrame:
        """Unfit lines with the run of the last record before them, or of the first after."""
        self.orphans = pl.concat([self.orphans, unfit])
        if not self._runs.height:
            return unfit.clear().with_columns(run_id=pl.lit(None, pl.String))
        waiting, self.orphans = self.orphans, self.orphans.clear()
        last = self._runs["run_id"][-1]
        where = records.select("line", "run_id").sort("line")
        return (
            waiting.sort("line")
            .join_asof(where, on="line")
            .with_columns(
                pl.col("run_id").fill_null(last if not where.height else where["run_id"][0])
            )
        )


def _with_said() -> pl.Expr:
    """`extra`, with an outcome of a later version in it: the column can't hold its word."""
    said = pl.col("outcome").is_not_null() & (native.outcome() != pl.col("outcome"))
    word = pl.format('"outcome":"{}"', pl.col("outcome").str.replace_all(r'["\\\x00-\x1f]', "?"))
    members = pl.concat_str(
        pl.when(said).then(word),
        pl.col("extra").str.strip_prefix("{").str.strip_suffix("}"),
        separator=",",
        ignore_nulls=True,
    )
    return _braces(members)


def _braces(members: pl.Expr) -> pl.Expr:
    return pl.when(members != "").then(pl.lit("{") + members + pl.lit("}"))


def _request_schema() -> dict[str, pl.DataType]:
    types = REQUESTS.polars()
    return {
        "run_id": types["run_id"],
        "request_id": types["request_id"],
        **{name: types[name] for name in (*_START, *_END, "first_line", "last_line", "extra")},
        "emitted": pl.Int64(),
        "unknown": pl.Int64(),
        "ended": pl.Boolean(),
    }


def conform_to(frame: pl.DataFrame, types: dict[str, pl.DataType]) -> pl.DataFrame:
    """`frame` with exactly these columns."""
    return frame.select(pl.col(name).cast(dtype) for name, dtype in types.items())
