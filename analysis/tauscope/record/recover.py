"""Recordings that were cut short, brought to their journals' ends by the next command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from tauscope.ingest.importer import read_rows
from tauscope.record import journal as journals
from tauscope.record import marker as markers
from tauscope.record.finish import complete, reason, tidy
from tauscope.record.marker import Marker
from tauscope.record.take import Take


def mend(roots: Sequence[Path]) -> list[str]:
    """Commit what dead recorders left in the stores `roots`; one line for each recording.

    A live recorder's recording is left to it. Where a store can't be written, that is said
    and what was committed before stays readable. Raises nothing for a broken recording.
    """
    said: list[str] = []
    for root in roots:
        if not markers.fcntl or not markers.pending(root):
            continue
        try:
            with markers.mending(root):
                for path in markers.pending(root):
                    said += _mend(root, path)
        except OSError as error:
            said.append(
                f"{root}: holds a recording that was cut short, and can't be written "
                f"({error.strerror}); make it writable to have its last cycles"
            )
    return said


def _mend(root: Path, path: Path) -> list[str]:
    """Bring one recording to its journal's present end, unless its recorder lives."""
    if markers.is_held(markers.lock_path(root, path.stem)):
        return []
    marker = markers.load(path)
    if marker is None:
        if not path.exists():
            return []
        return [f"{path}: can't be read; import raw/{path.stem}.log by hand, then remove it"]
    log = journals.path_of(root, marker.log_id)
    size = log.stat().st_size + marker.base if log.exists() else 0
    if markers.is_held(log):
        if size == marker.seen:
            return [_alive(marker, "nothing new since the last command")]
    elif not size or _is_over(root, marker, size):
        # Nothing is left to commit, only to tidy up.
        tidy(root, marker)
        return []
    notes: list[str] = []
    try:
        take = Take(root, marker)
        try:
            take.replay()
            totals = complete(take, "recovered", notes)
        finally:
            take.close()
    except Exception as error:  # one broken recording must not close the store
        return [
            f"{marker.log_id}: its recording was cut short and can't be committed "
            f"({reason(error)}); the journal is kept: {log}"
        ]
    if totals is None:
        return notes
    if markers.path_of(root, marker.log_id).exists():
        return [_alive(marker, f"{totals.cycles} cycles are committed so far")]
    end = ", which the engine had truncated" if marker.truncated else ""
    return [
        f"{marker.log_id}: its recording was cut short; recovered {totals.cycles} cycles, up to "
        f"the journal's end{end}"
    ]


def _alive(marker: Marker, what: str) -> str:
    return (
        f"{marker.log_id}: its recorder is gone but the engine (process {marker.engine_pid}) "
        f"still runs and writes; {what}, a later command goes on from there"
    )


def _is_over(root: Path, marker: Marker, size: int) -> bool:
    """Was it committed for good, and only the tidying was cut short?"""
    try:
        runs, _ = read_rows(root, marker.log_id)
    except (OSError, pl.exceptions.PolarsError):
        return False
    return not runs.is_empty() and runs["state"][0] != "recording" and runs["raw_bytes"][0] == size
