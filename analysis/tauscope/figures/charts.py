"""Frames in, charts out; never a query.

Each chart has a name, and one mark for each row of the table that goes with it. A frame
without a row to draw gives words in the chart's place.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from tauscope import schema
from tauscope.figures import grouping, palette, shapes, words
from tauscope.figures.drawing import GREY, Words, alt, finished, kinds, tooltips
from tauscope.metrics import BY_NAME


def speedup(rows: pl.DataFrame) -> Any:
    """Speed-up with its interval, a row of speedup.table each."""
    known = grouping.ordered(rows.filter(pl.col("speedup").is_not_null()))
    if known.is_empty():
        return Words("No speed-up to draw: no workload ran with and without speculation.")
    drawn = shapes.named(known).with_columns(
        shown=shapes.written(known, "speedup", words.change),
        interval=shapes.spans(known, "speedup", words.change),
        said=pl.Series([words.verdict(row) for row in known.iter_rows(named=True)]),
        reason=pl.Series([words.why(row) for row in known.iter_rows(named=True)]),
    )
    columns = [("row", "workload"), ("shown", "speed-up"), ("interval", "95 % interval"),
               ("said", "verdict"), ("reason", "why")]  # fmt: skip
    best, worst = (drawn.sort("speedup", descending=d).row(0, named=True) for d in (True, False))
    text = f"Speed-up by workload: from {worst['shown']} for {worst['row']}"
    text += f" to {best['shown']} for {best['row']}; {_verdict_counts(drawn)}."
    return shapes.forest(
        drawn, "speedup", name="speedup", title="Speed-up over the off arm", alt_text=text,
        axis="speed-up (0 % is no change)", columns=columns, bar=1.0, change=True,
    )  # fmt: skip


def metric(rows: pl.DataFrame, name: str) -> Any:
    """One metric of metrics.table with its interval, a group each."""
    about = BY_NAME[name]
    if name != "ms_per_token":
        # An arm that doesn't speculate, or bets nothing by design, has no such figure to show.
        rows = rows.filter(~pl.col("arm").is_in([schema.OFF, schema.SHADOW]))
    known = grouping.ordered(rows.filter(pl.col(name).is_not_null()))
    if known.is_empty():
        return Words(f"No {about.label} to draw: {_reason(rows, name)}.")
    write = words.percent if about.kind == "proportion" else words.number
    drawn = shapes.named(known).with_columns(
        shown=shapes.written(known, name, write),
        interval=shapes.spans(known, name, write),
        counts=pl.Series(_counts(known, name)),
    )
    columns = [("row", "workload"), ("shown", about.label), ("interval", "95 % interval"),
               ("counts", f"{about.num} / {about.den}")]  # fmt: skip
    low, high = (drawn.sort(name, descending=d).row(0, named=True) for d in (False, True))
    text = f"{_titled(about.label)}: from {low['shown']} for {low['row']} to {high['shown']}"
    text += f" for {high['row']}."
    return shapes.forest(
        drawn, name, name=name, title=_titled(about.label),
        alt_text=text, axis=about.label, columns=columns,
        share=about.kind == "proportion",
    )  # fmt: skip


def margins(rows: pl.DataFrame) -> Any:
    """Where the gate's margins lie, as shares of a group's readings (margins.by_bin)."""
    if rows.is_empty():
        return Words("No margins to draw: no cycle here logged the gate's reading.")
    rows = grouping.ordered(rows)
    drawn = shapes.panelled(shapes.named(rows)).with_columns(
        shown=shapes.written(rows, "share", words.percent),
        bin=pl.Series([_bin(row) for row in rows.iter_rows(named=True)]),
        accuracy=pl.Series([_accuracy(row) for row in rows.iter_rows(named=True)]),
    )
    columns = [("row", "workload"), ("panel", "arm"), ("bin", "margin, logits"),
               ("shown", "share of readings"), ("readings", "readings"),
               ("accuracy", "gated draft right")]  # fmt: skip
    base = alt.Chart(
        shapes.slim(drawn, "margin", "share", "shown_as", "threshold", *shapes.fields(columns))
    ).encode(
        x=alt.X(
            "margin:Q",
            title="margin of the gated draft's first choice over its second, logits",
            axis=alt.Axis(tickCount=8),
        ),
        y=alt.Y(
            "share:Q", title="share of readings", axis=alt.Axis(format="%", tickCount=4, grid=True)
        ),
        color=shapes.colour(drawn),
        detail="row:N",
        tooltip=tooltips(columns),
    )
    layers = [
        base.mark_line(strokeWidth=2),
        base.mark_point(filled=True, size=60, opacity=1).properties(name="margins"),
    ]
    bars = drawn["threshold"].drop_nulls().unique().sort()
    if len(bars):
        rule = alt.Chart().mark_rule(color=GREY, strokeDash=[5, 4])
        layers.insert(0, rule.encode(x=alt.X("max(threshold):Q")))
    most = drawn.sort("share", descending=True).row(0, named=True)
    arms = words.listed(shapes.panels(drawn))
    text = f"Distribution of the gate's margins by workload, under {arms}"
    if len(bars):
        text += f", the gate's bar at {words.listed([f'{bar:g}' for bar in bars])} logits"
    text += f"; most readings of {most['row']} lie at {most['bin']} logits"
    text += f" ({words.percent(most['share'])})."
    return finished(
        alt.layer(*layers, data=base.data), name="margins", title="Margins that the gate read",
        alt_text=text, marks="margins", columns=columns,
        kinds=kinds(drawn["simulated"]), rows=8, height=190, panels=shapes.panels(drawn),
    )  # fmt: skip


def turns(rows: pl.DataFrame) -> Any:
    """Seconds that speculation saves of a request (turns.table), a workload each."""
    known = grouping.ordered(rows.filter(pl.col("saved_s").is_not_null()))
    if known.is_empty():
        return Words("No seconds per request to draw: no prompt ran in both arms with its times.")
    write = _seconds
    drawn = shapes.named(known).with_columns(
        shown=shapes.written(known, "saved_s", write),
        interval=shapes.spans(known, "saved_s", write),
        off=shapes.written(known, "off_s", write),
        treated=shapes.written(known, "treated_s", write),
        part=shapes.written(known, "prefill", words.turn),
    )
    columns = [("row", "workload"), ("shown", "saved a request"), ("interval", "95 % interval"),
               ("off", "without speculation"), ("treated", "with it"), ("part", "of"),
               ("pairs", "paired prompts")]  # fmt: skip
    best = drawn.sort("saved_s", descending=True).row(0, named=True)
    title = f"Seconds saved of {words.turns(known['prefill'])}"
    text = f"{title}: most for {best['row']}, {best['shown']} of {best['off']}."
    return shapes.forest(
        drawn, "saved_s", name="turns", title=title, alt_text=text,
        axis=f"seconds saved a request, {_parts_of(known['prefill'])}", columns=columns, bar=0.0,
    )  # fmt: skip


def outcomes(rows: pl.DataFrame) -> Any:
    """What the cycles came to, as shares of each group's cycles (ledger.outcomes)."""
    rows = grouping.ordered(rows.filter(pl.col("cycles") > 0))
    if rows.is_empty():
        return Words("No outcomes to draw: no cycle was logged.")
    drawn = shapes.named(rows).with_columns(
        shown=shapes.written(rows, "share", words.percent),
        order=pl.Series([schema.OUTCOMES.index(name) for name in rows["outcome"]]),
    )
    columns = [("row", "workload"), ("outcome", "outcome"), ("shown", "share of cycles"),
               ("cycles", "cycles"), ("emitted", "tokens")]  # fmt: skip
    here = [name for name in schema.OUTCOMES if name in set(rows["outcome"])]
    top = rows.group_by("outcome").agg(pl.col("cycles").sum()).sort("cycles").row(-1, named=True)
    text = f"Outcomes of {rows['cycles'].sum():,} cycles by workload and arm; most are"
    text += f" {top['outcome']} ({top['cycles']:,})."
    return shapes.stack(
        drawn, "share", "outcome", here, palette.OUTCOMES, name="outcomes",
        title="Outcomes of cycles", alt_text=text, axis="share of cycles", columns=columns,
        percent=True,
    )  # fmt: skip


