"""The native trace (traces/README.md): lines of JSON that say everything themselves.

`parse_native` is pure: lines in, typed records out, a whole block at a time in
DuckDB's JSON reader, which takes no line for more than it is. Which run and
request a record belongs to is worked out in native_runs.py, where the memory of
earlier blocks is.

A line is cut at every marker, because a writer that was killed leaves a torn
line without an end and the next one is glued to it. What is no whole record is
`unfit`: counted and shown, never repaired.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

import duckdb
import polars as pl

from tauscope.schema import OUTCOMES
from tauscope.trace import FORMAT

MARKER = '{"tauscope":'
KINDS = ("run", "request", "cycle", "end")

_WHOLE = (
    "drafted", "free_checked", "free_accepted", "verified", "accepted", "resampled", "emitted",
    "target_forwards", "draft_depth",
)  # fmt: skip
_LONG = (
    "request", "pos", "draft_token", "next_token", "pid", "unix_ms", "ctx", "prompt_tokens",
    "cached_tokens", "generated_tokens",
)  # fmt: skip
_REAL = (
    "t_ms", "margin", "threshold", "base_ms", "draft_ms", "snapshot_ms", "verify_ms", "commit_ms",
    "decode_ms", "wall_ms", "prefill_ms",
)  # fmt: skip
_TEXT = (
    "path", "outcome", "engine", "engine_version", "model", "drafter", "arm", "backend", "machine",
    "engine_id", "workload", "prompt_id", "finish", "error", "output_hash",
)  # fmt: skip
_FLAG = ("truncated", "replayed")
# What a format newer than ours may still be asked: whose line it is, and when.
_IDENTITY = ("request", "t_ms")

RECORD: dict[str, pl.DataType] = {
    "line": pl.Int64(),
    "kind": pl.String(),
    "run": pl.String(),
    **dict.fromkeys(_WHOLE, pl.Int32()),
    **dict.fromkeys(_LONG, pl.Int64()),
    **dict.fromkeys(_REAL, pl.Float64()),
    **dict.fromkeys(_TEXT, pl.String()),
    **dict.fromkeys(_FLAG, pl.Boolean()),
    "extra": pl.String(),  # a JSON object of what has no column here
}

# Whole numbers are read as DOUBLE: as BIGINT the reader would round 1.5 to 2.
_TYPES = {"tauscope": "DOUBLE", "kind": "VARCHAR", "run": "VARCHAR"} | (
    dict.fromkeys(_WHOLE + _LONG + _REAL, "DOUBLE")
    | dict.fromkeys(_TEXT, "VARCHAR")
    | dict.fromkeys(_FLAG, "BOOLEAN")
)
# Every known name, so that a merge patch with it leaves what is unknown.
_WITHOUT = json.dumps(dict.fromkeys(_TYPES))
_READ = """
    SELECT line, piece, text, json_valid(text) AS valid,
           CASE WHEN json_valid(text) THEN len(json_keys(text)) END AS keys,
           CASE WHEN json_valid(text) THEN json_transform(text, $types) END AS record
    FROM pieces
"""
# A null is the same as nothing, so nulls go first; then what is known; the rest is extra.
_ODD = """
    WITH clean AS (SELECT line, piece, json_merge_patch('{}', text) AS text FROM odd),
         split AS (SELECT *, json_merge_patch(text, $without) AS extra FROM clean)
    SELECT line, piece, CAST(extra AS VARCHAR) AS extra,
           len(json_keys(text)) - len(json_keys(extra)) AS known
    FROM split
