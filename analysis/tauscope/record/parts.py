"""Many small Parquet parts, one a second, merged into few large ones in constant memory."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from tauscope import schema, store

# So many parts of one size become one of the next; a part with so many rows stays as it is,
# so that a merge never holds twice as many.
FAN_IN = 32
SEALED = 200_000
# Rows waiting for the next commit; more are written out before it.
WAITING = 200_000


@dataclass(slots=True)
class _Part:
    """One file: how many rows, and how many times they were merged."""

    name: str
    rows: int
    level: int


class Parts:
    """Stands before a LogWriter: gathers rows for the next commit, and merges parts after it."""

    def __init__(self, writer: store.LogWriter) -> None:
        self._writer = writer
        self._waiting: dict[str, list[pl.DataFrame]] = {"cycles": [], "refused": []}
        self._parts: dict[str, list[_Part]] = {"cycles": [], "refused": []}

    def add(self, table: schema.Table, frame: pl.DataFrame) -> None:
        """Take rows of `table`; they are written at the next `flush`, or when they are many."""
        if frame.is_empty():
            return
        waiting = self._waiting[table.name]
        waiting.append(frame)
        if sum(part.height for part in waiting) >= WAITING:
            self._write(table)

    def flush(self) -> None:
        """Write what waits."""
        for table in (schema.CYCLES, schema.REFUSED):
            self._write(table)

    def _write(self, table: schema.Table) -> None:
        waiting = self._waiting[table.name]
        if not waiting:
            return
        frame = pl.concat(waiting)
        self._writer.add(table, frame)
        self._waiting[table.name] = []
        parts = self._parts[table.name]
        parts.append(_Part(self._writer.parts(table)[-1], frame.height, 0))

    def settle(self, *, last: bool = False) -> bool:
        """Merge parts of one size that have become many, at the end all that are small.

        The merged files are named by the next commit; True when there are any.
        """
        merged = False
        for table in (schema.CYCLES, schema.REFUSED):
            while group := self._mergeable(self._parts[table.name], last):
                self._merge(table, group)
                merged = True
        return merged

    @staticmethod
    def _mergeable(parts: list[_Part], last: bool) -> list[_Part]:
        """A stretch of neighbours to make one of: FAN_IN of a level, at the end any two."""
        run: list[_Part] = []
        for part in parts:
            open_ = part.rows < SEALED
            if run and not (open_ and (last or part.level == run[0].level)):
                if last and len(run) > 1:
                    return run
                run = []
            if open_:
                run.append(part)
            full = sum(p.rows for p in run) >= SEALED
            if len(run) > 1 and (full or (len(run) == FAN_IN and not last)):
                return run
        return run if last and len(run) > 1 else []

    def _merge(self, table: schema.Table, group: list[_Part]) -> None:
        names = [part.name for part in group]
        target = self._writer.name_of(table)
        root = self._writer.root
        frames = [pl.read_parquet(root / name, glob=False) for name in names]
        store.write_parquet(pl.concat(frames), root / target)
        self._writer.replace(table, names, target)
        parts = self._parts[table.name]
        at = parts.index(group[0])
        rows = sum(part.rows for part in group)
        parts[at : at + len(group)] = [_Part(target, rows, group[0].level + 1)]
