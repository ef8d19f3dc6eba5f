"""The rows of a query in the form that was asked for."""

from __future__ import annotations

import io
import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from tauscope.cli import output
from tauscope.errors import Problem

if TYPE_CHECKING:
    import polars as pl


# What Markdown, HTML or a forge's mentions act on within a line.
_ACTIVE = frozenset("\\`*[]<>|~&@#")


class Format(StrEnum):
    """What `tauscope sql --format` takes."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    MARKDOWN = "markdown"


def deliver(rows: pl.DataFrame, form: Format, path: Path | None) -> None:
    """Write `rows` to `path`, or to standard output. Raises Problem when that can't be done."""
    if path is None and form is Format.TABLE:
        output.show_frame(rows)
        return
    if path is None and form is Format.PARQUET and sys.stdout.isatty():
        raise Problem("sql: Parquet is nothing to read; name a file with -o, or use a pipe", code=2)
    content = _ENCODERS[form](rows)
    if path is not None:
        from tauscope import files

        files.write_whole(path, content)
        return
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _table(rows: pl.DataFrame) -> bytes:
    from rich.console import Console

    text = io.StringIO()
    console = Console(file=text, width=output.PIPED, highlight=False, markup=False, emoji=False)
    console.print(output.frame_table(rows), crop=False)
    return text.getvalue().encode()


def _csv(rows: pl.DataFrame) -> bytes:
    """Comma-separated, a header first; lists and structs as JSON in their field."""
    import polars as pl

    nested = [
        pl.Series(name, [_packed(v) for v in rows[name].to_list()], dtype=pl.String)
        for name, kind in rows.schema.items()
        if kind.is_nested()
    ]
    return rows.with_columns(nested).write_csv().encode()


def _packed(value: object) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _parquet(rows: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    rows.write_parquet(content, compression="zstd")
    return content.getvalue()


def _markdown(rows: pl.DataFrame) -> bytes:
    """A pipe table; what Markdown or HTML would act on stands as an entity."""
    rule = ["---:" if kind.is_numeric() else "---" for kind in rows.dtypes]
    lines = [[_text(name) for name in rows.columns], rule]
    lines += [[_text(output.cell(value)) for value in row] for row in rows.iter_rows()]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines).encode()


def _text(value: str) -> str:
    line = output.clean(value.replace("\n", "⏎").replace("\t", " "))
    return "".join(f"&#{ord(c)};" if c in _ACTIVE else c for c in line)


_ENCODERS = {
    Format.TABLE: _table,
    Format.JSON: lambda rows: output.as_json(rows).encode(),
    Format.CSV: _csv,
    Format.PARQUET: _parquet,
    Format.MARKDOWN: _markdown,
}