"""


@dataclass(frozen=True, slots=True)
class Native:
    """What `parse_native` read, each in the order of the lines.

    `records`: columns of RECORD. `unfit`: (line, text) of what is no whole record.
    `kinds`: (line, run, kind) of records of a kind that a later version may have.
    """

    records: pl.DataFrame
    unfit: pl.DataFrame
    kinds: pl.DataFrame


def is_native(text: pl.Expr) -> pl.Expr:
    """Whether a line holds (a part of) a native record."""
    return text.str.contains(MARKER, literal=True)


def parse_native(lines: pl.DataFrame) -> Native:
    """Lines (line: Int64, text: String) of a log to the native records in them.

    Text before the first marker of a line is another writer's and not looked at.
    Values that have the wrong type make a line unfit; fields that are not known
    here go into `extra`. A record of a newer format keeps its place, its fields
    all in `extra`: what they mean by then is not known.
    """
    pieces = _pieces(lines)
    with _database().cursor() as connection:
        connection.register("pieces", pieces.to_arrow())
        read = connection.sql(_READ, params={"types": json.dumps(_TYPES)}).pl().unnest("record")
        read = read.with_columns(found=pl.sum_horizontal(pl.col(*_TYPES).is_not_null()))
        odd = read.filter(pl.col("valid") & (pl.col("keys") != pl.col("found")))
        connection.register("odd", odd.select("line", "piece", "text").to_arrow())
        rest = connection.sql(_ODD, params={"without": _WITHOUT}).pl()
    read = read.join(rest, on=["line", "piece"], how="left", maintain_order="left")
    whole = [pl.col(name) for name in _WHOLE + _LONG]
    limits = [pl.lit(2.0**31)] * len(_WHOLE) + [pl.lit(2.0**53)] * len(_LONG)
    fits = pl.all_horizontal(
        pl.col("valid"),
        pl.col("tauscope") >= 1,
        pl.col("kind").is_not_null(),
        pl.col("run").is_not_null(),
        pl.col("request").is_not_null() | ~pl.col("kind").is_in(("request", "end")),
        pl.coalesce("known", pl.col("keys")) == pl.col("found"),
        *(
            ((value == value.floor()) & (value.abs() < limit)).fill_null(True)
            for value, limit in zip(whole, limits, strict=True)
        ),
    )
    newer = (pl.col("tauscope") > FORMAT).fill_null(False)
    # Of a newer format only the identity was asked for; a changed type is no fault there.
    named = pl.col("valid") & pl.col("kind").is_not_null() & pl.col("run").is_not_null()
    read = read.with_columns(fits=(fits | (newer & named)).fill_null(False), newer=newer)
    unfit = read.filter(~pl.col("fits")).select("line", "text")
    good = read.filter("fits")
    known = pl.col("kind").is_in(KINDS)
    extra = pl.when("newer").then("text").when(pl.col("extra") != "{}").then("extra")
    hidden = [name for name in RECORD if name in _TYPES and name not in ("kind", "run", *_IDENTITY)]
    records = good.filter(known).with_columns(
        extra.alias("extra"),
        *(pl.when(~pl.col("newer")).then(name).alias(name) for name in hidden),
    )
    return Native(
        records.select(pl.col(name).cast(dtype) for name, dtype in RECORD.items()),
        unfit,
        good.filter(~known).select("line", "run", "kind"),
    )


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One for the process: a live log is read in small blocks, and opening takes 70 ms."""
    return duckdb.connect()


def _pieces(lines: pl.DataFrame) -> pl.DataFrame:
    """(line, piece, text) with one marker each, at the start."""
    table = (
        lines.filter(is_native(pl.col("text")))
        .select(pl.col("line").cast(pl.Int64), pl.col("text").str.split(MARKER).list.slice(1))
        .explode("text")
        .with_columns(text=pl.lit(MARKER) + pl.col("text").str.strip_chars_end("\r\n\0 "))
    )
    # An overlong line comes in parts, whose pieces are numbered as one line's.
    return table.with_columns(piece=pl.int_range(pl.len(), dtype=pl.Int32).over("line"))


def outcome() -> pl.Expr:
    """The outcome of a cycle record: from its counts, else as the engine said.

    Counts of a paid verification speak for themselves; only a fallback, whose
    verification failed, is taken at its word. A fold is also told by its margin.
    """
    said, verified, accepted = pl.col("outcome"), pl.col("verified"), pl.col("accepted")
    drafted, checked, free = pl.col("drafted"), pl.col("free_checked"), pl.col("free_accepted")
    return (
        pl.when(said == "fallback")
        .then(said)
        .when(pl.any_horizontal(pl.col("verified", "accepted", "drafted", "emitted").is_null()))
        .then(pl.lit("unknown"))
        .when((verified > 0) & (accepted == verified))
        .then(pl.lit("all_accepted"))
        .when((verified > 0) & (accepted == 0))
        .then(pl.lit("rejected"))
        .when(verified > 0)
        .then(pl.lit("partial"))
        .when(said.is_in(OUTCOMES))
        .then(said)
        .when(said.is_not_null())
        .then(pl.lit("unknown"))
        .when(drafted == 0)
        .then(pl.lit("undrafted"))
        .when((checked > 0) & (free == 0))
        .then(pl.lit("missed"))
        .when(pl.col("margin") < pl.col("threshold"))
        .then(pl.lit("folded"))
        .when(free > 0)
        .then(pl.lit("unverified"))
        .otherwise(pl.lit("unknown"))
    )
