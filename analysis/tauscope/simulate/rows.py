"""The frames of a simulation, run by run and in parts, so that memory doesn't grow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from tauscope.simulate.model import Model


@dataclass(frozen=True, slots=True)
class Simulated:
    """One part of one run: frames of schema RUNS (one row), REQUESTS and CYCLES.

    A run of more than PART positions comes in several parts, in order, each with the
    same run row; requests are never cut.
    """

    runs: pl.DataFrame
    requests: pl.DataFrame
    cycles: pl.DataFrame


def simulate(
    model: Model, *, seed: int | None = None, workloads: Sequence[str] | None = None
) -> Iterator[Simulated]:
    """The model's runs, one after another.

    `seed` takes the place of the model's own; `workloads` keeps only those of that name.
    """
    raise NotImplementedError
