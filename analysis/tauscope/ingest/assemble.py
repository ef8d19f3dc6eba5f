"""Records to cycles: which lines belong to one cycle, and whose turn it was.

A record attaches to the one right before it when both are of one cycle: `micro`
to its `conf`, `stages` to its block, `detail` to its timing line. Known lines
that are no part of a cycle may stand between; an unfit line, a request's line
or a new run may not. The last group of a block is held back while more of its
lines may come, so the rows don't depend on where a block ends.
"""

from __future__ import annotations

import polars as pl

from tauscope.ingest import dspark, glm, legacy_account, qwen, text
from tauscope.ingest.records import DIALECTS, RECORD, Rule
from tauscope.schema import CYCLES

_ACCOUNT = {
    "legacy": legacy_account.account,
    "glm": glm.account,
    "qwen": qwen.account,
    "dspark": dspark.account,
}
_PARTS = (Rule.CONF, Rule.STAGES, Rule.DETAIL)
# A group that ends in one of these can still grow.
_OPEN = (Rule.CONF, Rule.BLOCK, Rule.SEQ, Rule.DSPARK, Rule.DETAIL, Rule.DSPEC)
SPINE = {**RECORD, "run": pl.Int64()}
CYCLE_RULES = pl.col("rule").is_between(1, 59)


def _is(*rules: Rule) -> pl.Expr:
    return pl.col("rule").is_in([int(rule) for rule in rules])


def _was(*rules: Rule) -> pl.Expr:
    return pl.col("rule").shift(1).is_in([int(rule) for rule in rules]).fill_null(False)


def attach(
    spine: pl.DataFrame, order: tuple[int, bool] | None
) -> tuple[pl.DataFrame, tuple[int, bool] | None]:
    """`spine` with `joined`: the record belongs to the one before it.

    DSpark's two lines of one cycle come in one order in a run, told by whichever
    came first in it: `order` is (run, timing first), carried from block to block.
    """
    same_run = pl.col("run") == pl.col("run").shift(1)
    same = same_run & pl.all_horizontal(
        pl.col(name) == pl.col(name).shift(1) for name in ("drafted", "committed")
    )
    joined = (
        (_is(Rule.MICRO, Rule.DECODE2) & _was(Rule.CONF) & same)
        | (_is(Rule.STAGES) & _was(Rule.BLOCK) & same_run)
        | (_is(Rule.SEQ_END) & _was(Rule.SEQ) & same)
    )
    pair = _is(Rule.DSPARK, Rule.DSPEC)
    if spine.select((pair | _is(Rule.DETAIL)).any()).item():
        first = pl.col("rule").filter(pair).first().over("run") == int(Rule.DSPARK)
        if order is not None:
            first = pl.when(pl.col("run") == order[0]).then(order[1]).otherwise(first)
        spine = spine.with_columns(first=first)
        told = spine.filter(pair).select("run", "first").tail(1)
        order = told.row(0) if told.height else order
        # Two lines that don't count the same drafts are two cycles.
        before = pl.when(pair).then("drafted").forward_fill().shift(1)
        one = same_run & (pl.col("drafted") == before)
        joined = (
            joined
            | (_is(Rule.DETAIL) & _was(Rule.DSPARK, Rule.DSPEC) & same_run)
            | (_is(Rule.DSPEC) & _was(Rule.DSPARK, Rule.DETAIL) & pl.col("first") & one)
            | (_is(Rule.DSPARK) & _was(Rule.DSPEC) & ~pl.col("first") & one)
        )
    return spine.with_columns(joined=joined.fill_null(False)).select(*SPINE, "joined"), order


def hold(spine: pl.DataFrame) -> int:
    """How many records at the end of `spine` (with `joined`) may still grow."""
    if not spine.height or spine["rule"][-1] not in [int(rule) for rule in _OPEN]:
        return 0
    tail = spine["joined"].tail(4).to_list()
    held = 1
    while held < len(tail) and tail[-held]:
        held += 1
    return held


