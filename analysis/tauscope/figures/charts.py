"""Frames in, charts out; never a query.

Each chart has a name, and one mark for each row of the table that goes with it. A frame
without a row to draw gives words in the chart's place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from tauscope import schema
from tauscope.figures import grouping, palette, words
from tauscope.figures.drawing import GREY, ROW, Words, alt, any_simulated, finished, tooltips
from tauscope.metrics import BY_NAME


def speedup(rows: pl.DataFrame) -> Any:
    """Speed-up with its interval, a row of speedup.table each; 1 is no change."""
    known = grouping.ordered(rows.filter(pl.col("speedup").is_not_null()))
    if known.is_empty():
        return Words("No speed-up to draw: no workload ran with and without speculation.")
    drawn = _named(known).with_columns(
        shown=_written(known, "speedup", words.change),
        interval=_spans(known, "speedup", words.change),
        said=pl.Series([words.verdict(row) for row in known.iter_rows(named=True)]),
        reason=pl.Series([words.why(row) for row in known.iter_rows(named=True)]),
    )
    columns = [("row", "workload"), ("shown", "speed-up"), ("interval", "95 % interval"),
               ("said", "verdict"), ("reason", "why")]  # fmt: skip
    best, worst = (drawn.sort("speedup", descending=d).row(0, named=True) for d in (True, False))
    text = f"Speed-up by workload: from {worst['shown']} for {worst['row']}"
    text += f" to {best['shown']} for {best['row']}; {_verdict_counts(drawn)}."
    return _forest(
        drawn, "speedup", name="speedup", title="Speed-up over the off arm", alt_text=text,
        axis="speed-up, ratio (1 is no change)", columns=columns, bar=1.0,
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
    drawn = _named(known).with_columns(
        shown=_written(known, name, write),
        interval=_spans(known, name, write),
        counts=pl.Series(_counts(known, name)),
    )
    columns = [("row", "workload"), ("shown", about.label), ("interval", "95 % interval"),
               ("counts", f"{about.num} / {about.den}")]  # fmt: skip
    low, high = (drawn.sort(name, descending=d).row(0, named=True) for d in (False, True))
    text = f"{_titled(about.label)}: from {low['shown']} for {low['row']} to {high['shown']}"
    text += f" for {high['row']}."
    return _forest(
        drawn, name, name=name, title=_titled(about.label),
        alt_text=text, axis=about.label, columns=columns,
        share=about.kind == "proportion",
    )  # fmt: skip


def margins(rows: pl.DataFrame) -> Any:
    """Where the gate's margins lie, as shares of each workload's readings (margins.by_bin)."""
    if rows.is_empty():
        return Words("No margins to draw: no cycle here logged the gate's reading.")
    drawn = _named(grouping.ordered(rows)).with_columns(
        shown=_written(rows := grouping.ordered(rows), "share", words.percent),
        bin=pl.format("{} … {}", pl.col("margin_lo"), pl.col("margin_hi")),
        accuracy=pl.Series([_accuracy(row) for row in rows.iter_rows(named=True)]),
    )
    columns = [("row", "workload"), ("bin", "margin, logits"), ("shown", "share of readings"),
               ("readings", "readings"), ("accuracy", "draft right")]  # fmt: skip
    base = alt.Chart(_slim(drawn, "margin", "share", "shown_as", *_fields(columns))).encode(
        x=alt.X(
            "margin:Q",
            title="margin of the draft's first choice, logits",
            axis=alt.Axis(tickCount=8),
        ),
        y=alt.Y(
            "share:Q", title="share of readings", axis=alt.Axis(format="%", tickCount=5, grid=True)
        ),
        color=_colour(drawn),
        tooltip=tooltips(columns),
    )
    layers = [
        base.mark_line(strokeWidth=2, interpolate="monotone"),
        base.mark_point(filled=True, size=60, opacity=1).properties(name="margins"),
    ]
    bars = drawn["threshold"].drop_nulls().unique().sort()
    if len(bars):
        rule = alt.Chart(pl.DataFrame({"bar": bars}))
        layers.insert(0, rule.mark_rule(color=GREY, strokeDash=[5, 4]).encode(x="bar:Q"))
    most = rows.sort("share", descending=True).row(0, named=True)
    text = "Distribution of the gate's margins by workload"
    if len(bars):
        text += f", the gate's bar at {words.listed([f'{bar:g}' for bar in bars])} logits"
    text += f"; most readings of {words.label(most['workload'])} lie at"
    text += f" {most['margin_lo']} to {most['margin_hi']} logits ({words.percent(most['share'])})."
    return finished(
        alt.layer(*layers), name="margins", title="Margins that the gate read",
        alt_text=text, marks="margins", columns=columns,
        simulated=any_simulated(drawn.to_dicts()), rows=8, height=260,
    )  # fmt: skip


def turns(rows: pl.DataFrame) -> Any:
    """Seconds that speculation saves of a whole request (turns.table), a workload each."""
    known = grouping.ordered(rows.filter(pl.col("saved_s").is_not_null()))
    if known.is_empty():
        return Words("No seconds per request to draw: no prompt ran in both arms with its times.")
    write = _seconds
    drawn = _named(known).with_columns(
        shown=_written(known, "saved_s", write),
        interval=_spans(known, "saved_s", write),
        off=_written(known, "off_s", write),
        treated=_written(known, "treated_s", write),
    )
    columns = [("row", "workload"), ("shown", "saved a request"), ("interval", "95 % interval"),
               ("off", "without speculation"), ("treated", "with it"),
               ("pairs", "paired prompts")]  # fmt: skip
    best = drawn.sort("saved_s", descending=True).row(0, named=True)
    text = f"Seconds saved of a whole request: most for {best['row']}, {best['shown']}"
    text += f" of {best['off']}."
    return _forest(
        drawn, "saved_s", name="turns", title="Seconds saved of a whole request", alt_text=text,
        axis="seconds saved a request, prefill included", columns=columns, bar=0.0,
    )  # fmt: skip


def outcomes(rows: pl.DataFrame) -> Any:
    """What the cycles came to, as shares of each group's cycles (ledger.outcomes)."""
    rows = grouping.ordered(rows.filter(pl.col("cycles") > 0))
    if rows.is_empty():
        return Words("No outcomes to draw: no cycle was logged.")
    drawn = _named(rows).with_columns(
        shown=_written(rows, "share", words.percent),
        order=pl.Series([schema.OUTCOMES.index(name) for name in rows["outcome"]]),
    )
    columns = [("row", "workload"), ("outcome", "outcome"), ("shown", "share of cycles"),
               ("cycles", "cycles"), ("emitted", "tokens")]  # fmt: skip
    here = [name for name in schema.OUTCOMES if name in set(rows["outcome"])]
    top = rows.group_by("outcome").agg(pl.col("cycles").sum()).sort("cycles").row(-1, named=True)
    text = f"Outcomes of {rows['cycles'].sum():,} cycles by workload and arm; most are"
    text += f" {top['outcome']} ({top['cycles']:,})."
    return _stack(
        drawn, "share", "outcome", here, palette.OUTCOMES, name="outcomes",
        title="Outcomes of cycles", alt_text=text, axis="share of cycles", columns=columns,
        percent=True,
    )  # fmt: skip


