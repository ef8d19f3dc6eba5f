"""The tables of a store: columns, types, units and what they mean.

This is the one place where a column is written down. The importer builds its
frames from it, the store validates against it, the catalog casts and comments
its views from it, and `tauscope schema` prints it back out of the database.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

# Raised by one when a reader of the older number would misread the newer one.
# A column added at the end does not raise it: readers fill it with null.
SCHEMA_VERSION = 1

OUTCOMES = (
    "all_accepted",
    "partial",
    "rejected",
    "folded",
    "missed",
    "bypassed",
    "undrafted",
    "unverified",
    "unlogged",
    "unknown",
    "fallback",
)
BETS = ("all_accepted", "partial", "rejected")
STATES = ("complete", "recording", "recovered")
SOURCE_KINDS = ("import", "record", "simulate")
UNLABELLED = "unlabelled"
WORKLOADS = ("agent", "code", "technical", "prose", "chat")
# An arm is what speculation did; `shadow` measures and is never compared.
OFF, SHADOW = "off", "shadow"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, DuckDB type, unit ("" where it has none) and meaning."""

    name: str
    type: str
    unit: str
    about: str


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a store and the grain of its rows."""

    name: str
    grain: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def polars(self) -> dict[str, pl.DataType]:
        """Column name to Polars type, in order: what `pl.DataFrame(schema=...)` takes."""
        import polars as pl

        plain = {
            "VARCHAR": pl.String(),
            "BIGINT": pl.Int64(),
            "INTEGER": pl.Int32(),
            "DOUBLE": pl.Float64(),
            "BOOLEAN": pl.Boolean(),
            "VARCHAR[]": pl.List(pl.String()),
            FACTS_TYPE: pl.List(
                pl.Struct({"name": pl.String(), "value": pl.String(), "line": pl.Int64()})
            ),
            LINES_TYPE: pl.List(pl.Struct({"line": pl.Int64(), "text": pl.String()})),
        }
        return {column.name: plain[column.type] for column in self.columns}


FACTS_TYPE = "STRUCT(name VARCHAR, value VARCHAR, line BIGINT)[]"
LINES_TYPE = "STRUCT(line BIGINT, text VARCHAR)[]"


def _columns(*rows: tuple[str, str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(*row) for row in rows)


RUNS = Table(
    "runs",
    "one engine process with one configuration",
    _columns(
        ("run_id", "VARCHAR", "", "log_id and the run's place in that log, `<log_id>-<n>`"),
        ("log_id", "VARCHAR", "", "the log the run was read from; it stays when the log grows"),
        ("run_index", "INTEGER", "", "place of the run in its log, from 0"),
        ("source", "VARCHAR", "", "name of the log as it was given"),
        ("source_kind", "VARCHAR", "", "import, record or simulate"),
        ("state", "VARCHAR", "", "complete; recording (still growing); recovered (after a kill)"),
        ("simulated", "BOOLEAN", "", "made by `tauscope simulate`, not by an engine"),
        (
            "baseline_drafts",
            "BOOLEAN",
            "",
            "a drafter with depth above 1 is loaded and no speculation ran: the run pays a tax",
        ),
        ("workload", "VARCHAR", "", "label of the whole run; a request's own label goes first"),
        ("arm", "VARCHAR", "", "what speculation does in the run: off, mtp1, shadow, …"),
        ("prompt_id", "VARCHAR", "", "label of the whole run; a request's own label goes first"),
        ("experiment", "VARCHAR", "", "experiment the run was recorded in"),
        ("machine", "VARCHAR", "", "device and memory, as the engine printed them"),
        ("model", "VARCHAR", "", "target model, where the log names it"),
        ("drafter", "VARCHAR", "", "file of the drafter that was loaded"),
        ("draft_depth", "INTEGER", "tokens", "greatest number of draft tokens a cycle"),
        ("threshold", "DOUBLE", "logits", "the margin gate's bar, where the log names it"),
        ("ctx", "BIGINT", "tokens", "context size"),
        ("backend", "VARCHAR", "", "metal, cuda, cpu, …"),
        ("dialects", "VARCHAR[]", "", "log dialects seen in the run"),
        ("facts", FACTS_TYPE, "", "what the log says of the run, each with its line"),
        ("tokens_exact", "BIGINT", "tokens", "exact count made, as told with --tokens"),
        ("max_tokens", "BIGINT", "tokens", "a limit, as told with --max-tokens; never a count"),
        ("lines", "BIGINT", "lines", "lines of the run in its log"),
        ("first_line", "BIGINT", "", "first line of the run in its log, from 1"),
        ("last_line", "BIGINT", "", "last line of the run in its log"),
        ("ignored_lines", "BIGINT", "lines", "lines that say nothing of speculation or speed"),
        ("unfit_lines", "BIGINT", "lines", "lines that look like speculation but fit no shape"),
        ("unfit_examples", LINES_TYPE, "", "the first three of those"),
        ("unknown_kinds", "VARCHAR[]", "", "cycle kinds whose accounting is not documented"),
        ("refused_rows", "BIGINT", "rows", "rows that broke the ledger identity or a bound"),
        ("unlogged_cycles", "BIGINT", "cycles", "dark cycles recovered from an exact token count"),
        ("raw_file", "VARCHAR", "", "the log as it was, compressed, relative to the store"),
        ("raw_sha256", "VARCHAR", "", "hash of the uncompressed log"),
        ("raw_bytes", "BIGINT", "bytes", "size of the uncompressed log"),
        ("cycle_files", "VARCHAR[]", "", "Parquet files of its cycles, relative to the store"),
        ("request_files", "VARCHAR[]", "", "the same for its requests"),
        ("refused_files", "VARCHAR[]", "", "the same for its refused rows"),
        ("version", "VARCHAR", "", "tauscope version that wrote the row"),
        ("schema_version", "INTEGER", "", "version of these tables"),
        ("extra", "VARCHAR", "", "facts of later format versions, as JSON"),
        (
            "hidden_cycles",
            "BOOLEAN",
            "",
            "cycles that print nothing may be missing: the log lacks lines that would show or "
            "count them",
        ),
    ),
)

REQUESTS = Table(
    "requests",
    "one generation inside a run",
    _columns(
        ("run_id", "VARCHAR", "", "run the request belongs to"),
        ("request_id", "BIGINT", "", "place of the request in its run, from 0"),
        ("engine_id", "VARCHAR", "", "the engine's own name for the request, where it has one"),
        ("workload", "VARCHAR", "", "label; null takes the run's"),
        ("prompt_id", "VARCHAR", "", "label; null takes the run's"),
        ("kind", "VARCHAR", "", "cli, chat, completion or native"),
        ("flags", "VARCHAR[]", "", "the server's flags: TOOLS, THINKING, DSML_START, …"),
        ("finish", "VARCHAR", "", "stop, length, tool_calls, error, …; null while open"),
        ("error", "VARCHAR", "", "the engine's error text"),
        ("prompt_tokens", "BIGINT", "tokens", "tokens of the prompt, cached ones included"),
        ("cached_tokens", "BIGINT", "tokens", "of those, already in the cache"),
        ("generated_tokens", "BIGINT", "tokens", "tokens the request generated; null when unknown"),
        (
            "tokens_source",
            "VARCHAR",
            "",
            "source of generated_tokens: given (--tokens), engine (printed), cycles (native)",
        ),
        ("prefill_ms", "DOUBLE", "ms", "time to process the prompt"),
        ("prefill_tokens_per_s", "DOUBLE", "tokens/s", "as printed"),
        ("decode_ms", "DOUBLE", "ms", "decode time of the request; prefill never in it"),
        ("decode_tokens_per_s", "DOUBLE", "tokens/s", "as printed, or tokens over decode time"),
        ("output_hash", "VARCHAR", "", "hash of the output, where it was recorded"),
        ("started_at", "VARCHAR", "", "the log's own time stamp (month, day, time; no year)"),
        ("overlapped", "BOOLEAN", "", "ran beside another request: its cycles can't be told apart"),
        ("first_line", "BIGINT", "", "first line of the request in the log"),
        ("last_line", "BIGINT", "", "last line of the request in the log"),
        ("extra", "VARCHAR", "", "fields of later format versions, as JSON"),
    ),
)

CYCLES = Table(
    "cycles",
    "one turn of the decode loop",
    _columns(
        ("run_id", "VARCHAR", "", "run the cycle belongs to"),
        ("request_id", "BIGINT", "", "request; null when it can't be told"),
        ("cycle", "BIGINT", "", "place of the cycle in its run, from 0"),
        ("line", "BIGINT", "", "line of the log that gave the row; null for unlogged cycles"),
        ("first_line", "BIGINT", "", "first line that belongs to the row"),
        ("last_line", "BIGINT", "", "last line that belongs to the row"),
        ("t_ms", "DOUBLE", "ms", "time since the run began, where it is known"),
        ("pos", "BIGINT", "tokens", "context position at the start of the cycle"),
        ("dialect", "VARCHAR", "", "legacy, glm, qwen, dspark, native, …"),
        ("path", "VARCHAR", "", "the engine's own name for the path it took"),
        ("outcome", "VARCHAR", "", "one of: " + ", ".join(OUTCOMES)),
        ("drafted", "INTEGER", "tokens", "draft tokens proposed"),
        ("free_checked", "INTEGER", "tokens", "draft tokens judged by logits already at hand"),
        ("free_accepted", "INTEGER", "tokens", "of those, confirmed"),
        ("verified", "INTEGER", "tokens", "draft tokens scored by a paid verification"),
        ("accepted", "INTEGER", "tokens", "of those, accepted (a prefix)"),
        ("resampled", "INTEGER", "tokens", "tokens drawn anew after a reject"),
        ("emitted", "INTEGER", "tokens", "tokens the cycle appended to the output"),
        ("truncated", "BOOLEAN", "", "an end of text or a cap cut the cycle short"),
        ("target_forwards", "INTEGER", "passes", "target passes: a batch is one, a replay another"),
        ("margin", "DOUBLE", "logits", "the gate's reading; null when not logged or no gate acted"),
        ("threshold", "DOUBLE", "logits", "the gate's bar"),
        ("draft_token", "BIGINT", "token id", "the gated or verified draft"),
        ("next_token", "BIGINT", "token id", "what the target then said at its place"),
        ("draft_ms", "DOUBLE", "ms", "drafting"),
        ("snapshot_ms", "DOUBLE", "ms", "snapshot of the state before a bet"),
        ("verify_ms", "DOUBLE", "ms", "paid verification"),
        ("commit_ms", "DOUBLE", "ms", "commit, prefix repair or replay after it"),
        ("decode_ms", "DOUBLE", "ms", "the one-token decode of a folded cycle"),
        ("base_ms", "DOUBLE", "ms", "the base decode before drafting, where it is logged"),
        ("reported_ms", "DOUBLE", "ms", "the engine's own total, as logged"),
        ("wall_ms", "DOUBLE", "ms", "the whole cycle; null when the log can't give it"),
        ("replayed", "BOOLEAN", "", "the cycle paid for a replay"),
        ("extra", "VARCHAR", "", "printed fields with no column here, as JSON"),
    ),
)

REFUSED = Table(
    "refused",
    "one row that broke the ledger identity or a bound, kept out of cycles",
    (
        *CYCLES.columns,
        Column("reason", "VARCHAR", "", "the rule that the row breaks, with its numbers"),
    ),
)

TABLES = (RUNS, REQUESTS, CYCLES, REFUSED)


def empty(table: Table) -> pl.DataFrame:
    """A frame of `table` with no rows and the right types."""
    if table.name not in _EMPTY:
        import polars as pl

        _EMPTY[table.name] = pl.DataFrame(schema=table.polars())
    return _EMPTY[table.name].clone()


# Building one takes as long as reading hundreds of lines, and every batch needs several.
_EMPTY: dict[str, pl.DataFrame] = {}


def conform(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """`frame` with exactly the columns of `table`, in order, missing ones null.

    Raises polars.exceptions.InvalidOperationError when a value does not fit its type.
    """
    import polars as pl

    have = set(frame.columns)
    return frame.select(
        (pl.col(name).cast(dtype) if name in have else pl.lit(None, dtype=dtype).alias(name))
        for name, dtype in table.polars().items()
    )
