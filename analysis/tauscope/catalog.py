"""One way to ask: an in-memory DuckDB with views and macros over stores.

Nothing is locked, and only the rows of runs are copied: a file in `runs/` is replaced while a
log grows, so it is read once, and the files that it named then are what is asked. The other
views read the stores' Parquet files. The connection can read those files and no others, and
can write none, so SQL from anyone may run on it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from tauscope import comments, damage, places, schema, store
from tauscope.errors import Problem
from tauscope.record import marker
from tauscope.texts import filled, sql_text

# Columns by which rows may be picked and grouped: what is known of a run or a request.
DIMENSIONS = (
    "workload", "arm", "simulated", "machine", "model", "experiment", "prompt_id",
    "run_id", "request_id", "log_id", "source", "drafter", "draft_depth",
)  # fmt: skip
# Keys of a `where` for conditions as SQL: on columns of runs and requests, or of cycles too.
SQL, CYCLE_SQL = "sql", "cycle_sql"
_ROWS = {
    "request_rows": (schema.REQUESTS, "request_files"),
    "cycle_rows": (schema.CYCLES, "cycle_files"),
    "refused_rows": (schema.REFUSED, "refused_files"),
}
# Errors that the question alone can be blamed for.
_OF_THE_TEXT = (
    duckdb.ParserException, duckdb.SyntaxException, duckdb.BinderException,
    duckdb.CatalogException, duckdb.PermissionException,
)  # fmt: skip
SPILL = "tauscope-spill-"
# Characters of an error of DuckDB that are shown: it may quote a whole query.
LONGEST = 400
# Intervals and unions have no Polars type; infinite dates and huge integers no value in one.
_FOREIGN = re.compile(r"INTERVAL|UNION|TIMESTAMP|DATE\b|UHUGEINT|BIGNUM|VARINT|\bBIT\b")
_INEXACT = (pl.Decimal, pl.Int128)


class Catalog:
    """Stores, opened for questions. `damaged` lists what had to be left out, and why;
    `recovered` the recordings that had been cut short and were brought to their ends.

    `stores` are absolute paths; `origin` says in words where the choice came from.
    """

    def __init__(self, stores: Sequence[Path], origin: str = "--traces") -> None:
        # What a killed recorder left is committed before anyone asks.
        self.recovered = _mended(stores)
        self.stores = list(stores)
        self.origin = origin
        # Raise store.Unreadable when a log turns out to be damaged after answers were given
        # with it, so that the whole command can be run again without it.
        self.strict = False
        _sweep()
        self._spill = tempfile.mkdtemp(prefix=f"{SPILL}{os.getpid()}-")
        weakref.finalize(self, shutil.rmtree, self._spill, ignore_errors=True)
        self._open()

    def _open(self) -> None:
        contents = store.read(self.stores)
        self.damaged = contents.damaged
        self.runs = contents.runs
        files = {name: contents.files(name) for _, name in _ROWS.values()}
        # A bad UTF-8 label must not stop a reader: text columns are checked at import.
        self.con = duckdb.connect(":memory:", config={"autoload_known_extensions": False})
        every = [path for paths in files.values() for path in paths]
        # A pattern is checked as it is written, then each file that it means.
        self.con.execute("SET allowed_paths = $paths", {"paths": [*every, *map(_literally, every)]})
        # A query too big for memory spills there, not into the caller's folder. DuckDB lets SQL
        # read the folder, so it is a fresh one that holds nothing of anybody else's.
        self.con.execute("SET temp_directory = $spill", {"spill": self._spill})
        self.con.execute("SET enable_external_access = false")
        self._hold_runs()
        for view, (table, column) in _ROWS.items():
            self.con.execute(self._view(view, table, files[column]))
        self.con.execute(sql_text("macros"))
        self.con.execute(_views())
        comments.put(self.con)
        self.con.execute("SET lock_configuration = true")

    def _hold_runs(self) -> None:
        columns = ", ".join(f'"{c.name}"::{c.type} AS "{c.name}"' for c in schema.RUNS.columns)
        self.con.register("held", self.runs.drop("store").to_arrow())
        self.con.execute(f"CREATE TABLE run_rows AS SELECT {columns} FROM held")
        self.con.unregister("held")

    def _view(self, view: str, table: schema.Table, files: list[str]) -> str:
        """CREATE VIEW over `files`, cast to the schema; columns no file has are NULL."""
        if not files:
            columns = ", ".join(f'NULL::{c.type} AS "{c.name}"' for c in table.columns)
            return f"CREATE VIEW {view} AS SELECT {columns} WHERE FALSE"
        listed = ", ".join(comments.literal(_literally(path)) for path in files)
        source = f"read_parquet([{listed}], union_by_name = true)"
        have = {row[0] for row in self.con.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
        columns = ", ".join(
            (f'"{c.name}"' if c.name in have else "NULL") + f'::{c.type} AS "{c.name}"'
            for c in table.columns
        )
        return f"CREATE VIEW {view} AS SELECT {columns} FROM {source}"

    def query(self, text_or_name: str, **params: Any) -> pl.DataFrame:
        """The rows of a named query (a file of sql/) or of SQL text, values bound from `params`.

        Decimals come back as floats. Raises Problem with DuckDB's own words.
        """
        named = re.fullmatch(r"[a-z_]+", text_or_name) is not None
        text = sql_text(text_or_name) if named else text_or_name
        return self.run(text, text_or_name if named else "sql", params)

    def run(self, text: str, name: str, params: Mapping[str, Any]) -> pl.DataFrame:
        """Like `query`, for text that was put together; `name` stands before an error."""
        try:
            frame = self._answer(text, params)
        except _OF_THE_TEXT as error:
            raise _problem(name, error) from error
        except duckdb.Error as error:
            # Perhaps not the question but a file is at fault; that takes a while to find out.
            found = store.unreadable(self.runs)
            if not found:
                raise _problem(name, error) from error
            if self.strict:
                raise store.Unreadable(found) from error
            self._open()
            return self.run(text, name, params)
        decimals = [c for c, t in frame.schema.items() if t.base_type() in _INEXACT]
        return frame.with_columns(pl.col(decimals).cast(pl.Float64)) if decimals else frame

    def _answer(self, text: str, params: Mapping[str, Any]) -> pl.DataFrame:
        try:
            return _held(self.con.sql(text, params=dict(params) or None)).pl()
        except (pl.exceptions.PolarsError, pa.ArrowException, OverflowError, ValueError) as error:
            raise _not_held(error) from error
        except BaseException as error:
            # Polars' own panics are no Exceptions.
            if type(error).__name__ != "PanicException":
                raise
            raise _not_held(error) from error

    def condition(self, text: str) -> str:
        """SQL or CYCLE_SQL: the key for `text` in a `where`, by the columns that it names.

        Raises Problem when it is no condition, or names a column that is nowhere.
        """
        try:
            statements = duckdb.extract_statements(f"SELECT 1 WHERE (\n{text}\n)")
            if [s.type for s in statements] != [duckdb.StatementType.SELECT]:
                raise Problem("--where: give one condition, as in workload = 'code'")
            try:
                self.con.execute(f"EXPLAIN SELECT 1 FROM asked_rows WHERE (\n{text}\n)")
            except duckdb.BinderException:
                self.con.execute(f"EXPLAIN SELECT 1 FROM cycles_asked_rows WHERE (\n{text}\n)")
                return CYCLE_SQL
        except duckdb.Error as error:
            raise _problem("--where", error) from error
        return SQL

    def ask(self, text: str) -> pl.DataFrame:
        """The rows of one SELECT (or EXPLAIN of one) typed by a user.

        Raises Problem when the text is anything else: DuckDB's settings alone still
        let COPY and ATTACH write inside the store.
        """
        try:
            statements = duckdb.extract_statements(text)
        except duckdb.Error as error:
            raise _problem("sql", error) from error
        if len(statements) != 1:
            raise Problem(f"sql: {len(statements)} statements; give exactly one SELECT")
        # An EXPLAIN ANALYZE runs what it explains, so that is looked at by itself; and no other
        # text is run than the one that was looked at.
        plan = re.fullmatch(r"(?is)\s*explain(\s+analyze)?\s+(.*)", text)
        body = plan[2] if plan else text
        try:
            kinds = [s.type for s in duckdb.extract_statements(body)]
        except duckdb.Error:
            kinds = []
        if kinds != [duckdb.StatementType.SELECT]:
            raise Problem("sql: only a SELECT may run here; the traces are read, never written")
        prefix = f"EXPLAIN {'ANALYZE ' if plan[1] else ''}" if plan else ""
        return self.run(prefix + body, "sql", {})


def _views() -> str:
    """The text of views.sql: which columns of a run stand aside for those of a request."""
    requests = [c.name for c in schema.REQUESTS.columns]
    runs = [c.name for c in schema.RUNS.columns]
    cycles = [c.name for c in schema.CYCLES.columns]
    labels = {"run_id", "workload", "arm", "prompt_id"}
    asked = {*requests, *labels, *(name for name in runs if name not in cycles)}
    parts = {
        # What a run says of all of its cycles gives way to what each says of itself.
        "of_requests": ", ".join(n for n in runs if n in {*labels, *requests, *cycles}),
        "of_cycles": ", ".join(name for name in cycles if name in asked),
        "request_sums": request_sums(),
        "drift": filled("drift", {"where": "TRUE"}),
    }
    return filled("views", parts)


def request_sums(also: Sequence[str] = (), condition: str = "") -> str:
    """A SELECT of request_sums; `also` splits them by columns of cycles_asked_rows.

    With either, only what cycles say is left: a request's own times and tokens are those of
    all its cycles.
    """
    chosen = f"(SELECT * FROM cycles_asked_rows WHERE {condition or 'TRUE'})"
    split = bool(also or condition)
    parts = {
        "also": "".join(f"{name}, " for name in also),
        "same": "".join(f" AND w.{name} IS NOT DISTINCT FROM s.{name}" for name in also),
        "cycles": chosen if split else "cycle_rows",
        "which": "LEFT" if split else "FULL",
    }
    text = filled("request_sums", parts)
    if not split:
        return text
    return (
        "SELECT * REPLACE (NULL::DOUBLE AS run_num, NULL::DOUBLE AS run_den, "
        "FALSE AS run_weightless, NULL::BIGINT AS generated_tokens, NULL::VARCHAR AS output_hash, "
        f"NULL::DOUBLE AS decode_ms, NULL::DOUBLE AS prefill_ms)\nFROM (\n{text}\n)"
    )


def _problem(name: str, error: Exception) -> Problem:
    text = str(error).strip() or type(error).__name__
    return Problem(f"{name}: {text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}")


def _held(rows: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """`rows` with columns as text that Polars has no type for, or not for all of its values."""
    # An EXPLAIN has no columns to change, and an empty statement no rows.
    if rows is None or not any(_FOREIGN.search(str(kind)) for kind in rows.types):
        return rows
    parts = []
    for number, (name, kind) in enumerate(zip(rows.columns, rows.types, strict=True), start=1):
        cast = "::DOUBLE" if str(kind) == "UHUGEINT" else "::VARCHAR"
        quoted = name.replace('"', '""')
        parts.append(f'#{number}{cast if _FOREIGN.search(str(kind)) else ""} AS "{quoted}"')
    return rows.project(", ".join(parts))


def _not_held(error: BaseException) -> Problem:
    return Problem(
        f"sql: a column is of a type that can't be shown ({damage.first_line(error)}); "
        "cast it to VARCHAR, BIGINT or DOUBLE"
    )


def _literally(path: str) -> str:
    """`path` as DuckDB takes it: *, ? and [ are patterns, but in brackets mean themselves."""
    return re.sub(r"([*?\[])", r"[\1]", path)


def _sweep() -> None:
    """Remove the spill folders of processes that were killed: they may hold gigabytes."""
    for left in Path(tempfile.gettempdir()).glob(f"{SPILL}*"):
        pid = left.name.removeprefix(SPILL).partition("-")[0]
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            shutil.rmtree(left, ignore_errors=True)
        except (ValueError, OSError):
            continue  # another user's, or none of ours


def _mended(stores: Sequence[Path]) -> list[str]:
    if not any(marker.pending(root) for root in stores):
        return []
    from tauscope.record import recover

    return recover.mend(stores)


def connect(traces: Sequence[str | Path] | None = None) -> Catalog:
    """Open the stores that `traces` names, or the usual ones (see places.to_read)."""
    stores, origin = places.to_read(traces)
    return Catalog(stores, origin)


def selection(
    where: Mapping[str, Any], known: Callable[[str], str] | None = None
) -> tuple[str, dict[str, Any]]:
    """A WHERE condition over DIMENSIONS and the values to bind, from {column: value}.

    A value that is a list matches any of its members, None matches NULL. Under the keys SQL and
    CYCLE_SQL stand conditions that `Catalog.condition` has seen. Raises Problem for a column
    that is no dimension, or what `known` raises for it.
    """
    known = known or dimension
    conditions, params = ["TRUE"], {}
    for number, (column, value) in enumerate(where.items()):
        if column == SQL:
            # By the keys of its requests, so that it means the same over every view.
            conditions.append(
                "(run_id, COALESCE(request_id, -1)) IN (\n"
                f"SELECT (run_id, COALESCE(request_id, -1)) FROM asked_rows WHERE (\n{value}\n))"
            )
            continue
        if column == CYCLE_SQL:
            conditions.append(f"(\n{value}\n)")
            continue
        values = value if isinstance(value, list | tuple) else [value]
        key = f"where_{number}"
        listed = f"list_contains(${key}, {known(column)}::VARCHAR)"
        params[key] = [_text(v) for v in values if v is not None]
        conditions.append(f"({listed} OR {column} IS NULL)" if None in values else listed)
    return " AND ".join(conditions), params


def _text(value: Any) -> str:
    """`value` as DuckDB writes it in a cast to text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def dimension(column: str) -> str:
    """`column` when it is one to group or pick by; else raises Problem that lists them."""
    if column not in DIMENSIONS:
        raise Problem(
            f"{column}: not a column to group or pick by; use one of {', '.join(DIMENSIONS)}"
        )
    return column
