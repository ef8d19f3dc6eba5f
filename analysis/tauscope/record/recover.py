"""Recordings that were cut short, brought to their journals' ends by the next command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from tauscope.ingest.importer import read_rows
from tauscope.record import marker as markers
from tauscope.record.finish import complete
from tauscope.record.journal import Journal, paths
from tauscope.record.marker import LOG, TRACE, Marker
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
    log, _ = paths(root, marker.log_id, LOG)
    sizes = _sizes(root, marker)
    if markers.is_held(log):
        if sizes == {LOG: 0, TRACE: 0} | marker.seen:
            return [_alive(marker, "nothing new since the last command")]
    elif not any(sizes.values()) or _is_over(root, marker, sizes):
        _tidy(root, marker)
        return []
    notes: list[str] = []
    try:
        take = Take(root, marker)
        try:
            take.replay()
            totals = complete(take, "recovered", None, notes)
        finally:
            take.close()
    except Exception as error:  # one broken recording must not close the store
        what = getattr(error, "strerror", None) or str(error).splitlines()[0][:160]
        return [
            f"{marker.log_id}: its recording was cut short and can't be committed ({what}); the "
            f"journal is kept: {log}"
        ]
    if totals is None:
        return notes
    if markers.path_of(root, marker.log_id).exists():
        return [_alive(marker, f"{totals.cycles} cycles are committed so far")]
    return [
        f"{marker.log_id}: its recording was cut short; recovered {totals.cycles} cycles, up to "
        "the journal's end"
    ]


def _alive(marker: Marker, what: str) -> str:
    return (
        f"{marker.log_id}: its recorder is gone but the engine (process {marker.engine_pid}) "
        f"still runs and writes; {what}, a later command goes on from there"
    )


def _sizes(root: Path, marker: Marker) -> dict[str, int]:
    sizes = {}
    for name in (LOG, TRACE):
        journal = Journal(root, marker, name)
        sizes[name] = journal.size()
        journal.close()
    return sizes


def _is_over(root: Path, marker: Marker, sizes: dict[str, int]) -> bool:
    """Was it committed for good, and only the tidying was cut short?"""
    try:
        runs, _ = read_rows(root, marker.log_id)
    except (OSError, pl.exceptions.PolarsError):
        return False
    if runs.is_empty() or runs["state"][0] == "recording":
        return False
    trace = f"raw/{paths(root, marker.log_id, TRACE)[1].name}"
    stream = TRACE if runs["raw_file"][0] == trace else LOG
    return runs["raw_bytes"][0] == sizes[stream]


def _tidy(root: Path, marker: Marker) -> None:
    """Nothing is left to commit: drop the marker, then the journals."""
    markers.drop(root, marker.log_id)
    for name in (LOG, TRACE):
        paths(root, marker.log_id, name)[0].unlink(missing_ok=True)
