"""Frames of causes in, charts out; never a query. Conventions are those of charts.py."""

from __future__ import annotations

from typing import Any

import polars as pl

from tauscope.economics.waterfall import PARTS
from tauscope.figures import grouping, palette, shapes, words
from tauscope.figures.drawing import Words, alt

STEP = {"step": "plain step", **PARTS}


def waterfall(rows: pl.DataFrame) -> Any:
    """Gains to the right, costs to the left, in ms per token (waterfall.table)."""
    known = rows.filter(pl.col("ms_each_token").abs() > 1e-9, pl.col("arm") != "off")
    if known.is_empty():
        return Words("No waterfall to draw: no arm with speculation has a plain step and times.")
    rows = grouping.ordered(known)
    return _parts(rows, "ms_each_token", "waterfall", "Where a token's time is won",
                  "ms per token won (right) or lost")  # fmt: skip


def moved(rows: pl.DataFrame) -> Any:
    """What moved between two sides, in ms per token (Comparison.parts)."""
    known = rows.filter(pl.col("moved").abs() > 1e-9)
    if known.is_empty():
        return Words("No part to draw: nothing moved, or one side has no waterfall.")
    arm = pl.when(pl.col("arm_a") == pl.col("arm_b")).then("arm_a")
    arm = arm.otherwise(pl.format("{} → {}", "arm_a", "arm_b"))
    return _parts(grouping.ordered(known.with_columns(arm=arm)), "moved", "moved", "What moved",
                  "ms per token won (right) or lost by the change")  # fmt: skip


def breakeven(rows: pl.DataFrame) -> Any:
    """The acceptance at which each run breaks even (breakeven.table), its own beside it."""
    known = grouping.ordered(rows.filter(pl.col("breakeven").is_not_null()))
    if known.is_empty():
        return Words("No break-even to draw: no bet here has a plain step and its times.")
    drawn = shapes.named(known).with_columns(
        shown=shapes.written(known, "breakeven", words.percent),
        interval=shapes.spans(known, "breakeven", words.percent),
        own=shapes.written(known, "committed_acceptance", words.percent),
        bet=shapes.written(known, "bet_breakeven", words.percent),
    )
    columns = [("row", "workload"), ("shown", "break-even acceptance"),
               ("interval", "95 % interval"), ("own", "accepted"),
               ("bet", "needed for one more bet")]  # fmt: skip
    least, most = (drawn.sort("breakeven", descending=d).row(0, named=True) for d in (False, True))
    text = f"Break-even acceptance: from {least['shown']} for {least['row']} to {most['shown']}"
    text += f" for {most['row']}; above 100 % no acceptance is enough."
    return shapes.forest(
        drawn, "breakeven", name="breakeven", title="Acceptance at which a run breaks even",
        alt_text=text, axis="acceptance (100 % is every draft)", columns=columns, bar=1.0,
        percent=True,
    )  # fmt: skip


def positions(rows: pl.DataFrame) -> Any:
    """Cost of each path by context position (costs.by_position)."""
    known = grouping.ordered(rows.filter(pl.col("cycle_ms").is_not_null()))
    if known.is_empty():
        return Words("No cost by position to draw: no cycle logged its position and its time.")
    drawn = shapes.named(known).with_columns(
        shown=shapes.written(known, "cycle_ms", _ms),
        band=pl.Series([f"from {words.count(v)} tokens" for v in known["pos_from"]]),
        place=pl.max_horizontal(pl.col("pos_from"), pl.lit(128)),  # a log scale has no 0
    )
    columns = [("row", "workload"), ("outcome", "outcome"), ("band", "context"),
               ("shown", "ms a cycle"), ("cycles", "cycles")]  # fmt: skip
    x = alt.X(
        "place:Q",
        title="context position, tokens (bands of doubling)",
        scale=alt.Scale(type="log", base=2, nice=False),
        axis=alt.Axis(tickCount=8),
    )
    text = f"Cost of a cycle by context position, {drawn['row'].n_unique()} groups, an arm a panel:"
    text += " from"
    text += f" {_ms(drawn['cycle_ms'].min())} to {_ms(drawn['cycle_ms'].max())} ms a cycle."
    return shapes.lines(drawn, x, "place", columns, "positions", "Cost by context position", text)


