"""The record: one log line as it was read, before any accounting.

Every dialect reads its lines into this one frame; `assemble` joins the records
that belong to one cycle, and the dialect then accounts for them. What a rule
means is written in the module of its dialect.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import polars as pl


class Rule(IntEnum):
    """How a record is accounted for."""

    EVENT = 0  # known, and neither a cycle nor part of one
    # legacy
    MISS = 1
    FOLD = 2
    MICRO = 3
    DECODE2 = 4
    CONF = 5
    SEQ = 6
    SEQ_END = 7
    COMBINED = 8
    SAMPLE = 9
    OTHER = 10
    # glm
    GLM = 20
    # qwen
    BLOCK = 30
    FREE_FIRST = 31
    BYPASS = 32
    QWEN_OTHER = 33
    STAGES = 34
    # dspark
    DSPARK = 40
    DETAIL = 41
    DSPEC = 42
    DMISS = 43
    DSKIP = 44
    # what runs and requests are cut at
    STARTUP = 60
    SPEED = 61
    SERVER = 62
    UNFIT = 63
    NOTE = 64  # ds4-server says something else
    TRACE = 65  # a native record; only runs are cut at it


class Fix(IntEnum):
    """What repaired the state after a reject."""

    NONE = 0
    PREFIX = 1
    REPLAY = 2


DIALECTS = {"legacy": (1, 20), "glm": (20, 30), "qwen": (30, 40), "dspark": (40, 60)}

# Counts above this are a torn or hostile line, not a cycle.
COUNT_LIMIT = 1_000_000

RECORD: dict[str, pl.DataType] = {
    "line": pl.Int64(),
    "piece": pl.Int32(),
    "rule": pl.UInt8(),
    "kind": pl.String(),  # the engine's word for it, where the rule doesn't say it
    "drafted": pl.Int64(),
    "committed": pl.Int64(),
    "third": pl.Int64(),  # resampled, target_tokens or the printed `verify=` count
    "said_emitted": pl.Int64(),
    "said_forwards": pl.Int64(),
    "margin": pl.Float64(),
    "threshold": pl.Float64(),
    "draft_token": pl.Int64(),
    "next_token": pl.Int64(),
    "draft_ms": pl.Float64(),
    "snapshot_ms": pl.Float64(),
    "verify_ms": pl.Float64(),
    "commit_ms": pl.Float64(),
    "base_ms": pl.Float64(),
    "reported_ms": pl.Float64(),
    "fix": pl.UInt8(),
    "extra": pl.String(),  # JSON members without the braces
}
COUNTS = ("drafted", "committed", "third", "said_emitted", "said_forwards")


def records(frame: pl.DataFrame) -> pl.DataFrame:
    """`frame` with exactly the columns of a record, missing ones null.

    A negative token id is the engine's way to say that there is none.
    """
    have = set(frame.columns)
    return frame.select(
        pl.lit(None, dtype=dtype).alias(name)
        if name not in have
        else pl.when(pl.col(name) >= 0).then(pl.col(name).cast(dtype)).alias(name)
        if name in ("draft_token", "next_token")
        else pl.col(name).cast(dtype)
        for name, dtype in RECORD.items()
    )


_NONE = pl.DataFrame(schema=RECORD)


def none() -> pl.DataFrame:
    """No records."""
    return _NONE.clone()


def from_arrays(columns: dict[str, np.ndarray]) -> pl.DataFrame:
    """Records from arrays of equal length; NaN is null."""
    return records(
        pl.DataFrame(
            {name: pl.Series(name, values, nan_to_null=True) for name, values in columns.items()}
        )
    )
