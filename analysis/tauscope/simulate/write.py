"""Simulated rows into a store, one log a run."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from tauscope import schema, store
from tauscope.simulate.model import Model
from tauscope.simulate.rows import simulate


def write(model: Model, root: Path, *, seed: int | None = None) -> pl.DataFrame:
    """Simulate `model` into the store at `root`: one row a run, with its counts.

    The same model and seed give the same files, byte for byte. Columns: run_id, arm,
    requests, cycles, emitted.
    """
    writers: dict[str, store.LogWriter] = {}
    runs: dict[str, pl.DataFrame] = {}
    requests: dict[str, list[pl.DataFrame]] = {}
    counts: dict[str, list[int]] = {}
    for part in simulate(model, seed=seed):
        for log_id in part.runs["log_id"]:
            writers.setdefault(log_id, store.LogWriter(root, log_id, "s"))
            runs[log_id] = part.runs.filter(pl.col("log_id") == log_id)
        for key, frame in part.requests.group_by("run_id", maintain_order=True):
            requests.setdefault(_log(str(key[0])), []).append(frame)
        for key, frame in part.cycles.group_by("run_id", maintain_order=True):
            log_id = _log(str(key[0]))
            writers[log_id].add(schema.CYCLES, frame)
            seen = counts.setdefault(log_id, [0, 0])
            seen[0] += frame.height
            seen[1] += int(frame["emitted"].sum())
    rows = []
    for log_id, writer in writers.items():
        made = pl.concat(requests[log_id])
        writer.commit(runs[log_id], made)
        row = runs[log_id].row(0, named=True)
        rows.append((row["run_id"], row["arm"], made.height, *counts[log_id]))
    store.collect_orphans(root)
    kinds = {"run_id": pl.String, "arm": pl.String, "requests": pl.Int64, "cycles": pl.Int64,
             "emitted": pl.Int64}  # fmt: skip
    return pl.DataFrame(rows, schema=kinds, orient="row")


def _log(run_id: str) -> str:
    return run_id.rpartition("-")[0]