def stages(rows: pl.DataFrame) -> Any:
    """Where the milliseconds of a token went (ledger.stages), stacked to ms per token."""
    rows = grouping.ordered(rows.filter(pl.col("ms_per_token") > 0))
    if rows.is_empty():
        return Words("No times to draw: no cycle here logged how long it took.")
    drawn = _named(rows).with_columns(
        shown=_written(rows, "ms_per_token", lambda v: words.number(v, 2)),
        total=_written(rows, "ms", lambda v: words.number(v, 0)),
        order=pl.Series([list(palette.STAGES).index(name) for name in rows["stage"]]),
    )
    columns = [("row", "workload"), ("stage", "stage"), ("shown", "ms/token"),
               ("total", "ms in all"), ("emitted", "tokens")]  # fmt: skip
    here = [name for name in palette.STAGES if name in set(rows["stage"])]
    top = rows.group_by("stage").agg(pl.col("ms").sum()).sort("ms").row(-1, named=True)
    text = f"Milliseconds a token by stage; most went to {top['stage']} ({top['ms']:,.0f} ms)."
    return _stack(
        drawn, "ms_per_token", "stage", here, palette.STAGES, name="stages",
        title="Where the milliseconds went", alt_text=text, axis="ms/token", columns=columns,
    )  # fmt: skip


def _forest(
    drawn: pl.DataFrame, field: str, *, name: str, title: str, alt_text: str, axis: str,
    columns: Sequence[tuple[str, str]], bar: float | None = None, share: bool = False,
) -> Any:  # fmt: skip
    """Points with their intervals, a row each, on one scale."""
    low, high = _ends(drawn, field, bar)
    room = (high - low) * 0.08 or 0.05
    low, high = low - room, high + room
    if share:
        low, high = max(low, 0.0), min(high, 1.0)
    shape = alt.Axis(format="%", tickCount=6) if share else alt.Axis(tickCount=6)
    # All layers name the scale: one that doesn't would pull in zero.
    scale = alt.Scale(domain=[low, high], nice=False)
    slim = _slim(drawn, field, f"{field}_lo", f"{field}_hi", "shown_as", *_fields(columns))
    base = alt.Chart(slim).encode(
        y=alt.Y("row:N", title=None, sort=drawn["row"].to_list()),
        color=_colour(drawn, legend=False),
        tooltip=tooltips(columns),
    )
    x = alt.X(f"{field}:Q", title=axis, axis=shape, scale=scale)
    layers = []
    if bar is not None:
        rule = alt.Chart(pl.DataFrame({"bar": [bar]}))
        layers.append(
            rule.mark_rule(color=GREY, strokeWidth=1.5).encode(x=alt.X("bar:Q", scale=scale))
        )
    layers += [
        base.mark_rule(strokeWidth=5, opacity=0.45, strokeCap="round").encode(
            x=alt.X(f"{field}_lo:Q", title=axis, axis=shape, scale=scale), x2=f"{field}_hi:Q"
        ),
        base.mark_point(filled=True, size=110, opacity=1).encode(x=x).properties(name=name),
    ]
    return finished(
        alt.layer(*layers), name=name, title=title, alt_text=alt_text, marks=name,
        columns=columns, simulated=any_simulated(drawn.to_dicts()), rows=drawn.height,
    )  # fmt: skip


