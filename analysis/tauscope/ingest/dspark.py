"""The DSpark dialect.

`dspark timing` prints how many tokens were drafted, sent to verification and
accepted by it, but not which count holds the free first token: the printed
counts are kept, `emitted` and the free counts are null, the outcome is unknown.

`DSpark spec partial drafted=D verified=V accepted=A` (full accepts too) says
more: `verified` holds the free first draft and `accepted` the base token, so
V - 1 drafts were accepted by verification and A tokens emitted. How many were
*sent* to verification isn't printed (a block can be cut first), unless all were
accepted. Where both lines exist for a cycle they are one row: times from one,
counts from the other.
"""

from __future__ import annotations

import polars as pl

from tauscope.ingest import text
from tauscope.ingest.records import Rule

_TIMING = (
    rf"^ds4: dspark timing drafted=([0-9]+) verify=([0-9]+) verified=([0-9]+) "
    rf"decode=({text.NUMBER}) ms draft=({text.NUMBER}) ms verify=({text.NUMBER}) ms "
    rf"total=({text.NUMBER}) ms({text.FIELDS})$"
)
_DETAIL = rf"^ds4: dspark timing detail({text.FIELDS})$"


def timing(frame: pl.DataFrame) -> pl.DataFrame:
    """Lines `ds4: dspark timing …` to records; `third` holds the count sent to verification."""
    counts = ["drafted", "third", "committed"]
    times = ["base_ms", "draft_ms", "verify_ms", "reported_ms"]
    table = frame.with_columns(
        parts=pl.col("text")
        .str.extract_groups(_TIMING)
        .struct.rename_fields([*counts, *times, "fields"]),
        detail=pl.col("text").str.extract(_DETAIL),
    ).unnest("parts")
    detail = pl.col("detail").is_not_null()
    return table.with_columns(
        pl.col(*counts).cast(pl.Int64, strict=False),
        pl.col(*times).cast(pl.Float64, strict=False),
        rule=pl.when(detail).then(int(Rule.DETAIL)).otherwise(int(Rule.DSPARK)),
        fields=pl.coalesce("fields", "detail"),
    ).with_columns(
        ok=(detail & (pl.col("detail").str.len_bytes() > 0))
        | pl.all_horizontal(pl.col(*counts, *times).is_not_null()),
        extra=text.left_over(()),
    )


_SPEC = (
    r"^ds4: DSpark spec (?:accept|partial) drafted=([0-9]+)"
    r"(?: verified=([0-9]+))? accepted=([0-9]+)$"
)
_MISS = r"^ds4: DSpark spec miss first draft=(-?[0-9]+) base=(-?[0-9]+)$"
_SKIP = r"^ds4: DSpark spec skip ([a-z][a-z-]*)(?: .*)?$"
_EVENTS = (
    r"^ds4: DSpark (?:scheduler .*|break-even .*|stats .*|spec enter .*"
    r"|support model (?:loaded|detected).*)$"
)


def spec(frame: pl.DataFrame) -> pl.DataFrame:
    """Lines `ds4: DSpark …` to records."""
    column = pl.col("text")
    table = frame.with_columns(
        column.str.extract_groups(_SPEC)
        .struct.rename_fields(["drafted", "committed", "said_emitted"])
        .alias("parts"),
        column.str.extract_groups(_MISS)
        .struct.rename_fields(["draft_token", "next_token"])
        .alias("miss"),
        column.str.extract(_SKIP).alias("kind"),
        column.str.contains(_EVENTS).alias("event"),
    ).unnest("parts", "miss")
    numbers = ("drafted", "committed", "said_emitted", "draft_token", "next_token")
    table = table.with_columns(pl.col(*numbers).cast(pl.Int64, strict=False))
    end, miss = pl.col("said_emitted").is_not_null(), pl.col("next_token").is_not_null()
    skip = pl.col("kind").is_not_null()
    return table.with_columns(
        committed=pl.coalesce("committed", pl.when(end).then("drafted")),
        rule=pl.when(end)
        .then(int(Rule.DSPEC))
        .when(miss)
        .then(int(Rule.DMISS))
        .when(skip)
        .then(int(Rule.DSKIP))
        .otherwise(int(Rule.EVENT)),
        ok=end | miss | skip | pl.col("event"),
    )


def account(frame: pl.DataFrame) -> pl.DataFrame:
    """Records to the columns of `cycles` (ds4-logs.md section 4)."""
    rule = pl.col("rule")
    drafted, committed = pl.col("drafted"), pl.col("committed")
    timed, spec_ = rule == Rule.DSPARK, rule == Rule.DSPEC
    miss, skip = rule == Rule.DMISS, rule == Rule.DSKIP
    # Only this sum shows that the counts mean what they are taken for.
    sure = spec_ & (pl.col("said_emitted") == committed + 1) & (committed >= 1)
    whole = sure & (committed == drafted)
    return frame.with_columns(
        pl.lit("dspark").alias("dialect"),
        path=pl.when(timed)
        .then(pl.lit("dspark"))
        .when(spec_)
        .then(pl.lit("spec"))
        .when(miss)
        .then(pl.lit("miss"))
        .otherwise("kind"),
        outcome=pl.when(miss)
        .then(pl.lit("missed"))
        .when(skip)
        .then(pl.lit("undrafted"))
        .when(whole)
        .then(pl.when(drafted == 1).then(pl.lit("unverified")).otherwise(pl.lit("all_accepted")))
        .otherwise(pl.lit("unknown")),
        drafted=pl.when(skip).then(0).when(timed | sure).then(drafted),
        free_checked=pl.when(skip).then(0).when(miss | sure).then(1),
        free_accepted=pl.when(skip | miss).then(0).when(sure).then(1),
        verified=pl.when(skip | miss)
        .then(0)
        .when(timed)
        .then("third")
        .when(whole)
        .then(drafted - 1),
        accepted=pl.when(skip | miss)
        .then(0)
        .when(timed)
        .then(committed)
        .when(sure)
        .then(committed - 1),
        resampled=pl.when(skip | miss | sure).then(0),
        emitted=pl.when(skip | miss).then(1).when(sure).then("said_emitted"),
        truncated=pl.when(skip | miss | sure).then(False),
        target_forwards=pl.when(skip | miss).then(1),
        replayed=pl.when(skip | miss).then(False),
        extra=pl.when(spec_ & ~sure)
        .then(
            text.together(
                pl.col("extra"),
                text.say(
                    '"drafted":{}, "verified":{}, "accepted":{}',
                    "drafted",
                    "committed",
                    "said_emitted",
                ),
            )
        )
        .otherwise("extra"),
        wall_ms=pl.col("reported_ms"),
    )
