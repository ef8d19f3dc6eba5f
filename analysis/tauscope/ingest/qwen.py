"""The Qwen MTP dialect: one line a cycle, a second one with the stages of a block.

`accepted` counts draft tokens only, and the first of them is judged for free,
so a block verifies `drafted - 1` and accepts `accepted - 1`; `target_tokens` is
what was emitted. `cycle=` is the whole cycle, base decode and first draft too.
`commit=` of the stages contains `history=` and `restore-select=`.
"""

from __future__ import annotations

import polars as pl

from tauscope.ingest import text
from tauscope.ingest.records import Rule

_TIMING = (
    rf"^ds4: Qwen MTP timing drafted=([0-9]+) accepted=([0-9]+) target_tokens=([0-9]+) "
    rf"cycle=({text.NUMBER}) ms verifier=([A-Za-z0-9_.-]+)({text.FIELDS})$"
)
_RULES = {
    "block": int(Rule.BLOCK),
    "free-first": int(Rule.FREE_FIRST),
    "scheduler-bypass": int(Rule.BYPASS),
}


def timing(frame: pl.DataFrame) -> pl.DataFrame:
    """Lines `ds4: Qwen MTP timing …` to records; `third` holds target_tokens."""
    names = ["drafted", "committed", "third", "reported_ms", "kind", "fields"]
    numbers = ("drafted", "committed", "third")
    table = frame.with_columns(
        pl.col("text").str.extract_groups(_TIMING).struct.rename_fields(names).alias("parts")
    ).unnest("parts")
    other = ~pl.col("kind").is_in(list(_RULES))
    return table.with_columns(
        pl.col(*numbers).cast(pl.Int64, strict=False),
        pl.col("reported_ms").cast(pl.Float64, strict=False),
        rule=pl.col("kind").replace_strict(
            _RULES, default=int(Rule.QWEN_OTHER), return_dtype=pl.UInt8
        ),
        extra=text.together(
            pl.when(other).then(
                text.say('"drafted":{}, "accepted":{}, "target_tokens":{}', *numbers)
            ),
            text.left_over(()),
        ),
    ).with_columns(ok=pl.all_horizontal(pl.col(*numbers, "reported_ms").is_not_null()))


_STAGES = (
    rf"^ds4: Qwen MTP stages((?: [a-z][a-z-]*=(?:{text.NUMBER} ms|[A-Za-z0-9_./:+-]+))+) "
    r"path=([A-Za-z0-9_.-]+) counts\(full=([0-9]+) partial=([0-9]+) replay=([0-9]+)\)$"
)


def stages(frame: pl.DataFrame) -> pl.DataFrame:
    """Lines `ds4: Qwen MTP stages …` to records that join the block before them."""
    names = ["fields", "kind", "full", "partial", "replay"]
    table = frame.with_columns(
        pl.col("text").str.extract_groups(_STAGES).struct.rename_fields(names).alias("parts")
    ).unnest("parts")
    times = ("snapshot", "draft", "verify", "commit")
    return table.with_columns(
        pl.lit(int(Rule.STAGES), pl.UInt8).alias("rule"),
        *(text.ms(key).alias(f"{key}_ms") for key in times),
        extra=text.together(
            text.left_over(times),
            text.say(
                '"counts_full":{}, "counts_partial":{}, "counts_replay":{}',
                *(pl.col(key).cast(pl.Int64, strict=False) for key in names[2:]),
            ),
        ),
    ).with_columns(ok=pl.all_horizontal(pl.col(*(f"{key}_ms" for key in times)).is_not_null()))


_EVENTS = (
    r"^ds4: Qwen MTP (?:accepted-length histogram(?: [0-9]+=[0-9]+)+"
    r"|scheduler .*|history frontier short .*|state capture: .*)$"
)


def events(frame: pl.DataFrame) -> pl.DataFrame:
    """The other lines `ds4: Qwen MTP …`: checks, scheduler notes, errors; none is a cycle."""
    return frame.with_columns(
        rule=pl.lit(int(Rule.EVENT), pl.UInt8), ok=pl.col("text").str.contains(_EVENTS)
    )


def account(frame: pl.DataFrame) -> pl.DataFrame:
    """Records to the columns of `cycles` (ds4-logs.md section 3)."""
    rule = pl.col("rule")
    drafted, printed, tokens = pl.col("drafted"), pl.col("committed"), pl.col("third")
    block, bypass = rule == Rule.BLOCK, rule == Rule.BYPASS
    free_first, other = rule == Rule.FREE_FIRST, rule == Rule.QWEN_OTHER
    known = lambda value: pl.when(~other).then(value)  # noqa: E731
    table = frame.with_columns(
        free_checked=known(pl.when(bypass).then(0).otherwise(1)),
        free_accepted=known(block.cast(pl.Int64)),
        verified=known(pl.when(block).then(drafted - 1).otherwise(0)),
        accepted=known(pl.when(block).then(printed - 1).otherwise(printed)),
        drafted=known(drafted),
        emitted=known(tokens),
    )
    verified, accepted = pl.col("verified"), pl.col("accepted")
    replayed = pl.col("kind").str.contains("replay", literal=True)
    staged = pl.col("verify_ms").is_not_null()
    return table.with_columns(
        pl.lit("qwen").alias("dialect"),
        pl.col("kind").alias("path"),
        outcome=pl.when(bypass)
        .then(pl.lit("bypassed"))
        .when(free_first)
        .then(pl.lit("missed"))
        .when(other)
        .then(pl.lit("unknown"))
        .when(verified <= 0)
        .then(pl.lit("unverified"))
        .when(accepted >= verified)
        .then(pl.lit("all_accepted"))
        .when(accepted <= 0)
        .then(pl.lit("rejected"))
        .otherwise(pl.lit("partial")),
        resampled=known(pl.lit(0, pl.Int64)),
        # More tokens than accepted drafts explain break the identity; fewer were cut.
        truncated=known(tokens < printed + 1),
        target_forwards=pl.when(block)
        .then(pl.when(staged & replayed).then(3).otherwise(2))
        .when(~other)
        .then(1),
        replayed=pl.when(block).then(pl.when(staged).then(replayed)).when(~other).then(False),
        wall_ms=pl.col("reported_ms"),
    )
