"""The end of a recording: the last commit, the packed journal, the marker's end.

Every step may be the last one before a kill, and can be done again: the rows are committed
before the journal goes, and the marker goes before the journal, so that what is left is
either a recording to recover or a file that nothing names.
"""

from __future__ import annotations

import contextlib

from tauscope import store
from tauscope.record import marker as markers
from tauscope.record.take import Take, Totals


def complete(
    take: Take, state: str, output_hash: str | None = None, notes: list[str] | None = None
) -> Totals | None:
    """Commit all that the journal holds, for good when no one writes to it any more.

    While someone does (a child of the engine, an engine that outlived its recorder), the
    marker stays, `state` becomes `recording`, and a later command goes on from there.
    Returns None when the log says nothing of speculation, speed or requests: then no run
    is kept, the packed log is. Raises what a store that can't be written raises.
    """
    root, log_id = take.root, take.marker.log_id
    notes = [] if notes is None else notes
    if markers.is_held(take.journal.path):
        take.parse()
        totals = take.commit("recording", output_hash)
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
    if take.says_something():
        take.commit(state, output_hash)
        with contextlib.suppress(Exception):  # many small parts are as true as few large ones
            take.settle(last=True)
        totals = take.commit(state, output_hash)
    else:
        totals = None
        store.forget(root, log_id)
        notes.append(
            f"{log_id}: no speculation, speed or request line was logged; no run is kept, its "
            f"log is: {take.journal.copy}"
        )
    markers.drop(root, log_id)
    take.close()
    take.journal.path.unlink(missing_ok=True)
    with contextlib.suppress(Exception):
        store.collect_orphans(root)
    return totals
