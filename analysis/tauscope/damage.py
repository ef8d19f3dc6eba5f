"""Files that can't be what they say: cut, of wrong types, damaged inside, outside the store."""

from __future__ import annotations

import functools
from pathlib import Path

import polars as pl
import pyarrow as pa
from pyarrow import parquet

from tauscope import schema

# Columns of cycles that count something.
COUNTS = frozenset(
    c.name for c in schema.CYCLES.columns if c.type == "INTEGER" and c.unit in ("tokens", "passes")
)
# Files with a sound footer whose pages turned out to be damaged, in this process.
UNREADABLE: dict[tuple[str, int, int], str] = {}


def mark(path: Path) -> tuple[str, int, int]:
    """What tells one state of a file from another."""
    state = path.stat()
    return str(path), state.st_mtime_ns, state.st_size


def broken(path: Path, table: schema.Table) -> str:
    """What keeps a file from being read in full; empty where nothing does."""
    seen = None
    try:
        seen = mark(path)
        schema.conform(pl.read_parquet(path, glob=False), table)
    except (pl.exceptions.PolarsError, OSError) as error:
        text = first_line(error)
    except BaseException as error:
        # Polars' own panics are no Exceptions.
        if type(error).__name__ != "PanicException":
            raise
        text = first_line(error)
    else:
        return ""
    if seen is not None:
        UNREADABLE[seen] = text
    return text


def check_types(path: Path, table: schema.Table) -> None:
    """Raises OSError where a column is of a kind that can't be what its name says."""
    # Polars' own reader of footers would take * and [ in a path for a pattern.
    wanted = _kinds(table)
    footer = parquet.read_metadata(path)
    for column in footer.schema.to_arrow_schema():
        kind = _kind(column.type)
        if column.name in wanted and kind not in ("null", wanted[column.name]):
            raise OSError(f"column {column.name} is {column.type}")
    if table is schema.CYCLES:
        _check_counts(footer)


def _check_counts(footer: parquet.FileMetaData) -> None:
    """Raises OSError where the footer's statistics tell of a negative count: the importer
    refuses such rows, but a store may come from anyone."""
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for number in range(row_group.num_columns):
            column = row_group.column(number)
            found = column.statistics if column.path_in_schema in COUNTS else None
            if found is not None and found.has_min_max and found.min < 0:
                raise OSError(f"column {column.path_in_schema} holds {found.min}")


@functools.cache
def _kinds(table: schema.Table) -> dict[str, str]:
    return {f.name: _kind(f.type) for f in schema.empty(table).to_arrow().schema}


def _kind(kind: pa.DataType) -> str:
    """A word for types that are cast into each other without harm."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"[{_kind(kind.value_type)}]"
    if pa.types.is_struct(kind):
        return f"{{{', '.join(f'{field.name} {_kind(field.type)}' for field in kind)}}}"
    return str(kind)


def inside(root: Path, name: str, must_exist: bool = True) -> Path:
    """`name` under `root`; a store from a stranger may not point outside itself."""
    path = (root / name).resolve()
    if not path.is_relative_to(root.resolve()):
        raise OSError(f"{name} is outside the store")
    if path.exists() or must_exist:
        if not path.exists():
            raise FileNotFoundError(f"{name} is not there")
        if not path.is_file():
            raise OSError(f"{name} is no file")
    return path


def first_line(error: BaseException) -> str:
    """Why, in few words."""
    return str(error).splitlines()[0][:160] if str(error) else type(error).__name__
