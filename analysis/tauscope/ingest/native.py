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
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import duckdb
import polars as pl

from tauscope.ingest.ledger import TIME_LIMIT, TIMES
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
_NAMED = ("tauscope", "kind", "run")
_IDENTITY = ("request", "t_ms")
# Never below 0. Counts and times of a cycle are the ledger's to judge, which says what is wrong.
_UNSIGNED = (
    "request", "pos", "pid", "unix_ms", "ctx", "prompt_tokens", "cached_tokens",
    "generated_tokens", "draft_depth",
)  # fmt: skip
# The writer takes numbers from here on for unknown; sums of less stay finite.
_REAL_LIMIT = 2.0**43

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
_FITTING = {
    "DOUBLE": "'UBIGINT', 'BIGINT', 'UHUGEINT', 'HUGEINT', 'DOUBLE', 'NULL'",
    "VARCHAR": "'VARCHAR', 'NULL'",
    "BOOLEAN": "'BOOLEAN', 'NULL'",
}
# DuckDB takes "nan" and true for numbers and 5 for a text. Looking up every type would cost
# half as much as reading; what this matches, and nothing else, may hold such a value.
_DOUBTFUL = r"\\|" + "|".join(
    rf'"(?:{"|".join(name for name in _TYPES if _TYPES[name] == kind)})"\s*:\s*[^{first}\s]'
    for kind, first in (("DOUBLE", "-0-9n"), ("VARCHAR", '"n'), ("BOOLEAN", "tfn"))
)


def _typed(names: Iterable[str]) -> str:
    return " AND ".join(
        f"COALESCE(json_type(text, '$.{name}') IN ({_FITTING[_TYPES[name]]}), TRUE)"
        for name in names
    )


_TYPED = f"""
    SELECT line, piece, {_typed(_TYPES)} AS typed, {_typed(_NAMED)} AS named,
           {_typed(_IDENTITY)} AS placed
    FROM doubtful
"""
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
    Values that have the wrong type, are not finite, or are below 0 where that means
    nothing, make a line unfit; empty texts are nulls; fields that are not known here
    go into `extra`. A record of a newer format keeps its place, its fields
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
        doubtful = read.filter(pl.col("valid") & pl.col("text").str.contains(_DOUBTFUL))
        connection.register("doubtful", doubtful.select("line", "piece", "text").to_arrow())
        types = connection.sql(_TYPED).pl()
    for more in (rest, types):
        read = read.join(more, on=["line", "piece"], how="left", maintain_order="left")
    read = read.with_columns(pl.col("typed", "named", "placed").fill_null(True))
    sound = _sound()
    fits = pl.all_horizontal(
        pl.col("valid", "typed"),
        pl.col("tauscope") >= 1,
        pl.col("kind").is_not_null(),
        pl.col("run").is_not_null(),
        pl.col("request").is_not_null() | ~pl.col("kind").is_in(("request", "end")),
        pl.coalesce("known", pl.col("keys")) == pl.col("found"),
        *sound.values(),
    )
    newer = (pl.col("tauscope") > FORMAT).fill_null(False)
    # Of a newer format only the identity was asked for; a changed type is no fault there.
    named = pl.all_horizontal(
        pl.col("valid", "named"), pl.col("kind").is_not_null(), pl.col("run").is_not_null()
    )
    read = read.with_columns(fits=(fits | (newer & named)).fill_null(False), newer=newer)
    unfit = read.filter(~pl.col("fits")).select("line", "text")
    good = read.filter("fits")
    known = pl.col("kind").is_in(KINDS)
    extra = pl.when("newer").then("text").when(pl.col("extra") != "{}").then("extra")
    hidden = [name for name in RECORD if name in _TYPES and name not in ("kind", "run", *_IDENTITY)]
    records = (
        good.filter(known)
        .with_columns(
            extra.alias("extra"),
            *(pl.when(~pl.col("newer")).then(name).alias(name) for name in hidden),
            *(pl.when(sound[name] & pl.col("placed")).then(name).alias(name) for name in _IDENTITY),
        )
        .with_columns(
            pl.when(pl.col(name).str.strip_chars() != "").then(name).alias(name) for name in _TEXT
        )
    )
    return Native(
        records.select(pl.col(name).cast(dtype) for name, dtype in RECORD.items()),
        unfit,
        good.filter(~known).select("line", "run", "kind"),
    )


def _sound() -> dict[str, pl.Expr]:
    """Whether a number can be what it is called, by name; what isn't known can."""
    sound = {}
    for name in _WHOLE + _LONG:
        value, limit = pl.col(name), 2.0**31 if name in _WHOLE else 2.0**53
        sound[name] = (value == value.floor()) & (value.abs() < limit)
    for name in _REAL:
        # Any other time of a cycle is the ledger's to refuse.
        value = pl.col(name)
        sound[name] = value.is_finite() if name in TIMES else value.abs() < _REAL_LIMIT
    for name in _UNSIGNED:
        sound[name] &= pl.col(name) >= 0
    of_request = pl.col("kind").is_in(("request", "end"))
    for name in ("prefill_ms", "decode_ms"):
        sound[name] &= ~of_request | pl.col(name).is_between(0, TIME_LIMIT, closed="left")
    return {name: fits.fill_null(True) for name, fits in sound.items()}


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
