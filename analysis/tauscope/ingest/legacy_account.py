"""What a legacy record counts: drafts, verifications, tokens and target passes.

The counts of a cycle follow from the kind of its line and the few numbers on it,
so they are worked out once for each combination that occurs, and looked up.
"""

from __future__ import annotations

import polars as pl

from tauscope.ingest import text
from tauscope.ingest.records import Fix, Rule

# What the counts depend on. The first four go into one number, to join by.
_PACKED = ("rule", "fix", "drafted", "committed")
_RARE = ("third", "kind")
_BIAS = 1 << 21


def account(frame: pl.DataFrame) -> pl.DataFrame:
    """Records of cycles to the columns of `cycles` (ds4-logs.md section 1)."""
    packed = pl.col("rule").cast(pl.Int64) * 4 + pl.col("fix").fill_null(0)
    for name in ("drafted", "committed"):
        packed = packed * (2 * _BIAS) + pl.col(name).fill_null(-_BIAS) + _BIAS
    frame = frame.with_columns(key=packed)
    keys = ["key", *(name for name in _RARE if frame[name].null_count() < frame.height)]
    counts = _counts(frame.select("key", *_PACKED, *_RARE).unique(keys))
    table = frame.drop("drafted", *(name for name in _RARE if name not in keys)).join(
        counts.drop(*(name for name in _RARE if name not in keys)),
        on=keys,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    fold, paid, gated = pl.col("fold"), pl.col("paid"), pl.col("gated")
    table = table.with_columns(
        margin=pl.when(gated | fold).then("margin"),
        decode_ms=pl.when(fold).then("verify_ms"),
        verify_ms=pl.when(~fold).then("verify_ms"),
        wall_ms=pl.when("one_pass").then("reported_ms"),
        shown=pl.col("margin"),
    )
    if counts.filter(paid & ~gated & (pl.col("drafted") > 1)).height:
        table = table.with_columns(_aside())
    return table


def _aside() -> list[pl.Expr]:
    """What a `conf` line shows that is not the gated draft's, put into `extra`.

    No gate acts in the exact verifier; with more than two drafts the line shows
    the last one.
    """
    paid, deep = pl.col("paid"), pl.col("drafted") > 2
    beside = paid & ~pl.col("gated") & (pl.col("drafted") > 1) & pl.col("shown").is_not_null()
    members = text.together(
        pl.col("extra"),
        text.say('"conf_margin":{}', "shown"),
        text.say('"conf_top":{}', "draft_token"),
        text.say('"conf_next":{}', "next_token"),
    )
    return [
        pl.when(beside).then(members).otherwise("extra").alias("extra"),
        *(pl.when(~(paid & deep)).then(name).alias(name) for name in ("draft_token", "next_token")),
    ]


def _counts(combinations: pl.DataFrame) -> pl.DataFrame:
    """The counts of each combination of kind and printed numbers."""
    rule = pl.col("rule")
    drafted, committed, third = pl.col("drafted"), pl.col("committed"), pl.col("third")
    one_of = lambda *rules: rule.is_in([int(r) for r in rules])  # noqa: E731
    miss, fold, other = rule == Rule.MISS, rule == Rule.FOLD, rule == Rule.OTHER
    sample = rule == Rule.SAMPLE
    seq = one_of(Rule.SEQ, Rule.SEQ_END)
    paid = one_of(Rule.MICRO, Rule.DECODE2, Rule.CONF)
    one_pass = one_of(Rule.COMBINED, Rule.SAMPLE)
    known = lambda value: pl.when(~other).then(value)  # noqa: E731
    table = combinations.with_columns(
        drafted=pl.when(miss).then(1).when(~other).then(drafted),
        free_checked=known(pl.when(one_pass).then(0).otherwise(1)),
        free_accepted=known(pl.when(one_pass | miss).then(0).otherwise(1)),
        verified=pl.when(paid)
        .then(drafted - 1)
        .when(seq)
        .then(pl.min_horizontal(drafted, committed + 1) - 1)
        .when(one_pass)
        .then(drafted)
        .when(miss | fold)
        .then(0),
        # Of a fold, the free draft is the one committed; anything else breaks a bound.
        accepted=pl.when(paid | seq | fold)
        .then(committed - 1)
        .when(one_pass)
        .then(committed)
        .when(miss)
        .then(0),
        resampled=pl.when(sample).then(third).when(~other).then(0),
        emitted=pl.when(miss)
        .then(1)
        .when(sample)
        .then(1 + committed + third)
        .when(~other)
        .then(1 + committed),
        fold=fold,
        paid=paid,
        one_pass=one_pass,
        gated=paid & (drafted == 2) & (rule != Rule.DECODE2),
        truncated=known(pl.lit(False)),
        dialect=pl.lit("legacy"),
    )
    verified, accepted = pl.col("verified"), pl.col("accepted")
    # Which repair a reject paid for is printed in the timing line only.
    unsaid = (rule == Rule.CONF) & (accepted < verified)
    partial = paid & (accepted > 0) & (accepted < verified)
    replay = paid & ((pl.col("fix").fill_null(0) == Fix.REPLAY) | partial)
    names = {
        Rule.MICRO: "micro", Rule.DECODE2: "decode2", Rule.FOLD: "margin-skip", Rule.MISS: "miss",
        Rule.SEQ: "seq", Rule.SEQ_END: "seq", Rule.COMBINED: "combined", Rule.SAMPLE: "sample",
    }  # fmt: skip
    path = rule.replace_strict(
        {int(key): name for key, name in names.items()}, default=None, return_dtype=pl.String
    )
    table = table.with_columns(
        path=pl.when(other).then("kind").otherwise(path),
        outcome=pl.when(miss)
        .then(pl.lit("missed"))
        .when(fold)
        .then(pl.lit("folded"))
        .when(other)
        .then(pl.lit("unknown"))
        .when(seq)
        .then(pl.lit("fallback"))
        .when(verified <= 0)
        .then(pl.when(one_pass).then(pl.lit("undrafted")).otherwise(pl.lit("unverified")))
        .when(accepted >= verified)
        .then(pl.lit("all_accepted"))
        .when(accepted <= 0)
        .then(pl.lit("rejected"))
        .otherwise(pl.lit("partial")),
        target_forwards=pl.when(miss | (rule == Rule.COMBINED))
        .then(1)
        .when(fold)
        .then(2)
        .when(sample)
        .then(1 + third)
        # The base, one decode a committed draft, and the pass that failed.
        .when(seq)
        .then(2 + committed)
        .when(paid & ~unsaid)
        .then(pl.when(replay).then(3).otherwise(2)),
        replayed=known(pl.when(~unsaid).then(replay)),
    )
    return table.drop("rule", "fix", "committed")
