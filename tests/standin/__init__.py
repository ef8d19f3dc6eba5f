"""A stand-in engine for tests of recording: built once, run by a recorder, waited for."""

from __future__ import annotations

import atexit
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from logs import ALL, FOLD, MISS, REJECT, SPEED, START
from native_build import build

from tauscope import schema
from tauscope.ingest import importer, source
from tauscope.record.journal import HEAD

HERE = Path(__file__).resolve().parent
# A line that is a cycle by itself, whole to its end: independent of the parser.
CYCLE = re.compile(rb"ds4: mtp (?:spec miss first draft=\d+|timing [a-z-]+ [^\r\n]*total=[\d.]+ ms"
                   rb"(?: noreplay=1)?)")  # fmt: skip


@functools.cache
def engine() -> str:
    """Path of the stand-in engine; skips the test where there is no C compiler."""
    folder = tempfile.mkdtemp(prefix="standin-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return str(build(HERE / "engine.c", Path(folder) / "engine", "-O2"))


def wait_for(condition: Callable[[], Any], seconds: float = 120) -> Any:
    """What `condition` gives as soon as it is true; fails when that takes too long."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)
    return found


def log_of(cycles: int) -> bytes:
    """A legacy log of so many cycles, one line each, between start-up and speed lines."""
    round_ = (MISS + ALL + FOLD + REJECT + ALL) * (cycles // 5 + 1)
    lines = round_.splitlines(keepends=True)[:cycles]
    return (START + "".join(lines) + SPEED).encode()


def cycle_lines(log: bytes) -> list[int]:
    """Numbers of the lines of `log` that are cycles; a cut last line counts when it is whole."""
    return [n for n, line in enumerate(log.split(b"\n"), 1) if CYCLE.fullmatch(line)]


def recorder(
    store: Path,
    *command: object,
    commit_s: float = 0.05,
    roll_bytes: int = 1 << 20,
    fan_in: int = 4,
    **options: Any,
) -> subprocess.Popen[bytes]:
    """A hurried recorder (standin/recorder.py) in a process of its own, in its own session."""
    words = [store, commit_s, roll_bytes, fan_in, *command]
    return subprocess.Popen(
        [sys.executable, str(HERE / "recorder.py"), *map(str, words)],
        start_new_session=True,
        **{"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL,
           "stderr": subprocess.DEVNULL} | options,
    )  # fmt: skip


def tauscope(*words: object, **options: Any) -> subprocess.Popen[bytes]:
    """The command line, in a process of its own, in its own session."""
    return subprocess.Popen(
        [sys.executable, "-c", "from tauscope.cli import main; main()", *map(str, words)],
        start_new_session=True,
        **{"stdin": subprocess.DEVNULL} | options,
    )


def journal(store: Path) -> Path | None:
    """The journal of the one recording that goes on in `store`, when there is one."""
    found = sorted((store / "raw").glob("*.log"))
    return found[0] if found else None


def journal_size(store: Path) -> int:
    """Bytes that the engine wrote to the journal so far."""
    path = journal(store)
    try:
        return max(0, path.stat().st_size - len(HEAD)) if path else 0
    except FileNotFoundError:
        return 0


def imported(log: Path, root: Path, **given: Any) -> dict[str, pl.DataFrame]:
    """What an import of `log` into a store of its own gives, as `rows`."""
    importer.import_log(source.Log(log.name, (log,)), root, **given)
    return rows(root)


def rows(root: Path) -> dict[str, pl.DataFrame]:
    """Every row of the one log of a store, without its names for the log and the time."""
    (path,) = (root / "runs").glob("*.parquet")
    runs, requests = importer.read_rows(root, path.stem)
    tables = {"runs": runs.drop("raw_file"), "requests": requests}
    for table, column in ((schema.CYCLES, "cycle_files"), (schema.REFUSED, "refused_files")):
        names = runs[column].explode().drop_nulls().unique(maintain_order=True)
        frames = [pl.read_parquet(root / name, glob=False) for name in names]
        tables[table.name] = pl.concat([schema.empty(table), *frames])
    own = ("log_id", "source", "source_kind", "state", "t_ms", "cycle_files", "request_files",
           "refused_files")  # fmt: skip
    return {
        name: frame.drop(own, strict=False).with_columns(
            pl.col("run_id").str.strip_prefix(path.stem)
        )
        for name, frame in tables.items()
    }


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
