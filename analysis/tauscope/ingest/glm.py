"""The continuous depth-1 cycle that `--glm-mtp-timing` prints.

One two-token pass verifies base and draft together; there is no separate base
decode, nothing is judged for free, and an accepted cycle emits 2 tokens. The
line quotes both tokens, and a token's text can hold anything, a quote or a
newline too: the numbers before the first quote already tell the cycle.
"""

from __future__ import annotations

import polars as pl

from tauscope.ingest.records import Rule
from tauscope.ingest.text import NUMBER

_CYCLE = (
    rf"^ds4: glm mtp cycle: verify2 ({NUMBER}) ms, head\+draft ({NUMBER}) ms, "
    rf"(ACCEPT|reject) \(draft (-?[0-9]+) '"
)
_TRUE = r"' vs true (-?[0-9]+) '"


def cycle(frame: pl.DataFrame) -> pl.DataFrame:
    """Lines `ds4: glm mtp cycle: …` to records."""
    names = ["verify_ms", "draft_ms", "kind", "draft_token"]
    text = pl.col("text")
    table = frame.with_columns(
        text.str.extract_groups(_CYCLE).struct.rename_fields(names).alias("parts"),
        # Quoted text may imitate the second half: then it isn't known which is real.
        next_token=pl.when(text.str.count_matches(_TRUE) == 1).then(text.str.extract(_TRUE)),
    ).unnest("parts")
    return table.with_columns(
        pl.col("verify_ms", "draft_ms").cast(pl.Float64, strict=False),
        pl.col("draft_token", "next_token").cast(pl.Int64, strict=False),
        committed=(pl.col("kind") == "ACCEPT").cast(pl.Int64),
        rule=pl.lit(int(Rule.GLM), pl.UInt8),
        drafted=pl.lit(1, pl.Int64),
    ).with_columns(
        ok=pl.all_horizontal(pl.col("verify_ms", "draft_ms", "draft_token").is_not_null())
    )


def account(frame: pl.DataFrame) -> pl.DataFrame:
    """Records to the columns of `cycles` (ds4-logs.md section 2)."""
    accepted = pl.col("committed")
    return frame.with_columns(
        pl.lit("glm").alias("dialect"),
        pl.lit("verify2").alias("path"),
        pl.when(accepted == 1)
        .then(pl.lit("all_accepted"))
        .otherwise(pl.lit("rejected"))
        .alias("outcome"),
        *(pl.lit(0, pl.Int64).alias(name) for name in ("free_checked", "free_accepted")),
        pl.lit(1, pl.Int64).alias("verified"),
        accepted.alias("accepted"),
        pl.lit(0, pl.Int64).alias("resampled"),
        (1 + accepted).alias("emitted"),
        pl.lit(1, pl.Int64).alias("target_forwards"),
        pl.lit(False).alias("truncated"),
    )
