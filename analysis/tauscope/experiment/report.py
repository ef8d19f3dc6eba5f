"""What an experiment found: the paired table, losslessness, drift, and what bars a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tauscope import arms, catalog, speedup
from tauscope.experiment import outputs
from tauscope.experiment.cell import Desk
from tauscope.experiment.plan import Plan


@dataclass(frozen=True, slots=True)
class Report:
    """Frames of `speedup.table`, `outputs.compare` and `arms.drifts`.

    `barred`: workload, arm, reasons of the verdicts that can't be reached.
    """

    speedups: pl.DataFrame
    outputs: pl.DataFrame
    drift: pl.DataFrame
    barred: pl.DataFrame


def report(root: Path, plan: Plan) -> Report:
    """The findings so far of `plan`'s experiment in the store at `root`."""
    data = catalog.Catalog([root])
    gains = speedup.table(data, {"experiment": plan.id})
    return Report(
        gains,
        outputs.compare(Desk(root, plan.id), plan),
        arms.drifts(data, {"experiment": plan.id}),
        gains.filter(pl.col("reasons").list.len() > 0).select("workload", "arm", "reasons"),
    )
