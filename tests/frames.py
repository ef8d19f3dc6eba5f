"""Hand-written rows for tests: a cycle in one line, a store in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from tauscope import catalog, schema, store

# What each legacy or continuous outcome looks like in columns (metrics of section 2 and 3).
KINDS: dict[str, dict[str, Any]] = {
    "bet+": {"outcome": "all_accepted", "drafted": 1, "verified": 1, "accepted": 1, "emitted": 2},
    "bet-": {"outcome": "rejected", "drafted": 1, "verified": 1, "accepted": 0, "emitted": 1},
    "fold": {"outcome": "folded", "drafted": 1, "emitted": 1},
    "plain": {"outcome": "undrafted", "drafted": 0, "emitted": 1},
    "legacy+": {"outcome": "all_accepted", "drafted": 2, "free_checked": 1, "free_accepted": 1,
                "verified": 1, "accepted": 1, "emitted": 3, "target_forwards": 2},
    "legacy-": {"outcome": "rejected", "drafted": 2, "free_checked": 1, "free_accepted": 1,
                "verified": 1, "accepted": 0, "emitted": 2, "target_forwards": 2},
    "legacyfold": {"outcome": "folded", "drafted": 2, "free_checked": 1, "free_accepted": 1,
                   "emitted": 2, "target_forwards": 2},
    "miss": {"outcome": "missed", "drafted": 1, "free_checked": 1, "emitted": 1},
    "dark": {"outcome": "unlogged", "drafted": None, "free_checked": None, "free_accepted": None,
             "resampled": None, "target_forwards": None, "emitted": 1},
    "unknown": {"outcome": "unknown", "drafted": None, "free_checked": None,
                "free_accepted": None, "verified": None, "accepted": None, "resampled": None,
                "emitted": None, "target_forwards": None},
}  # fmt: skip
_ZERO = dict.fromkeys(("free_checked", "free_accepted", "verified", "accepted", "resampled"), 0)


def cycle(kind: str, **columns: Any) -> dict[str, Any]:
    """One cycle row of a kind of KINDS, with other columns on top."""
    return {"target_forwards": 1, "truncated": False, **_ZERO, **KINDS[kind], **columns}


def add_run(
    root: Path,
    log_id: str,
    requests: list[list[dict[str, Any]]],
    request_columns: list[dict[str, Any]] | None = None,
    generation: str = "t",
    **run: Any,
) -> str:
    """Commit one run of some requests, each a list of cycles; returns the run_id."""
    run_id = f"{log_id}-0"
    rows = [
        {"run_id": run_id, "request_id": number, **row}
        for number, request in enumerate(requests)
        for row in request
    ]
    cycles = [{"cycle": number, **row} for number, row in enumerate(rows)]
    writer = store.LogWriter(root, log_id, generation)
    kinds = schema.CYCLES.polars()
    if cycles:
        names = {name for row in cycles for name in row}
        writer.add(
            schema.CYCLES,
            pl.DataFrame(cycles, schema={n: t for n, t in kinds.items() if n in names}),
        )
    extra = request_columns or [{} for _ in requests]
    made = [{"run_id": run_id, "request_id": n, **columns} for n, columns in enumerate(extra)]
    names = {name for row in made for name in row}
    request_kinds = {n: t for n, t in schema.REQUESTS.polars().items() if n in names}
    columns = {
        "run_id": run_id, "log_id": log_id, "run_index": 0, "simulated": False,
        "state": "complete", "source_kind": "import", **run,
    }  # fmt: skip
    run_kinds = {n: t for n, t in schema.RUNS.polars().items() if n in columns}
    writer.commit(
        pl.DataFrame([columns], schema=run_kinds), pl.DataFrame(made, schema=request_kinds)
    )
    return run_id


def opened(root: Path) -> catalog.Catalog:
    """The store, open for questions."""
    root.mkdir(parents=True, exist_ok=True)
    return catalog.Catalog([root])
