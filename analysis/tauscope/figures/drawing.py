"""How a chart leaves a notebook: Altair, set up to draw with no network anywhere.

Altair's own renderer fetches JavaScript from the net. JupyterLab brings a Vega-Lite 5 of
its own, and draws what comes under that type, offline and in untrusted notebooks too; the
pages of a report bring theirs (see batch/render.py) and read the same output. The charts
keep to what Vega-Lite 5 and 6 have in common, and a browser test draws them in both.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from tauscope.figures.drawing_types import CHART


def _import_altair() -> Any:
    """Altair, without the grammar that JSON-schema's checker of IRIs builds at import.

    With JupyterLab installed that takes longer than everything else a page does, and no
    chart holds an IRI that Altair would check.
    """
    name = "rfc3987_syntax"
    if "altair" in sys.modules or "jsonschema" in sys.modules or name in sys.modules:
        import altair

        return altair
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        import altair
    finally:
        del sys.modules[name]
    return altair


alt = _import_altair()

MIME = CHART
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
FONT = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK SC', "
    "'PingFang SC', 'Microsoft YaHei', 'Noto Sans SC', 'WenQuanYi Zen Hei', sans-serif"
)
WIDTH = 620
GREY = "#8C8C8C"  # seen on light and on dark
ROW = 32


def _render(spec: dict[str, Any], **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    spec = {**spec, "$schema": SCHEMA}
    about = spec.get("usermeta", {}).get("tauscope", {})
    text = about.get("alt") or "chart"
    embed = {"actions": False, "renderer": "svg"}
    return {MIME: spec, "text/plain": text}, {MIME: {"embed_options": embed}}


@alt.theme.register("tauscope", enable=True)
def _theme() -> Any:
    return alt.theme.ThemeConfig(
        {
            "config": {
                "font": FONT,
                "background": None,
                "view": {"stroke": None},
                "axis": {
                    "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
                    "labelLimit": 190, "gridOpacity": 0.35, "domainOpacity": 0.5,
                    "gridColor": GREY, "domainColor": GREY, "tickColor": GREY,
                },
                "axisQuantitative": {"labelOverlap": "greedy", "labelSeparation": 8},
                "axisY": {"grid": False, "ticks": False, "domain": False, "labelPadding": 8},
                "legend": {"orient": "bottom", "title": None, "labelFontSize": 12,
                           "labelLimit": 190, "columns": 4, "symbolStrokeWidth": 0},
                "title": {"anchor": "start", "fontSize": 14, "fontWeight": 600, "offset": 12,
                          "subtitleFontSize": 12, "frame": "group", "limit": 600},
            }
        }
    )  # fmt: skip


alt.renderers.register("tauscope", _render)
alt.renderers.enable("tauscope")


def finished(
    chart: Any,
    *,
    name: str,
    title: str,
    alt_text: str,
    marks: str,
    columns: Sequence[tuple[str, str]],
    kinds: Sequence[bool],
    rows: int,
    height: int | None = None,
    panels: Sequence[str] = (),
) -> Any:
    """`chart` with its name, title, size and the finding in words for who can't see it.

    `marks` names the mark of which there is one for each row of the chart's table;
    `columns` are (field, heading) of that table. `kinds` says whether its rows are simulated:
    the title does where all are; where some are, every row says it of itself. With `panels`,
    the values of the column `panel`, each of them is a small chart, one below another.
    """
    heading = f"{title} · simulated" if list(kinds) == [True] else title
    about = {
        "name": name, "alt": alt_text, "marks": f"{marks}_marks", "title": heading,
        "columns": [list(pair) for pair in columns], "simulated": list(kinds),
    }  # fmt: skip
    size = {"width": WIDTH, "height": height or max(2, rows) * ROW}
    if panels:
        # Panels take their size each; what stands in one is on a scale of its own.
        header = alt.Header(labelFontWeight=600, labelFontSize=12, labelAnchor="start",
                            labelOrient="top", labelLimit=400)  # fmt: skip
        facet = alt.Facet("panel:N", title=None, header=header, sort=list(panels))
        chart = chart.properties(**size).facet(facet, columns=1).resolve_scale(y="independent")
        size = {}
    return chart.properties(
        title=heading, description=alt_text, usermeta={"tauscope": about}, **size
    )


def tooltips(columns: Sequence[tuple[str, str]]) -> list[Any]:
    """One line a (field, heading)."""
    return [alt.Tooltip(field=field, type="nominal", title=heading) for field, heading in columns]


class Words:
    """Text in the place of a chart or table: what can't be shown, and why."""

    def __init__(self, text: str, kind: str = "note") -> None:
        self.text = text
        self.kind = kind

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        from html import escape

        return f'<p class="ts-{self.kind}" dir="auto">{escape(self.text)}</p>'


def answer(text: str) -> Words:
    """The sentence a page opens with."""
    return Words(text, "answer")


def kinds(rows: Iterable[bool | None]) -> list[bool]:
    """The kinds of data among rows, from their `simulated`: real, simulated, or both."""
    return sorted({bool(value) for value in rows})