def stages(rows: pl.DataFrame) -> Any:
    """Where the milliseconds of a token went (ledger.stages), stacked to ms per token."""
    rows = grouping.ordered(rows.filter(pl.col("ms_per_token") > 0))
    if rows.is_empty():
        return Words("No times to draw: no cycle here logged how long it took.")
    drawn = shapes.named(rows).with_columns(
        shown=shapes.written(rows, "ms_per_token", lambda v: words.number(v, 2)),
        total=shapes.written(rows, "ms", lambda v: words.number(v, 0)),
        order=pl.Series([list(palette.STAGES).index(name) for name in rows["stage"]]),
    )
    columns = [("row", "workload"), ("stage", "stage"), ("shown", "ms/token"),
               ("total", "ms in all"), ("emitted", "tokens")]  # fmt: skip
    here = [name for name in palette.STAGES if name in set(rows["stage"])]
    top = rows.group_by("stage").agg(pl.col("ms").sum()).sort("ms").row(-1, named=True)
    text = f"Milliseconds a token by stage; most went to {top['stage']} ({top['ms']:,.0f} ms)."
    return shapes.stack(
        drawn, "ms_per_token", "stage", here, palette.STAGES, name="stages",
        title="Where the milliseconds went", alt_text=text, axis="ms/token", columns=columns,
    )  # fmt: skip


def _titled(label: str) -> str:
    """A capital at the start, but not of τ, which would turn into a T."""
    return label[0].upper() + label[1:] if label[0].isascii() else label


def _bin(row: dict[str, Any]) -> str:
    """`3 … 4`, or `15 and more` for the bin that ends with the greatest margin."""
    if row["margin_hi"] is None:
        return f"{row['margin_lo']:g} and more"
    return f"{row['margin_lo']:g} … {row['margin_hi']:g}"


def _parts_of(prefill: pl.Series) -> str:
    if prefill.all():
        return "prefill included"
    return "prefill included where both arms logged it" if prefill.any() else "decode alone"


def _seconds(value: float | None) -> str:
    return f"{words.number(value, 2)} s"


def _counts(rows: pl.DataFrame, name: str) -> list[str]:
    pairs = rows.select(f"{name}_num", f"{name}_den").iter_rows()
    return [f"{words.count(num)} / {words.count(den)}" for num, den in pairs]


def _accuracy(row: dict[str, Any]) -> str:
    if not row["known"]:
        return "none read" if not row["readings"] else "unknown: the next token was not logged"
    return f"{words.percent(row['right'] / row['known'])} of {row['known']:,} known"


def _reason(rows: pl.DataFrame, name: str) -> str:
    found = rows[f"{name}_why"].drop_nulls().unique(maintain_order=True).to_list()
    return words.listed(found[:3]) if found else "no arm with speculation is here"


def _verdict_counts(drawn: pl.DataFrame) -> str:
    said = drawn["said"].to_list()
    return words.listed([f"{said.count(kind)} {kind}" for kind in palette.VERDICTS])