def merge(spine: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """One record a cycle, with `first_line` and `last_line`, and the parts left alone.

    A `conf` line without its timing line is the cycle's only line; `stages` and
    `detail` lines without theirs are returned apart.
    """
    present = set(spine["rule"].unique())
    line = pl.col("line")
    grows = pl.col("joined").shift(-1, fill_value=False)
    spine = spine.with_columns(first_line=line, last_line=line, grows=grows)
    if present & {Rule.MICRO, Rule.DECODE2} and Rule.CONF in present:
        own = pl.col("joined") & _is(Rule.MICRO, Rule.DECODE2)
        spine = spine.with_columns(
            pl.when(own).then(pl.col(name).shift(1)).otherwise(name).alias(name)
            for name in ("draft_token", "next_token", "margin", "first_line")
        ).filter(~(_is(Rule.CONF) & pl.col("grows")))
    if present & {Rule.STAGES, Rule.SEQ_END}:
        spine = _take_next(spine)
    if present & {Rule.DETAIL, Rule.DSPEC}:
        spine = _pair(spine)
    alone = spine.filter(_is(Rule.STAGES, Rule.DETAIL))
    return spine.filter(~_is(Rule.STAGES, Rule.DETAIL)), alone


def _take_next(spine: pl.DataFrame) -> pl.DataFrame:
    """Blocks with their stages, `seq` timings with their closing line."""
    block = _is(Rule.BLOCK) & pl.col("grows")
    either = block | (_is(Rule.SEQ) & pl.col("grows"))
    times = ("snapshot_ms", "draft_ms", "verify_ms", "commit_ms", "kind")
    both = pl.concat_str(
        pl.col("extra"), pl.col("extra").shift(-1), separator=", ", ignore_nulls=True
    )
    return spine.with_columns(
        *(
            pl.when(block).then(pl.col(name).shift(-1)).otherwise(name).alias(name)
            for name in times
        ),
        extra=pl.when(block).then(both).otherwise("extra"),
        last_line=pl.when(either).then(pl.col("line").shift(-1)).otherwise("last_line"),
    ).filter(~(_is(Rule.STAGES, Rule.SEQ_END) & pl.col("joined")))


def _pair(spine: pl.DataFrame) -> pl.DataFrame:
    """DSpark's lines of one cycle in one record."""
    low, high = DIALECTS["dspark"]
    inside = pl.col("rule").is_between(low, high - 1)
    group = (~pl.col("joined")).cum_sum().alias("group")
    mine = spine.with_columns(group).filter(inside)
    timed, said = _is(Rule.DSPARK), _is(Rule.DSPEC)
    counts = ("drafted", "committed", "third")
    printed = text.say(
        '"printed_drafted":{}, "printed_verify":{}, "printed_verified":{}',
        *(pl.col(name).filter(timed).first() for name in ("drafted", "third", "committed")),
    )
    folded = mine.group_by("group", maintain_order=True).agg(
        *(pl.col(name).first() for name in ("line", "piece", "run", "joined", "grows")),
        pl.when(said.any()).then(int(Rule.DSPEC)).otherwise(pl.col("rule").first())
        .cast(pl.UInt8).alias("rule"),
        *(
            pl.when(said.any()).then(pl.col(name).filter(said).first())
            .otherwise(pl.col(name).first()).alias(name)
            for name in counts
        ),
        *(
            pl.col(name).drop_nulls().first()
            for name in RECORD
            if name not in {"line", "piece", "rule", "extra", *counts}
        ),
        pl.concat_str(
            pl.when(said.any() & timed.any()).then(printed),
            pl.col("extra").drop_nulls().str.join(", ").replace("", None),
            separator=", ",
            ignore_nulls=True,
        ).replace("", None).alias("extra"),
        pl.col("first_line").min(),
        pl.col("last_line").max(),
    )  # fmt: skip
    rest = spine.filter(~inside)
    return pl.concat([rest, folded.select(rest.columns)]).sort("line", "piece")


_COUNTED = (
    "drafted", "free_checked", "free_accepted", "verified", "accepted", "resampled",
    "emitted", "target_forwards",
)  # fmt: skip
_BUILT = [name for name in CYCLES.names if name not in ("run_id", "request_id", "cycle")]


def account(merged: pl.DataFrame) -> pl.DataFrame:
    """Records of cycles to the columns of `cycles`, with `run`, `piece` and what lines say of
    themselves (`said_emitted`, `said_forwards`); still unchecked."""
    parts = []
    types = {column: dtype for column, dtype in CYCLES.polars().items()}
    # Counts stay 64-bit until the bounds are checked.
    types |= {name: pl.Int64() for name in _COUNTED}
    extra = ["run", "piece", "rule", "said_emitted", "said_forwards"]
    rules = merged["rule"].unique().to_list()
    for name, (low, high) in DIALECTS.items():
        mine = [low <= rule < high for rule in rules]
        if not any(mine):
            continue
        part = merged
        if not all(mine):
            part = merged.filter(pl.col("rule").is_between(low, high - 1))
        table = _ACCOUNT[name](part)
        have = set(table.columns)
        parts.append(
            table.select(
                *(
                    pl.col(column).cast(types[column])
                    if column in have
                    else pl.lit(None, dtype=types[column]).alias(column)
                    for column in _BUILT
                    if column != "extra"
                ),
                pl.when(pl.col("extra").is_not_null())
                .then(pl.concat_str(pl.lit("{"), pl.col("extra"), pl.lit("}")))
                .alias("extra"),
                *extra,
            )
        )
    if len(parts) == 1:
        return parts[0]
    if not parts:
        schema = {column: types[column] for column in _BUILT}
        schema |= {"run": pl.Int64(), "piece": pl.Int32(), "rule": pl.UInt8()}
        schema |= {"said_emitted": pl.Int64(), "said_forwards": pl.Int64()}
        return pl.DataFrame(schema=schema)
    return pl.concat(parts).sort("line", "piece")
