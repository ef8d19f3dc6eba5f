"""What a table is and how it leaves a notebook: HTML for reading, its rows for files.

Every text is escaped here and nowhere else, and a table carries the frame it was made
from, so that a report can lay it down as CSV and JSON.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import polars as pl

from tauscope.figures.drawing_types import TABLE

MIME = TABLE
HINT = 300  # characters; the whole query is in the figure's story
LONG = 30  # characters; what is longer is a sentence, and wants room to wrap


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
        note = f'<p class="ts-under">{escape(self.note)}</p>' if self.note else ""
        return (
            f'<figure class="ts-table"><figcaption>{escape(self.title)}</figcaption>'
            f'<div class="ts-scroll" tabindex="0">{self._laid_out()}</div>{note}</figure>'
        )

    def _laid_out(self) -> str:
        from great_tables import GT
        from great_tables import html as as_html

        names = [f"c{place}" for place in range(len(self.heads))]
        cells = pl.DataFrame(
            [[_cell(cell) for cell in row] for row in self.rows],
            schema=dict.fromkeys(names, pl.String),
            orient="row",
        )
        table = GT(cells, id=f"table-{self.name}", rowname_col=names[0])
        table = table.tab_stubhead(as_html(_head(self.heads[0]))).cols_label(
            {name: as_html(_head(head)) for name, head in zip(names, self.heads, strict=True)}
        )
        numbers = [name for name, head in zip(names, self.heads, strict=True) if head.number]
        words = [name for name in names if name not in numbers]
        table = table.cols_align("right", numbers).cols_align("left", words)
        # The cells are HTML already, escaped in _cell; a page's own sheet knows dark and print.
        laid_out = table.fmt(lambda cell: cell, columns=names).as_raw_html()
        return re.sub(r"(?s)<style>.*?</style>\s*", "", laid_out, count=1)


def _head(head: Head) -> str:
    unit = f" <small>{escape(head.unit)}</small>" if head.unit else ""
    about = f' title="{escape(head.about)}"' if head.about else ""
    return f"<span{about}>{escape(head.text)}{unit}</span>"


def _cell(cell: Cell) -> str:
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
    kinds = ["unknown"] if cell.kind == "unknown" else []
    if cell.colour and len(cell.text) <= 24:
        kinds.append("whole")
    if not cell.colour and len(cell.text) > LONG:
        kinds.append("long")
    attributes = f' class="{" ".join(kinds)}"' if kinds else ""
    if cell.full and cell.full != cell.text:
        attributes += f' title="{escape(cell.full)}"'
    content = (dot if cell.colour else "") + text + small
    return f"<span{attributes}>{content}</span>" if attributes else content


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
