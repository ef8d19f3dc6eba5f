"""The legacy MTP dialect (`--mtp-draft 2`): line shapes and accounting.

A cycle decodes the base token, and its logits judge the first draft for free.
`committed` counts that free draft, so a bet verifies `drafted - 1` tokens,
accepts `committed - 1`, and emits `1 + committed`. Neither the base decode nor
the first draft is timed by any line: `wall_ms` stays null.

The shapes a long log is made of are read by templates (scan.py); any line they
leave is read by key (text.py), which also takes extra fields. Both give the
same records, and a test holds them to it.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tauscope.ingest import text
from tauscope.ingest.lines import Chunk
from tauscope.ingest.records import Fix, Rule
from tauscope.ingest.scan import Template, word, words

_BET = "drafted={1} committed={1} draft={3} ms snapshot={3} ms verify={3} ms "
_BET_COLUMNS = ("drafted", "committed", "draft_ms", "snapshot_ms", "verify_ms")
_PLAIN = (Template(_BET + "total={3} ms"), (*_BET_COLUMNS, "reported_ms"), Fix.NONE)
_REPAIRED = (*_BET_COLUMNS, "commit_ms", "reported_ms")
# (second word of the line, third word, length of the prefix, rule, templates by frequency)
_FAST = (
    (
        " timing ", "micro dr", 22, Rule.MICRO,
        (
            _PLAIN,
            (Template(_BET + "prefix={3} ms total={3} ms noreplay=1"), _REPAIRED, Fix.PREFIX),
            (Template(_BET + "exact_replay={3} ms total={3} ms"), _REPAIRED, Fix.REPLAY),
            (Template(_BET + "replay={3} ms total={3} ms"), _REPAIRED, Fix.REPLAY),
        ),
    ),
    (
        " timing ", "decode2 ", 24, Rule.DECODE2,
        (
            _PLAIN,
            (Template(_BET + "prefix={3} ms total={3} ms"), _REPAIRED, Fix.PREFIX),
        ),
    ),
    (
        " timing ", "margin-s", 24, Rule.FOLD,
        ((
            Template(
                "kip drafted={1} committed={1} margin={3} threshold={3} "
                "draft={3} ms verify={3} ms total={3} ms"
            ),
            ("drafted", "committed", "margin", "threshold", "draft_ms", "verify_ms", "reported_ms"),
            Fix.NONE,
        ),),
    ),
    (
        " conf dr", "afted=", 14, Rule.CONF,
        ((
            Template(
                "drafted={1} committed={1} mtp_top={} runner={0} margin={6} "
                "target_next={} draft_next={0}"
            ),
            ("drafted", "committed", "draft_token", "margin", "next_token"),
            Fix.NONE,
        ),),
    ),
    (
        " spec mi", "ss first", 24, Rule.MISS,
        ((Template(" draft={}"), ("draft_token",), Fix.NONE),),
    ),
)  # fmt: skip
_WHOLE = ("drafted", "committed", "draft_token", "next_token")
_REAL = (
    "margin", "threshold", "draft_ms", "snapshot_ms", "verify_ms", "commit_ms", "reported_ms",
)  # fmt: skip


# Columns of a record (None when there are none), and the places of the lines not read.
Fast = tuple[dict[str, np.ndarray] | None, np.ndarray]


def fast(chunk: Chunk) -> Fast:
    """Records of the lines that fit a template exactly, in line order; the other lines' places.

    The columns are those of a record (NaN and -1 for null).
    """
    data, starts, ends = chunk.data, chunk.starts, chunk.ends
    view = words(data)
    mtp = view[starts] == word("ds4: mtp")
    if chunk.cut is not None:
        mtp &= ~chunk.cut
    second, third = view[starts + 8], view[starts + 16]
    rules = np.zeros(len(starts), np.uint8)
    found = []
    for two, three, length, rule, templates in _FAST:
        mask = mtp & (second == word(two))
        key = third if len(three) == 8 else third & np.uint64((1 << (8 * len(three))) - 1)
        at = np.flatnonzero(mask & (key == word(three)))
        for template, names, fix in templates:
            if not len(at):
                break
            ok, values = template.scan(data, starts[at] + length, ends[at])
            fits = at if ok.all() else at[ok]
            if len(fits):
                rules[fits] = rule
                found.append((fits, ok, names, values, fix))
                at = at[~ok]
    keep = rules > 0
    count = int(keep.sum())
    if not count:
        return None, np.arange(len(starts))
    place = np.cumsum(keep) - 1
    out = {"line": chunk.numbers[keep], "piece": np.zeros(count, np.int32), "rule": rules[keep]}
    out |= {name: np.full(count, -1, np.int64) for name in _WHOLE}
    out |= {name: np.full(count, np.nan) for name in _REAL}
    out["fix"] = np.zeros(count, np.uint8)
    for fits, ok, names, values, fix in found:
        to = place[fits]
        out["fix"][to] = fix
        for name, value in zip(names, values, strict=True):
            out[name][to] = value if len(value) == len(to) else value[ok]
    return out, np.flatnonzero(~keep)


_KINDS = {
    "micro": Rule.MICRO,
    "decode2": Rule.DECODE2,
    "margin-skip": Rule.FOLD,
    "seq": Rule.SEQ,
    "combined": Rule.COMBINED,
    "sample": Rule.SAMPLE,
}
_TIMES = ("draft", "snapshot", "verify", "prefix", "replay", "exact_replay", "total")
_COUNTS = ("drafted", "committed", "emitted", "target_calls")


def timing(frame: pl.DataFrame) -> pl.DataFrame:
    """Lines `ds4: mtp timing KIND key=value …` (line, piece, text) to records."""
    head = frame.with_columns(
        pl.col("text")
        .str.extract_groups(rf"^ds4: mtp timing ([A-Za-z][A-Za-z0-9_-]*)({text.FIELDS})$")
        .struct.rename_fields(["kind", "fields"])
        .alias("parts")
    ).unnest("parts")
    rule = pl.col("kind").replace_strict(
        {kind: int(rule) for kind, rule in _KINDS.items()},
        default=int(Rule.OTHER),
        return_dtype=pl.UInt8,
    )
    head = head.with_columns(rule=rule)
    is_in = lambda *rules: pl.col("rule").is_in([int(r) for r in rules])  # noqa: E731
    other = is_in(Rule.OTHER)
    seq, sample = is_in(Rule.SEQ), is_in(Rule.SAMPLE)
    table = head.with_columns(
        drafted=text.whole("drafted"),
        committed=pl.when(seq).then(text.whole("verified")).otherwise(text.whole("committed")),
        third=text.whole("resampled"),
        said_emitted=text.whole("emitted"),
        said_forwards=text.whole("target_calls"),
        margin=text.real("margin"),
        threshold=text.real("threshold"),
        draft_ms=text.ms("draft"),
        snapshot_ms=text.ms("snapshot"),
        verify_ms=text.ms("verify"),
        commit_ms=pl.coalesce(text.ms("prefix"), text.ms("replay"), text.ms("exact_replay")),
        reported_ms=text.ms("total"),
        fix=pl.when(text.has("replay") | text.has("exact_replay"))
        .then(int(Fix.REPLAY))
        .when(text.has("prefix"))
        .then(int(Fix.PREFIX))
        .otherwise(int(Fix.NONE)),
    )
    # A key that is there and can't be read is a torn line.
    readable = pl.all_horizontal(
        *(~text.has(key) | text.whole(key).is_not_null() for key in _COUNTS),
        *(~text.has(key) | text.ms(key).is_not_null() for key in _TIMES),
    )
    bet = is_in(Rule.MICRO, Rule.DECODE2)
    needed = (
        pl.when(other)
        .then(pl.col("fields").str.len_bytes() > 0)
        .otherwise(
            pl.all_horizontal(pl.col("drafted", "committed", "reported_ms").is_not_null())
            & (~bet | pl.all_horizontal(pl.col("draft_ms", "verify_ms").is_not_null()))
            & (~seq | pl.all_horizontal(pl.col("draft_ms", "verify_ms").is_not_null()))
            & (
                ~is_in(Rule.FOLD)
                | pl.all_horizontal(
                    pl.col("margin", "threshold", "draft_ms", "verify_ms").is_not_null()
                )
            )
            & (~sample | pl.col("third").is_not_null())
        )
    )
    known = (*_COUNTS, *_TIMES, "verified", "resampled", "margin", "threshold", "noreplay")
    return table.with_columns(
        ok=pl.col("kind").is_not_null() & needed & (other | readable),
        extra=pl.when(other).then(text.left_over(())).otherwise(text.left_over(known)),
    )


_CONF = (
    rf"^ds4: mtp conf drafted=(-?[0-9]+) committed=(-?[0-9]+) mtp_top=(-?[0-9]+) "
    rf"runner=-?[0-9]+ margin=({text.NUMBER}) target_next=(-?[0-9]+) draft_next=-?[0-9]+"
    rf"({text.FIELDS})$"
)


def conf(frame: pl.DataFrame) -> pl.DataFrame:
    """Lines `ds4: mtp conf …` to records. `runner` and `draft_next` stay in the raw log."""
    names = ["drafted", "committed", "draft_token", "margin", "next_token", "fields"]
    table = frame.with_columns(
        pl.col("text").str.extract_groups(_CONF).struct.rename_fields(names).alias("parts")
    ).unnest("parts")
    numbers = ("drafted", "committed", "draft_token", "next_token")
    return table.with_columns(
        pl.col(*numbers).cast(pl.Int64, strict=False),
        pl.col("margin").cast(pl.Float64, strict=False),
        pl.lit(int(Rule.CONF), pl.UInt8).alias("rule"),
        text.left_over(()).alias("extra"),
    ).with_columns(ok=pl.all_horizontal(pl.col(*numbers, "margin").is_not_null()))


_EVENTS = (
    r"^ds4: mtp (?:"
    r"spec seq miss at=[0-9]+ .*"
    r"|.*verifier failed, falling back to sequential"
    r"|probe token=-?[0-9]+ draft=-?[0-9]+ hit=[0-9]+/[0-9]+"
    r"|probe draft failed"
    r")$"
)
_MISS = r"^ds4: mtp spec miss first draft=(-?[0-9]+)$"
# `accepted` counts the base token too: it is what the cycle emitted.
_SEQ_END = (
    r"^ds4: mtp spec seq (?:accept|partial) drafted=([0-9]+)"
    r"(?: verified=([0-9]+))? accepted=([0-9]+)$"
)


def spec(frame: pl.DataFrame) -> pl.DataFrame:
    """Lines `ds4: mtp spec …` and the other `ds4: mtp` lines to records."""
    names = ["drafted", "committed", "said_emitted"]
    table = frame.with_columns(
        draft_token=pl.col("text").str.extract(_MISS).cast(pl.Int64, strict=False),
        event=pl.col("text").str.contains(_EVENTS),
        parts=pl.col("text").str.extract_groups(_SEQ_END).struct.rename_fields(names),
    ).unnest("parts")
    miss, end = pl.col("draft_token").is_not_null(), pl.col("said_emitted").is_not_null()
    return table.with_columns(
        pl.col(*names).cast(pl.Int64, strict=False),
        rule=pl.when(miss)
        .then(int(Rule.MISS))
        .when(end)
        .then(int(Rule.SEQ_END))
        .otherwise(int(Rule.EVENT)),
        ok=miss | end | pl.col("event"),
    ).with_columns(committed=pl.coalesce("committed", pl.col("said_emitted") - 1))
