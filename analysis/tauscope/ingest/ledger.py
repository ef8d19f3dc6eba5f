"""The ledger identity and its bounds: rows that break one are kept apart, with the reason.

    emitted = 1 + free_accepted + accepted + resampled       (unless truncated)
    0 <= accepted <= verified      free_accepted <= free_checked
    free_checked + verified <= drafted      emitted >= 1      0 <= times < 1e9 ms

A null passes: what isn't known can't be contradicted.
"""

from __future__ import annotations

from functools import cache

import polars as pl

from tauscope.ingest.text import say

TIMES = (
    "draft_ms", "snapshot_ms", "verify_ms", "commit_ms",
    "decode_ms", "base_ms", "reported_ms", "wall_ms",
)  # fmt: skip
# 11 days: a time that long is a clock gone wrong, and sums of shorter ones stay finite.
TIME_LIMIT = 1e9
_COUNTS = (
    "drafted", "free_checked", "free_accepted", "verified", "accepted", "resampled",
    "emitted", "target_forwards",
)  # fmt: skip


@cache
def _rules() -> list[tuple[pl.Expr, pl.Expr]]:
    """Every rule as (breaks it, the reason with its numbers)."""
    col = pl.col
    zero = lambda name: col(name).fill_null(0)  # noqa: E731
    long = lambda name: col(name).cast(pl.Int64)  # noqa: E731 - two Int32 may add up to more
    made = 1 + long("free_accepted") + long("accepted") + long("resampled")
    spent = zero("free_checked").cast(pl.Int64) + zero("verified").cast(pl.Int64)
    return [
        *((col(name) < 0, say(f"{name} {{}} < 0", name)) for name in _COUNTS),
        (
            col("accepted") > col("verified"),
            say("accepted {} > verified {}", "accepted", "verified"),
        ),
        (
            col("free_accepted") > col("free_checked"),
            say("free_accepted {} > free_checked {}", "free_accepted", "free_checked"),
        ),
        (
            spent > col("drafted"),
            say(
                "free_checked {} + verified {} > drafted {}",
                zero("free_checked"),
                zero("verified"),
                "drafted",
            ),
        ),
        (col("emitted") < 1, say("emitted {} < 1", "emitted")),
        (
            pl.when(col("truncated").fill_null(False))
            .then(col("emitted") > made)
            .otherwise(col("emitted") != made),
            say(
                "emitted {} is not 1 + free_accepted {} + accepted {} + resampled {}",
                "emitted",
                "free_accepted",
                "accepted",
                "resampled",
            ),
        ),
        (
            col("said_emitted") != col("emitted"),
            say("the line says emitted={}, its counts say {}", "said_emitted", "emitted"),
        ),
        (
            col("said_forwards") != col("target_forwards"),
            say(
                "the line says target_calls={}, its path takes {}",
                "said_forwards",
                "target_forwards",
            ),
        ),
        *((col(name) < 0, say(f"{name} {{}} < 0", name)) for name in TIMES),
        *((~(col(name) < TIME_LIMIT), say(f"{name} {{}} is no time", name)) for name in TIMES),
    ]


def split(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows that keep every rule, and rows that break one, those with a `reason`.

    `frame` has the columns of `cycles`, and `said_emitted`, `said_forwards` (what
    the line itself states, null where it doesn't).
    """
    rules = _rules()
    bad = pl.any_horizontal(broken.fill_null(False) for broken, _ in rules)
    marked = frame.select(bad.alias("bad"))["bad"]
    if not marked.any():
        return frame, frame.clear().with_columns(reason=pl.lit(None, pl.String))
    reason = pl.coalesce(pl.when(broken).then(text) for broken, text in rules)
    refused = frame.filter(marked).with_columns(reason=reason)
    return frame.filter(~marked), refused
