"""The raw lines of a kept log behind a row."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import zstandard

from tauscope import catalog
from tauscope.errors import Problem
from tauscope.record.journal import kept_blocks


def behind(data: catalog.Catalog, row: str) -> pl.DataFrame:
    """Lines of the raw log that gave the cycle RUN:CYCLE: columns line, text.

    Raises Problem for a row that isn't there, that no line gave (an unlogged cycle), or
    whose run has no raw log (a simulated one).
    """
    run, sign, cycle = row.rpartition(":")
    if not sign or not cycle.isdigit():
        raise Problem(f"{row}: name a cycle as RUN:CYCLE, as in 3f2a9c41d07b-0:17", code=2)
    found = data.query(
        "SELECT COALESCE(first_line, line) AS first, COALESCE(last_line, line) AS last "
        "FROM cycles WHERE run_id = $run AND cycle = $cycle",
        run=run,
        cycle=int(cycle),
    )
    if found.is_empty():
        raise Problem(f"{row}: no such cycle; tauscope runs lists the runs and their cycles")
    first, last = found.row(0)
    if first is None:
        raise Problem(f"{row}: no line gave this row; it was recovered from the token count")
    where = data.runs.filter(pl.col("run_id") == run).select("store", "raw_file").row(0)
    if where[1] is None:
        raise Problem(f"{row}: the run was simulated; there is no log behind it")
    return read_lines(Path(where[0]), where[1], first, last)


def read_lines(root: Path, name: str, first: int, last: int) -> pl.DataFrame:
    """Lines `first` to `last` (from 1) of the kept log `name` of a store: columns line, text.

    Raises Problem when the kept log is missing or broken.
    """
    raw = root / name
    picked: list[bytes] = []
    passed, rest = 0, b""
    try:
        for block in kept_blocks(root, name):
            ends = block.count(b"\n")
            if passed + ends < first - 1:
                tail = block.rfind(b"\n")
                rest = block[tail + 1 :] if ends else rest + block
                passed += ends
                continue
            lines = (rest + block).split(b"\n")
            rest = lines.pop()
            picked += lines[max(first - 1 - passed, 0) : last - passed]
            passed += len(lines)
            if passed >= last:
                break
        if passed < last and rest:
            picked.append(rest)
    except FileNotFoundError:
        raise Problem(f"{raw}: the kept log is missing; import the log again") from None
    except (OSError, zstandard.ZstdError) as error:
        raise Problem(f"{raw}: the kept log is broken ({error}); import the log again") from None
    text = [line.decode("utf-8", "replace").rstrip("\r") for line in picked]
    return pl.DataFrame(
        {"line": range(first, first + len(text)), "text": text},
        schema={"line": pl.Int64, "text": pl.String},
    )
