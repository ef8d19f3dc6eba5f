"""A store on disk: commit logs to it, list them, keep the raw bytes, tidy up.

A store is a folder of Parquet files. One small file in `runs/` for each log names
every other file that belongs to it, so replacing that one file is the commit: a
reader sees the old state or the new one, never a half.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import filelock
import polars as pl
import pyarrow as pa

from tauscope import __version__, damage, schema
from tauscope.errors import Problem

ROOMS = ("runs", "requests", "cycles", "refused", "raw")
# A reader that resolved a file before it was replaced may still want to open it.
ORPHAN_AGE_S = 15 * 60


@dataclass(frozen=True, slots=True)
class Damage:
    """A log that is left out of every answer, and why."""

    store: Path
    log_id: str
    text: str


class Unreadable(Problem):
    """Logs turned out to be damaged while a question was answered; asked again, `read`
    leaves them out."""

    def __init__(self, found: Sequence[Damage]) -> None:
        super().__init__("; ".join(log.text for log in found))


@dataclass(slots=True)
class Contents:
    """What can be read of some stores: run rows (schema RUNS plus `store`) and what can't."""

    runs: pl.DataFrame
    damaged: list[Damage] = field(default_factory=list)

    def files(self, column: str) -> list[str]:
        """Absolute paths that the run rows name in `column`, each once, in order."""
        pairs = (
            self.runs.select("store", column)
            .explode(column)
            .drop_nulls()
            .unique(maintain_order=True)
        )
        return [str(Path(store) / name) for store, name in pairs.iter_rows()]


@contextlib.contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold the store's write lock; commits are short, so waiting is the right thing.

    Whoever changes what is there reads it under the same lock, so it may be taken again
    by a thread that holds it.
    """
    root.mkdir(parents=True, exist_ok=True)
    try:
        # One object a path is what makes it reentrant.
        lock = filelock.FileLock(root.resolve() / ".lock", timeout=120, is_singleton=True)
        with lock:
            yield
    except filelock.Timeout:
        raise Problem(
            f"{root}: another command has held the store for two minutes; try again when it is done"
        ) from None


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """Write `frame` under its final name in one step; a kill leaves only a dot file."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.write_parquet(part, compression="zstd", statistics=True)
        with part.open("rb+") as handle:
            os.fsync(handle.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@cache
def _writer() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="tauscope-writer")


def settle() -> None:
    """Wait until every part that was handed over is on the disk, or failed to get there."""
    _writer().submit(int).result()


class LogWriter:
    """Collects the rows of one log and commits them together.

    Parts of `cycles` and `refused` are written as they come, so memory doesn't grow
    with the log; nothing shows until `commit`. `generation` tells this version of the
    log's rows from an older one of the same log.
    """

    def __init__(self, root: Path, log_id: str, generation: str) -> None:
        self.root = root
        self.log_id = log_id
        self.generation = generation
        self._parts: dict[str, list[str]] = {"cycles": [], "refused": [], "requests": []}
        self._next: dict[str, int] = {"cycles": 0, "refused": 0, "requests": 0}
        self._writing: Future[None] | None = None

    def add(self, table: schema.Table, frame: pl.DataFrame) -> None:
        """Write one part of `table` (cycles or refused); an empty frame writes nothing.

        The part is written while the caller goes on; one at a time, so memory stays bounded.
        What fails is raised by the next call.
        """
        if frame.is_empty():
            return
        self._settle()
        name = self.name_of(table)
        self._writing = _writer().submit(
            write_parquet, schema.conform(frame, table), self.root / name
        )
        self._parts[table.name].append(name)

    def _settle(self) -> None:
        """Wait for the part that is being written."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            writing.result()

    def name_of(self, table: schema.Table) -> str:
        """A name that no part of `table` has had yet, relative to the store."""
        number = self._next[table.name]
        self._next[table.name] += 1
        return f"{table.name}/{self.log_id}.{self.generation}-{number:05d}.parquet"

    def parts(self, table: schema.Table) -> list[str]:
        """Names of the parts of `table` that the next commit names, in order."""
        self._settle()
        return list(self._parts[table.name])

    def replace(self, table: schema.Table, old: Sequence[str], new: str) -> None:
        """Let the next commit name `new` in place of neighbouring parts `old`."""
        parts = self._parts[table.name]
        at = parts.index(old[0])
        parts[at : at + len(old)] = [new]

    def commit(
        self,
        runs: pl.DataFrame,
        requests: pl.DataFrame,
    ) -> None:
        """Make the rows visible in one step. `runs` and `requests` hold the whole log's rows.

        May be called again as a log grows: each call names all parts added so far.
        """
        self._parts["requests"] = []
        self.add(schema.REQUESTS, requests)
        self._settle()
        rows = schema.conform(runs, schema.RUNS).with_columns(
            pl.lit(self._parts["cycles"], dtype=pl.List(pl.String)).alias("cycle_files"),
            pl.lit(self._parts["requests"], dtype=pl.List(pl.String)).alias("request_files"),
            pl.lit(self._parts["refused"], dtype=pl.List(pl.String)).alias("refused_files"),
            pl.lit(__version__).alias("version"),
            pl.lit(schema.SCHEMA_VERSION, dtype=pl.Int32).alias("schema_version"),
        )
        _put_runs(self.root, self.log_id, rows)


def _put_runs(root: Path, log_id: str, rows: pl.DataFrame) -> None:
    """Replace a log's runs file: the commit. What it no longer names starts to age."""
    path = root / "runs" / f"{log_id}.parquet"
    with locked(root):
        before: set[str] = set()
        with contextlib.suppress(pl.exceptions.PolarsError, OSError):
            before = _named([path])
        write_parquet(rows, path)
        for name in before - _names(rows):
            # A store that was damaged or made elsewhere may name anything.
            with contextlib.suppress(OSError):
                os.utime(damage.inside(root, name))


