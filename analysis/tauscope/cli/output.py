"""What commands print: tables with units, JSON, notes on standard error, text made harmless."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tauscope.cli.sheets import Sheet
from tauscope.errors import Problem

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    from rich.progress import Progress

    from tauscope.catalog import Catalog

# C0 and C1 controls, and the marks that turn the direction of all that follows.
_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
# Labels are cut at WIDEST characters; LONGEST only keeps a hostile text from filling a screen.
WIDEST, LONGEST = 60, 4000
# Width of what is no terminal: without bound, or, for frames of any shape, this.
UNBOUND, PIPED = 100_000, 240
# Heads of columns that hold labels.
LABELS = frozenset(
    ("workload", "arm", "data", "machine", "model", "experiment", "prompt_id", "drafter", "source",
     "run_id", "workload and arm", "workload and arms", "arm against off", "taken for", "goes to",
     "send to", "run")
)  # fmt: skip


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
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str | None]], keys: int = 0
) -> Sheet:
    """A table for the terminal. A column whose name begins with '>' holds numbers.

    Labels, which come from logs, are cut where they are long; nothing else is. `keys` columns
    name a row; without it the labels at the start do.
    """
    names = [column.lstrip(">") for column in columns]
    labels = [name in LABELS for name in names]
    known = keys or next((i for i, label in enumerate(labels) if not label), len(labels)) or 1
    cells = [
        [
            short("–" if text is None else text, WIDEST if label else LONGEST)
            for text, label in zip(row, labels, strict=True)
        ]
        for row in rows
    ]
    return Sheet(title, list(columns), cells, min(known, len(names)))


def show(*parts: Any, room: int | None = None) -> None:
    """Print tables or text; a pipe gets as much width as the content wants, or `room`."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True,
                          width=room or UNBOUND)  # fmt: skip
    for part in parts:
        if isinstance(part, Sheet):
            # A title or a cell wraps within the table, and no line within the terminal.
            console.print(part, soft_wrap=False, crop=False)
        else:
            console.print(part)


def show_frame(frame: pl.DataFrame, title: str = "") -> None:
    """Any frame as a table: what a query of the user's own returned."""
    show(frame_table(frame, title), room=PIPED)


def frame_table(frame: pl.DataFrame, title: str = "") -> Sheet:
    """A table of any frame, numbers to the right; as blocks where its columns don't fit."""
    right = [dtype.is_numeric() for dtype in frame.dtypes]
    columns = [(">" if r else "") + name for name, r in zip(frame.columns, right, strict=True)]
    made = table(title, columns, ([cell(value) for value in row] for row in frame.iter_rows()))
    return replace(made, blocks=True)


# What tells apart rows that name the same workload and arm.
_APART = {"simulated": "data", "machine": "machine", "model": "model", "experiment": "experiment"}


def apart(frame: pl.DataFrame, keys: Sequence[str]) -> tuple[list[str], list[str]]:
    """Columns of `frame` that tables must show beside `keys`, and their heads.

    `simulated` wherever real and simulated rows stand together; machine, model and experiment
    only where rows would look alike without them.
    """
    names = [name for name in _APART if name in frame.columns]
    wanted = [n for n in names if n == "simulated" and frame[n].n_unique() > 1]
    for name in names:
        if name not in wanted and name != "simulated":
            told = frame.select(*keys, *wanted).unique().height
            if frame.select(*keys, *wanted, name).unique().height > told:
                wanted.append(name)
    return wanted, [_APART[name] for name in wanted]


def which(row: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """The cells of `row` for the columns that `apart` wanted."""
    return [made(row[n]) if n == "simulated" else str(row[n] or "unknown") for n in names]


def made(simulated: bool | None) -> str:
    """Which kind of data a row is of."""
    return "simulated" if simulated else "real"


def title(text: str, frame: pl.DataFrame) -> str:
    """`text`, marked where all rows of `frame` are simulated."""
    whole = "simulated" in frame.columns and frame.height and frame["simulated"].all()
    return f"{text} (simulated)" if whole else text


def counted(value: Any) -> str:
    """A cell whose numbers are counts."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else cell(value)


def codes(rows: pl.DataFrame, column: str = "reasons") -> list[str]:
    """What the reasons that stand in a table as one word mean in its rows, each once."""
    from tauscope.figures import words

    said = dict.fromkeys(
        f"  {name}: {words.reasons([name], row)}"
        for row in rows.iter_rows(named=True)
        for name in row[column]
        if name in words.REASONS
    )
    return list(said)


def listed(names: Iterable[str], most: int = 4) -> str:
    """`a, b, c, d and 5 more`, each harmless and once."""
    each = [short(name) for name in dict.fromkeys(names)]
    more = f" and {len(each) - most} more" if len(each) > most else ""
    return ", ".join(each[:most]) + more


def nothing(data: Catalog, of: str = "") -> Problem:
    """The problem that a selection is empty, with what could have been selected."""
    from tauscope import metrics, schema

    there = metrics.clusters(data, ("workload", "arm"))
    if there.is_empty() and not metrics.clusters(data, ["arm"], {"arm": schema.SHADOW}).is_empty():
        return Problem(f"{of}only shadow runs are here, which measure a gate and are no arm to "
                       "compare; --where arm=shadow shows them")  # fmt: skip
    if there.is_empty():
        return Problem(f"{of}no cycle, request or speed in these traces; import a log first")
    rows = metrics.in_order(there)
    held = " and ".join(f"{name}s {listed(rows[name], 8)}" for name in ("workload", "arm"))
    return Problem(f"{of}no cycle, request or speed in this selection; there are the {held} "
                   "(tauscope runs lists all)")  # fmt: skip


def count(number: int, one: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number:,} {one}" + ("" if number == 1 else "s")


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


@contextlib.contextmanager
def cant_tell() -> Iterator[None]:
    """Let bad input exit 3: where 1 means that something was found, it must not mean that."""
    try:
        yield
    except Problem as problem:
        # One that asks for another try (a damaged log) stays what it is.
        if type(problem) is not Problem or problem.code != 1:
            raise
        raise Problem(str(problem), 3) from None


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
