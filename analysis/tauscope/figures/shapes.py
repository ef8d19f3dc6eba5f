"""Shapes that charts of several pages have in common, and the columns that they draw.

A frame that is drawn has `row` (what a mark's line is called), `shown_as` (its workload) and
columns of text for the tooltips.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from tauscope.figures import grouping, palette, words
from tauscope.figures.drawing import GREY, ROW, alt, finished, kinds, tooltips

# A name too long for its line loses its middle: what tells rows apart is at the end.
_SHORT = (
    "length(datum.label) > 30 ? slice(datum.label, 0, 12) + '…' + slice(datum.label, -17)"
    " : datum.label"
)
_CHANGE = "format(datum.value - 1, '+.0%')"


def row_axis(names: Sequence[str]) -> Any:
    """The axis that names the rows, in the order of `names`."""
    return alt.Y("row:N", title=None, sort=list(names), axis=alt.Axis(labelExpr=_SHORT))


def forest(
    drawn: pl.DataFrame, field: str, *, name: str, title: str, alt_text: str, axis: str,
    columns: Sequence[tuple[str, str]], bar: float | None = None, share: bool = False,
    change: bool = False, percent: bool = False,
) -> Any:  # fmt: skip
    """Points with their intervals, a row each, on one scale.

    A `share` lies within 0 and 1 and is written in percent, as is a `percent` that may lie
    beyond, and a `change`: a ratio, less 1.
    """
    low, high = _ends(drawn, field, bar)
    room = (high - low) * 0.08 or 0.05
    low, high = low - room, high + room
    if share:
        low, high = max(low, 0.0), min(high, 1.0)
    shape = alt.Axis(tickCount=6)
    if share or change or percent:
        how = {"labelExpr": _CHANGE} if change else {"format": "%"}
        shape = alt.Axis(tickCount=6, **how)
    # All layers name the scale: one that doesn't would pull in zero.
    scale = alt.Scale(domain=[low, high], nice=False)
    shown = slim(drawn, field, f"{field}_lo", f"{field}_hi", "shown_as", *fields(columns))
    base = alt.Chart(shown).encode(
        y=row_axis(drawn["row"].to_list()),
        color=colour(drawn, legend=False),
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
        columns=columns, kinds=kinds(drawn["simulated"]), rows=drawn.height,
    )  # fmt: skip


def stack(
    drawn: pl.DataFrame, field: str, kind: str, here: Sequence[str], colours: dict[str, str], *,
    name: str, title: str, alt_text: str, axis: str, columns: Sequence[tuple[str, str]],
    percent: bool = False,
) -> Any:  # fmt: skip
    """Bars of parts, a group each, in one order."""
    names = list(dict.fromkeys(drawn["row"]))
    chart = (
        alt.Chart(slim(drawn, field, kind, "order", *fields(columns)))
        .mark_bar(height={"band": 0.72}, stroke="white", strokeWidth=0.6)
        .encode(
            y=row_axis(names),
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
        kinds=kinds(drawn["simulated"]), rows=len(names),
        height=max(2, len(names)) * (ROW - 4),
    )  # fmt: skip


def lines(
    drawn: pl.DataFrame, x: Any, place: str, columns: list[tuple[str, str]], name: str,
    title: str, text: str,
) -> Any:  # fmt: skip
    """A line a (group, outcome), and a point a row; an arm a panel."""
    here = [outcome for outcome in palette.OUTCOMES if outcome in set(drawn["outcome"])]
    drawn = panelled(drawn)
    base = alt.Chart(slim(drawn, place, "cycle_ms", "panel", *fields(columns))).encode(
        x=x,
        y=alt.Y("cycle_ms:Q", title="ms a cycle", scale=alt.Scale(zero=True),
                axis=alt.Axis(tickCount=4, grid=True)),
        color=alt.Color(
            "outcome:N",
            scale=alt.Scale(domain=here, range=[palette.OUTCOMES[outcome] for outcome in here]),
            legend=alt.Legend(title=None),
        ),
        detail="row:N",
        tooltip=tooltips(columns),
    )  # fmt: skip
    return finished(
        alt.layer(
            base.mark_line(strokeWidth=1.5, opacity=0.7),
            base.mark_point(filled=True, size=45, opacity=1).properties(name=name),
        ),
        name=name, title=title, alt_text=text, marks=name, columns=columns,
        kinds=kinds(drawn["simulated"]), rows=8, height=170, panels=panels(drawn),
    )  # fmt: skip


def panelled(drawn: pl.DataFrame) -> pl.DataFrame:
    """`drawn` with `panel`: the arm, and its kind of data where both are there."""
    rows = drawn.select("arm", "simulated").to_dicts()
    names = words.row_names(rows, ("simulated",), first="arm", unique=False)
    return drawn.with_columns(panel=pl.Series(names, dtype=pl.String))


def panels(drawn: pl.DataFrame) -> list[str]:
    """The panels in the order in which they are shown."""
    return drawn["panel"].unique(maintain_order=True).to_list()


def named(rows: pl.DataFrame) -> pl.DataFrame:
    shown = pl.Series([words.label(label) for label in rows["workload"]], dtype=pl.String)
    return grouping.named(rows).with_columns(shown_as=shown)


def colour(drawn: pl.DataFrame, legend: bool = True) -> Any:
    pairs = dict(
        zip(drawn["shown_as"], (palette.workload(w) for w in drawn["workload"]), strict=True)
    )
    return alt.Color(
        "shown_as:N",
        scale=alt.Scale(domain=list(pairs), range=list(pairs.values())),
        legend=alt.Legend(title=None) if legend else None,
    )


def written(rows: pl.DataFrame, name: str, write: Any) -> pl.Series:
    return pl.Series([write(value) for value in rows[name]], dtype=pl.String)


def spans(rows: pl.DataFrame, name: str, write: Any) -> pl.Series:
    pairs = rows.select(f"{name}_lo", f"{name}_hi").iter_rows()
    return pl.Series([words.span(lo, hi, write) or "none" for lo, hi in pairs], dtype=pl.String)


def slim(drawn: pl.DataFrame, *fields: str) -> pl.DataFrame:
    """Only what the chart shows goes to the page."""
    return drawn.select(list(dict.fromkeys(fields)))


def fields(columns: Sequence[tuple[str, str]]) -> list[str]:
    return [field for field, _ in columns]


def _ends(drawn: pl.DataFrame, field: str, bar: float | None) -> tuple[float, float]:
    """The least and greatest of what a row of points has to show."""
    columns = (field, f"{field}_lo", f"{field}_hi")
    values = [value for name in columns for value in drawn[name].drop_nulls()]
    values += [] if bar is None else [bar]
    return min(values), max(values)