def read(roots: Sequence[Path]) -> Contents:
    """Run rows of `roots`, with `store` and absolute checks of every file they name.

    A log whose files are damaged is left out whole: half of a run's cycles would give
    a wrong number, not a smaller one. The same log in two stores counts once, the
    longer copy, under whatever names it was imported there.
    """
    frames: list[pl.DataFrame] = []
    damaged: list[Damage] = []
    for root in roots:
        for path in sorted((root / "runs").glob("*.parquet")):
            rows, why = _read_log(root, path)
            if why:
                damaged.append(Damage(root, path.stem, why))
            elif rows is not None:
                frames.append(rows)
    if not frames:
        empty = schema.empty(schema.RUNS).with_columns(pl.lit("").alias("store"))
        return Contents(empty, damaged)
    runs = pl.concat(frames)
    longest = (
        runs.group_by("log_id", "store", maintain_order=True)
        .agg(pl.col("raw_bytes").max().fill_null(0))
        .sort("raw_bytes", descending=True, maintain_order=True)
        .unique("log_id", keep="first", maintain_order=True)
        .select("log_id", "store")
    )
    runs = runs.join(longest, on=["log_id", "store"], how="semi", maintain_order="left")
    if len(roots) > 1:
        from tauscope.ingest import twins

        short = twins.shorter_twins(runs)
        runs = runs.join(short, on=["log_id", "store"], how="anti", maintain_order="left")
    return Contents(runs, damaged)


def _read_log(root: Path, path: Path) -> tuple[pl.DataFrame | None, str]:
    """The rows of one runs file, or the reason why they can't be used."""
    about: Path = path
    try:
        rows = read_runs(root, path.stem)
        if (rows["schema_version"].max() or 0) > schema.SCHEMA_VERSION:
            return None, f"{path}: written by a newer tauscope; left out until you upgrade"
        for column, table in _NAMED:
            for name in rows[column].explode().drop_nulls().unique(maintain_order=True):
                about = root / name
                damage.check_types(damage.inside(root, name), table)
                if (known := damage.UNREADABLE.get(damage.mark(about))) is not None:
                    raise OSError(known)
    except FileNotFoundError as error:
        if about == path and not path.is_symlink():
            return None, ""  # replaced by a writer between the listing and the reading
        return None, f"{about}: damaged ({damage.first_line(error)}); {_remedy(root, path.stem)}"
    except (pl.exceptions.PolarsError, pa.ArrowException, OSError, ValueError) as error:
        return None, f"{about}: damaged ({damage.first_line(error)}); {_remedy(root, path.stem)}"
    return rows.with_columns(pl.lit(str(root)).alias("store")), ""