def course(rows: pl.DataFrame) -> Any:
    """Cost of each path in the course of an arm's runs (costs.course_by_arm)."""
    if rows.is_empty():
        return Words("No course to draw: no cycle here logged how long it took.")
    drawn = shapes.panelled(rows).with_columns(
        row=pl.col("panel"),
        shown=shapes.written(rows, "cycle_ms", _ms),
        part=pl.Series([f"{5 * s - 5} to {5 * s} %" for s in rows["slice"]]),
        place=(pl.col("slice") - 0.5) / 20,
    )
    columns = [("row", "arm"), ("outcome", "outcome"), ("part", "of a run's cycles"),
               ("shown", "ms a cycle"), ("cycles", "cycles"), ("runs", "runs")]  # fmt: skip
    x = alt.X("place:Q", title="share of a run's cycles",
              axis=alt.Axis(format="%", tickCount=5), scale=alt.Scale(domain=[0, 1]))  # fmt: skip
    text = f"Cost of a cycle in the course of a run, {drawn['row'].n_unique()} arms, each a panel:"
    text += " from"
    text += f" {_ms(drawn['cycle_ms'].min())} to {_ms(drawn['cycle_ms'].max())} ms a cycle."
    return shapes.lines(drawn, x, "place", columns, "course", "Cost in the course of a run", text)


def routes(rows: pl.DataFrame) -> Any:
    """The gain behind each measured decision (routing.table)."""
    known = grouping.ordered(rows.filter(pl.col("speedup").is_not_null()))
    if known.is_empty():
        return Words("No gain to draw: no workload ran with and without speculation.")
    drawn = shapes.named(known).with_columns(
        shown=shapes.written(known, "speedup", words.change),
        interval=shapes.spans(known, "speedup", words.change),
        to=shapes.written(
            known, "send_to", lambda arm: "nowhere yet" if arm is None else words.label(arm)
        ),
    )
    columns = [("row", "workload"), ("decision", "decision"), ("to", "send to"),
               ("shown", "gain"), ("interval", "95 % interval")]  # fmt: skip
    counts = known["decision"].value_counts(sort=True).rows()
    text = f"Gain by workload, {grouping.under(rows)}; decisions: "
    text += words.listed([f"{count} {name}" for name, count in counts]) + "."
    return shapes.forest(
        drawn, "speedup", name="routes", alt_text=text,
        title=f"Gain behind each decision, {grouping.under(rows)}",
        axis="speed-up (0 % is no change)", columns=columns, bar=1.0, change=True,
    )  # fmt: skip


def _parts(rows: pl.DataFrame, field: str, name: str, title: str, axis: str) -> Any:
    drawn = shapes.named(rows).with_columns(
        shown=shapes.written(rows, field, lambda v: words.number(v, 2)),
        kind=pl.Series([STEP[part] for part in rows["part"]]),
        order=pl.Series([list(STEP).index(part) for part in rows["part"]]),
        how=pl.Series(["what is left" if d else "logged" for d in rows["derived"]]),
    )
    here = [about for part, about in STEP.items() if part in set(rows["part"])]
    colours = {about: palette.PARTS[part] for part, about in STEP.items()}
    columns = [("row", "workload"), ("kind", "part"), ("shown", "ms/token"), ("how", "known by")]
    far = drawn.sort(pl.col(field).abs(), descending=True).row(0, named=True)
    text = f"{title}: most by {far['kind']} for {far['row']}, {far['shown']} ms per token."
    return shapes.stack(drawn, field, "kind", here, colours, name=name, title=title, alt_text=text,
                  axis=axis, columns=columns)  # fmt: skip


def _ms(value: float | None) -> str:
    return words.number(value, 2)