def _stack(
    drawn: pl.DataFrame, field: str, kind: str, here: Sequence[str], colours: dict[str, str], *,
    name: str, title: str, alt_text: str, axis: str, columns: Sequence[tuple[str, str]],
    percent: bool = False,
) -> Any:  # fmt: skip
    """Bars of parts, a group each, in one order."""
    names = list(dict.fromkeys(drawn["row"]))
    chart = (
        alt.Chart(_slim(drawn, field, kind, "order", *_fields(columns)))
        .mark_bar(height={"band": 0.72}, stroke="white", strokeWidth=0.6)
        .encode(
            y=alt.Y("row:N", title=None, sort=names),
            x=alt.X(
                f"{field}:Q", title=axis,
                axis=alt.Axis(format="%", tickCount=5) if percent else alt.Axis(tickCount=6),
                scale=alt.Scale(domain=[0, 1]) if percent else alt.Scale(zero=True),
            ),
            color=alt.Color(
                f"{kind}:N",
                scale=alt.Scale(domain=list(here), range=[colours[part] for part in here]),
                legend=alt.Legend(title=None),
            ),
            order=alt.Order("order:Q"),
            tooltip=tooltips(columns),
        )
    )  # fmt: skip
    return finished(
        alt.layer(chart.properties(name=name)), name=name, title=title, alt_text=alt_text,
        marks=name, columns=columns,
        simulated=any_simulated(drawn.to_dicts()), rows=len(names),
        height=max(2, len(names)) * (ROW - 4),
    )  # fmt: skip


def _ends(drawn: pl.DataFrame, field: str, bar: float | None) -> tuple[float, float]:
    """The least and greatest of what a row of points has to show."""
    columns = (field, f"{field}_lo", f"{field}_hi")
    values = [value for name in columns for value in drawn[name].drop_nulls()]
    values += [] if bar is None else [bar]
    return min(values), max(values)


def _titled(label: str) -> str:
    """A capital at the start, but not of τ, which would turn into a T."""
    return label[0].upper() + label[1:] if label[0].isascii() else label


def _fields(columns: Sequence[tuple[str, str]]) -> list[str]:
    return [field for field, _ in columns]


def _slim(drawn: pl.DataFrame, *fields: str) -> pl.DataFrame:
    """Only what the chart shows goes to the page."""
    return drawn.select(list(dict.fromkeys(fields)))


def _named(rows: pl.DataFrame) -> pl.DataFrame:
    shown = pl.Series([words.label(label) for label in rows["workload"]], dtype=pl.String)
    return grouping.named(rows).with_columns(shown_as=shown)


def _colour(drawn: pl.DataFrame, legend: bool = True) -> Any:
    pairs = dict(
        zip(drawn["shown_as"], (palette.workload(w) for w in drawn["workload"]), strict=True)
    )
    return alt.Color(
        "shown_as:N",
        scale=alt.Scale(domain=list(pairs), range=list(pairs.values())),
        legend=alt.Legend(title=None) if legend else None,
    )


def _written(rows: pl.DataFrame, name: str, write: Any) -> pl.Series:
    return pl.Series([write(value) for value in rows[name]], dtype=pl.String)


def _spans(rows: pl.DataFrame, name: str, write: Any) -> pl.Series:
    pairs = rows.select(f"{name}_lo", f"{name}_hi").iter_rows()
    return pl.Series([words.span(lo, hi, write) or "none" for lo, hi in pairs], dtype=pl.String)


def _seconds(value: float | None) -> str:
    return f"{words.number(value, 2)} s"


def _counts(rows: pl.DataFrame, name: str) -> list[str]:
    pairs = rows.select(f"{name}_num", f"{name}_den").iter_rows()
    return [f"{words.count(num)} / {words.count(den)}" for num, den in pairs]


def _accuracy(row: dict[str, Any]) -> str:
    if not row["known"]:
        return "unknown: the next token was not logged"
    return f"{words.percent(row['right'] / row['known'])} of {row['known']:,} known"


def _reason(rows: pl.DataFrame, name: str) -> str:
    found = rows[f"{name}_why"].drop_nulls().unique(maintain_order=True).to_list()
    return words.listed(found[:3]) if found else "no arm with speculation is here"


def _verdict_counts(drawn: pl.DataFrame) -> str:
    said = drawn["said"].to_list()
    return words.listed([f"{said.count(kind)} {kind}" for kind in palette.VERDICTS])
