"""What a table is and how it leaves a notebook: HTML for reading, its rows for files.

Every text is escaped here and nowhere else, and a table carries the frame it was made
from, so that a report can lay it down as CSV and JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import polars as pl

from tauscope.drawing_types import TABLE

MIME = TABLE
HINT = 300  # characters; the whole query is in the figure's story


@dataclass(frozen=True, slots=True)
class Head:
    """A column's heading, with its unit and what it means."""

    text: str
    unit: str = ""
    about: str = ""
    number: bool = True


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure or text; `small` stands under it.

    `about` says what was divided by what, `sql` gives the rows behind it. `colour` puts a
    dot before the text, `kind` is a style: verdict names, `unknown`, `struck`.
    """

    text: str
    small: str = ""
    about: str = ""
    sql: str = ""
    colour: str = ""
    kind: str = ""
    full: str = ""


class Table:
    """A titled table with the frame behind it; the first cell of a row names the row."""

    def __init__(
        self, name: str, title: str, heads: Sequence[Head], rows: Sequence[Sequence[Cell]],
        frame: pl.DataFrame, note: str = "",
    ) -> None:  # fmt: skip
        self.name = name
        self.title = title
        self.heads = list(heads)
        self.rows = [list(row) for row in rows]
        self.frame = frame
        self.note = note

    def __repr__(self) -> str:
        return f"{self.title}: {len(self.rows)} rows"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        data = {
            "name": self.name,
            "title": self.title,
            "columns": self.frame.columns,
            "rows": records(self.frame),
        }
        return {"text/html": self.html(), MIME: data, "text/plain": repr(self)}

    def html(self) -> str:
        """The table with scoped headers, in a box that scrolls sideways on its own."""
        heads = "".join(_head(head) for head in self.heads)
        body = "".join(
            "<tr>" + "".join(_cell(cell, self.heads[i], i == 0) for i, cell in enumerate(row))
            + "</tr>"
            for row in self.rows
        )  # fmt: skip
        note = f'<p class="ts-under">{escape(self.note)}</p>' if self.note else ""
        return (
            f'<figure class="ts-table" id="table-{escape(self.name)}">'
            f"<figcaption>{escape(self.title)}</figcaption>"
            '<div class="ts-scroll" tabindex="0"><table>'
            f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>{note}</figure>"
        )


def _head(head: Head) -> str:
    unit = f" <small>{escape(head.unit)}</small>" if head.unit else ""
    about = f' title="{escape(head.about)}"' if head.about else ""
    kind = ' class="num"' if head.number else ""
    return f'<th scope="col"{kind}{about}>{escape(head.text)}{unit}</th>'


def _cell(cell: Cell, head: Head, names_row: bool) -> str:
    dot = f'<span class="dot" style="background:{escape(cell.colour)}"></span>'
    text = f"<bdi>{escape(cell.text)}</bdi>"
    if cell.kind in ("on", "off", "undecided", "none"):
        text = f'<span class="verdict {cell.kind}">{text}</span>'
    elif cell.kind == "struck":
        text = f"<s>{text}</s>"
    if cell.about or cell.sql:
        hint = "\n".join(part[:HINT] for part in (cell.about, cell.sql) if part)
        text = (
            f'<span class="fig" title="{escape(hint)}" data-about="{escape(cell.about)}" '
            f'data-sql="{escape(cell.sql)}">{text}</span>'
        )
    small = f"<br><small><bdi>{escape(cell.small)}</bdi></small>" if cell.small else ""
    kinds = [k for k in ("num" if head.number else "", cell.kind) if k in ("num", "unknown")]
    if cell.colour and len(cell.text) <= 24:
        kinds.append("whole")
    attributes = f' class="{" ".join(kinds)}"' if kinds else ""
    if cell.full and cell.full != cell.text:
        attributes += f' title="{escape(cell.full)}"'
    tag = 'th scope="row"' if names_row else "td"
    content = (dot if cell.colour else "") + text + small
    return f"<{tag}{attributes}>{content}</{tag.split()[0]}>"


def records(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON can hold them: no NaN, no infinity, no type that only Polars knows."""
    floats = [name for name, kind in frame.schema.items() if kind.is_float()]
    clean = frame.with_columns(
        pl.when(pl.col(name).is_finite()).then(pl.col(name)).alias(name) for name in floats
    )
    return [{key: _plain(value) for key, value in row.items()} for row in clean.to_dicts()]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_plain(item) for item in value]
    return str(value)
