"""The end of a recording: the last commit, the packed journal, the marker's end.

Every step may be the last one before a kill, and can be done again: the journal is packed
before the rows are committed, and goes after them; the marker goes last, so that a file
which is left is always one that a marker tells of.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from tauscope import store
from tauscope.record import journal
from tauscope.record import marker as markers
from tauscope.record.marker import Marker
from tauscope.record.take import Take, Totals


def complete(take: Take, state: str, notes: list[str]) -> Totals | None:
    """Commit all that the journal holds, for good when no one writes to it any more.

    While someone does (a child of the engine, an engine that outlived its recorder), the
    marker stays, `state` becomes `recording`, and a later command goes on from there.
    What there is to say goes to `notes`. A log that its engine truncated is never complete:
    its state is `recovered`.

    Returns None when the log says nothing of speculation, speed or requests: then no run
    is kept, the packed log is. Raises what a store that can't be written raises.
    """
    root, log_id = take.root, take.marker.log_id
    if markers.is_held(take.journal.path):
        take.parse()
        totals = take.commit("recording")
        take.marker.seen = take.offset
        markers.save(root, take.marker)
        notes.append(
            f"{log_id}: its journal is still written to (engine {take.marker.engine_pid}); "
            f"{totals.cycles} cycles are committed, the next command goes on from there"
        )
        return totals
    # Only now is it sure that no more comes: what came meanwhile is the end of the log.
    take.catch_up()
    take.parse(last=True)
    if take.tokens_unused():
        notes.append(
            f"{log_id}: --tokens is the count of one request that doesn't tell its own; it was "
            "not used here"
        )
    take.pack()
    output = journal.output_of(root, log_id)
    if take.marker.truncated:
        state = "recovered"
    if take.says_something():
        output_hash = _hash(output)
        totals = take.commit(state, output_hash)
        with contextlib.suppress(Exception):  # many small parts are as true as few large ones
            if take.settle(last=True):
                take.commit(state, output_hash)
    else:
        totals = None
        store.forget(root, log_id)
        notes.append(
            f"{log_id}: no speculation, speed or request line was logged; no run is kept, its "
            f"log is: {take.journal.copy}"
        )
    take.close()
    tidy(root, take.marker)
    with contextlib.suppress(Exception):
        store.collect_orphans(root)
    return totals


def tidy(root: Path, marker: Marker) -> None:
    """Drop the journal of a recording that is committed, and the marker after it."""
    journal.path_of(root, marker.log_id).unlink(missing_ok=True)
    if not marker.keep_output:
        journal.output_of(root, marker.log_id).unlink(missing_ok=True)
    markers.drop(root, marker.log_id)


def _hash(output: Path) -> str | None:
    """Hash of the output; None where there is none: no output says nothing of another's."""
    digest, size = hashlib.sha256(), 0
    with contextlib.suppress(FileNotFoundError), output.open("rb") as handle:
        while block := handle.read(1 << 20):
            digest.update(block)
            size += len(block)
    return f"sha256:{digest.hexdigest()}" if size else None


def reason(error: Exception) -> str:
    """Why the store couldn't be written, in few words."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return text.splitlines()[0][:160]
