"""Which dialect a line belongs to, for the lines that no fast template read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import polars as pl

from tauscope.ingest import dspark, glm, legacy, qwen, server, startup, text
from tauscope.ingest.records import COUNT_LIMIT, COUNTS, Rule, none, records

Reader = Callable[[pl.DataFrame], pl.DataFrame]

# Longest heads first: a line goes to the first one it starts with.
READERS: tuple[tuple[str, Reader], ...] = (
    ("ds4: mtp timing ", legacy.timing),
    ("ds4: mtp conf ", legacy.conf),
    ("ds4: mtp", legacy.spec),
    ("ds4: Qwen MTP timing ", qwen.timing),
    ("ds4: Qwen MTP stages ", qwen.stages),
    ("ds4: Qwen MTP", qwen.events),
    ("ds4: dspark timing", dspark.timing),
    ("ds4: DSpark", dspark.spec),
    ("ds4: glm mtp", glm.cycle),
)
# These too look like speculation; what the facts don't know of them is unfit.
_LIKE = r"^ds4: (?:dspark|Qwen[0-9.]* mtp)\b"
TEXT_LIMIT = 300


@dataclass
class Reading:
    """What the slow lines of a block say."""

    records: pl.DataFrame  # RECORD, unfit and boundary rows included
    unfit: pl.DataFrame  # line, piece, text
    speeds: pl.DataFrame  # line, piece, prefill, generation
    server: pl.DataFrame  # server.EVENT
    facts: pl.DataFrame  # line, piece, name, value, keep
    upto: tuple[int, int]  # the last line, and the number of its pieces


def read(lines: pl.DataFrame, before: tuple[int, int] = (0, 0)) -> Reading:
    """Raw lines (line, text) to records and what stands around them.

    `before` is the `upto` of the lines before these: the first may go on with its last.
    """
    column = pl.col("text")
    rest = text.pieces(lines, before)
    upto = before
    if rest.height:
        line = rest["line"].max()
        upto = (line, rest.filter(pl.col("line") == line)["piece"].max() + 1)
    rest = rest.with_columns(begins=startup.begins(column))
    begins = rest.filter("begins").drop("begins")
    rest = rest.filter(~pl.col("begins")).drop("begins")
    rows, unfit, told = [_marks(begins, Rule.STARTUP)], [], [begins]
    for head, reader in READERS:
        part = rest.filter(column.str.starts_with(head))
        if not part.height:
            continue
        rest = rest.filter(~column.str.starts_with(head))
        table = reader(part)
        small = [
            pl.col(name).abs().fill_null(0) <= COUNT_LIMIT
            for name in COUNTS
            if name in table.columns
        ]
        table = table.with_columns(fits=pl.all_horizontal(pl.col("ok").fill_null(False), *small))
        good = records(table.filter("fits"))
        rows.append(good)
        told.append(table.filter(pl.col("fits") & (pl.col("rule") == Rule.EVENT)))
        unfit.append(table.filter(~pl.col("fits")))
    told = [part.select("line", "piece", "text") for part in [*told, rest] if part.height]
    facts = startup.facts(pl.concat(told)) if told else startup.facts(rest)
    like = rest.filter(column.str.contains(_LIKE)).join(facts, on=["line", "piece"], how="anti")
    unfit = pl.concat(
        [part.select("line", "piece", column.str.slice(0, TEXT_LIMIT)) for part in [*unfit, like]]
    )
    talk = rest.filter(server.is_server(column))
    events = server.events(talk)
    speeds = startup.speeds(rest.filter(column.str.starts_with("ds4: prefill: ")))
    rows += [
        _marks(speeds, Rule.SPEED),
        _marks(events, Rule.SERVER),
        _marks(talk.join(events, on=["line", "piece"], how="anti"), Rule.NOTE),
        _marks(begins.filter(server.is_server(column)), Rule.NOTE),
        _marks(facts.join(rest, on=["line", "piece"], how="semi"), Rule.EVENT),
        _marks(unfit, Rule.UNFIT),
    ]
    return Reading(
        records=pl.concat(rows),
        unfit=unfit,
        speeds=speeds,
        server=events,
        facts=facts,
        upto=upto,
    )


@cache
def nothing() -> Reading:
    """A reading of no lines."""
    return read(pl.DataFrame(schema={"line": pl.Int64, "text": pl.String}))


def _marks(frame: pl.DataFrame, rule: Rule) -> pl.DataFrame:
    """A record of `rule` at every place of `frame`."""
    if not frame.height:
        return none()
    places = frame.select("line", "piece").unique(maintain_order=True)
    return records(places.with_columns(rule=pl.lit(int(rule), pl.UInt8)))