def read_runs(root: Path, log_id: str) -> pl.DataFrame:
    """The run rows of one log, whatever became of the files that they name.

    Raises OSError or polars' errors when they can't be read or point outside the store.
    """
    # A pipe of that name would be waited for.
    path = damage.inside(root, f"runs/{log_id}.parquet")
    # Polars opens a path more than once, and a writer may replace the file in between.
    rows = schema.conform(pl.read_parquet(io.BytesIO(path.read_bytes())), schema.RUNS)
    # What a file says of itself names others: it may only be what its own name says.
    if set(rows["log_id"]) - {log_id}:
        raise OSError("it names another log than its own name does")
    if rows["run_id"].n_unique() < rows.height:
        raise OSError("it names a run twice")
    for name in rows["raw_file"].drop_nulls().unique():
        damage.inside(root, name, must_exist=False)
    return rows


_NAMED = (
    ("cycle_files", schema.CYCLES),
    ("request_files", schema.REQUESTS),
    ("refused_files", schema.REFUSED),
)


_NAMING = [column for column, _ in _NAMED]


def unreadable(runs: pl.DataFrame) -> list[Damage]:
    """Read every file of `runs` (rows of Contents.runs) in full; the logs whose can't be.

    Opening a store reads footers alone. This takes as long as reading all of it, so it is
    for when a query has failed. From then on `read` leaves those logs out.
    """
    found = []
    for root_text, log_id in runs.select("store", "log_id").unique(maintain_order=True).rows():
        root = Path(root_text)
        own = runs.filter((pl.col("store") == root_text) & (pl.col("log_id") == log_id))
        for column, table in _NAMED:
            for name in own[column].explode().drop_nulls().unique(maintain_order=True):
                if error := damage.broken(root / name, table):
                    text = f"{root / name}: damaged ({error}); {_remedy(root, log_id)}"
                    found.append(Damage(root, log_id, text))
    return list({(log.store, log.log_id): log for log in found}.values())


def _remedy(root: Path, log_id: str) -> str:
    raw = root / "raw" / f"{log_id}.log.zst"
    if raw.exists():
        return f"log {log_id} is left out; run: tauscope import {raw}"
    return f"log {log_id} is left out; import or make it again"


def forget(root: Path, log_id: str) -> None:
    """Take a log's rows out of the store; its raw bytes stay."""
    with locked(root):
        (root / "runs" / f"{log_id}.parquet").unlink(missing_ok=True)


def relabel(root: Path, log_id: str, labels: pl.DataFrame, requests: pl.DataFrame) -> None:
    """Replace a log's run rows and request rows; cycles are not touched.

    `labels` and `requests` are the whole log's rows of schema RUNS and REQUESTS.
    """
    name = f"requests/{log_id}.{_stamp()}.parquet"
    write_parquet(schema.conform(requests, schema.REQUESTS), root / name)
    rows = schema.conform(labels, schema.RUNS).with_columns(
        pl.lit([name], dtype=pl.List(pl.String)).alias("request_files")
    )
    _put_runs(root, log_id, rows)
    collect_orphans(root)


def _stamp() -> str:
    return f"{time.time_ns():x}"


def collect_orphans(root: Path, age_s: float = ORPHAN_AGE_S) -> list[Path]:
    """Remove table files that no runs file names any more and that are old enough."""
    now = time.time()
    with locked(root):
        listed = sorted((root / "runs").glob("*.parquet"))
        try:
            named = _named(listed)
        except (pl.exceptions.PolarsError, OSError):
            return []  # something is damaged: removing files now could lose the remedy
        gone = [
            path
            for room in ("requests", "cycles", "refused")
            for path in (root / room).glob("*.parquet")
            if f"{room}/{path.name}" not in named and now - path.stat().st_mtime > age_s
        ]
        gone += [
            path
            for room in ROOMS
            for path in (root / room).glob(".*.part")
            if now - path.stat().st_mtime > age_s
        ]
        for path in gone:
            path.unlink(missing_ok=True)
    return gone


def _named(listed: Iterable[Path]) -> set[str]:
    """Names of files in runs files; called under the lock, so none is replaced meanwhile."""
    names: set[str] = set()
    for path in listed:
        names |= _names(pl.read_parquet(path, columns=_NAMING, glob=False))
    return names


def _names(rows: pl.DataFrame) -> set[str]:
    return {name for column in _NAMING for name in rows[column].explode().drop_nulls()}
