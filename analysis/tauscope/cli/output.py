"""What commands print: tables with units, JSON, notes on standard error, text made harmless."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    from rich.progress import Progress
    from rich.table import Table

    from tauscope.catalog import Catalog

# C0 and C1 controls, and the marks that turn the direction of all that follows.
_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
WIDEST = 60


def clean(text: str) -> str:
    """`text` that can't steer a terminal: controls and direction marks as visible escapes."""
    return _HARMFUL.sub(lambda mark: f"\\u{ord(mark[0]):04x}", text)


def short(text: str, width: int = WIDEST) -> str:
    """One harmless line of at most `width` characters, its end marked where it was cut."""
    line = clean(text.replace("\n", "⏎").replace("\t", " "))
    return line if len(line) <= width else line[: width - 1] + "…"


def number(value: float | None, form: str = ".3f", missing: str = "–") -> str:
    """A number for a table; a dash where it is unknown."""
    return missing if value is None else format(value, form)


def share(value: float | None, lo: float | None = None, hi: float | None = None) -> str:
    """A ratio as percent, with its interval where there is one."""
    if value is None:
        return "–"
    text = f"{100 * value:.1f} %"
    return text if lo is None or hi is None else f"{text} [{100 * lo:.1f}, {100 * hi:.1f}]"


def gain(value: float | None, lo: float | None = None, hi: float | None = None) -> str:
    """A speed-up as percent of change: 1.061 is +6.1 %."""
    if value is None:
        return "–"
    text = f"{100 * (value - 1):+.1f} %"
    if lo is None or hi is None:
        return text
    return f"{text} [{100 * (lo - 1):+.1f}, {100 * (hi - 1):+.1f}]"


def interval(value: float | None, lo: float | None, hi: float | None, form: str = ".3f") -> str:
    """A value with its interval where there is one."""
    if value is None:
        return "–"
    text = format(value, form)
    return text if lo is None or hi is None else f"{text} [{lo:{form}}, {hi:{form}}]"


def note(text: str) -> None:
    """One harmless line on standard error."""
    sys.stderr.write(clean(text) + "\n")


def emit_json(value: Any) -> None:
    """`value` (a frame becomes a list of rows) as JSON on standard output; NaN is null."""
    sys.stdout.write(as_json(value))


def as_json(value: Any) -> str:
    """`value` as JSON that can't steer a terminal; a frame becomes a list of rows, NaN null."""
    import polars as pl

    if isinstance(value, pl.DataFrame):
        value = value.to_dicts()
    text = json.dumps(_finite(value), ensure_ascii=False, indent=2, default=str)
    # What would harm is only ever inside strings, where its escape is the same value.
    return clean(text) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], widest: int = WIDEST
) -> Table:
    """A table for the terminal. A column whose name begins with '>' stands right-aligned."""
    from rich.table import Table
    from rich.text import Text

    made = Table(title=title, title_justify="left", title_style="bold", header_style="bold",
                 show_header=any(columns))  # fmt: skip
    for column in columns:
        right = column.startswith(">")
        made.add_column(Text(column.lstrip(">")), justify="right" if right else "left")
    for row in rows:
        made.add_row(*(Text(short(cell, widest)) for cell in row))
    return made


def show(*parts: Any) -> None:
    """Print tables or text; a pipe gets as much width as the content wants."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True, width=240)
    for part in parts:
        console.print(part)


def show_frame(frame: pl.DataFrame, title: str = "") -> None:
    """Any frame as a table: what a query of the user's own returned."""
    show(frame_table(frame, title))


def frame_table(frame: pl.DataFrame, title: str = "") -> Table:
    """A table of any frame, numbers to the right."""
    right = [dtype.is_numeric() for dtype in frame.dtypes]
    columns = [(">" if r else "") + name for name, r in zip(frame.columns, right, strict=True)]
    return table(title, columns, ([cell(value) for value in row] for row in frame.iter_rows()))


def cell(value: Any) -> str:
    """One value as a table shows it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return ", ".join(cell(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {cell(item)}" for key, item in value.items())
    return str(value)


def progress() -> Progress:
    """A progress bar on standard error, gone when done; silent where that is no terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def mended(root: Path) -> None:
    """Commit what killed recorders left in a store that is about to be written, and say so."""
    from tauscope.record import recover

    for line in recover.mend([root]):
        note(line)


def opened(traces: Sequence[str] | None) -> Catalog:
    """The stores to read, with a note when the choice was not the user's, or a log is damaged."""
    from tauscope import catalog

    data = catalog.connect(traces)
    if data.origin == "the bundled traces":
        note("reading the bundled traces: no store of your own yet (tauscope import LOG makes one)")
    for line in data.recovered:
        note(line)
    for damage in data.damaged:
        note(damage.text)
    data.strict = True
    return data
