"""Simulated stores for tests: a stated model in a few lines, written once a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tauscope import catalog
from tauscope.simulate import Model, write

EASY = {
    "prompts": 12, "tokens": 300, "margin_mean": 2.9, "margin_sd": 3.0,
    "margin_between_prompts": 0.3, "right_floor": 0.62, "right_ceiling": 0.98,
    "right_middle": 1.5, "right_slope": 1.5,
}  # fmt: skip
COSTS = {"forward_ms": [67.8, 107.8], "draft_ms": 4.0, "other_ms": 0.2, "cycle_noise": 0.01}
OFF = {"path": "off", "arm": "off"}
MTP1 = {"path": "continuous", "arm": "mtp1", "threshold": 3.0}
LEGACY = {"path": "legacy", "arm": "mtp2", "threshold": 3.0}
SHADOW = {"path": "shadow", "arm": "shadow"}


def model(
    runs: list[dict[str, Any]],
    workloads: dict[str, dict[str, Any]] | None = None,
    costs: dict[str, Any] | None = None,
    **columns: Any,
) -> Model:
    """A model of `runs`; each workload states what differs from EASY, costs from COSTS."""
    stated = workloads or {"agent": {}}
    return msgspec.convert(
        {
            "name": "t", "seed": 3, "costs": COSTS | (costs or {}), "runs": runs, **columns,
            "workloads": [{"name": name, **EASY, **change} for name, change in stated.items()],
        },
        Model,
    )  # fmt: skip


def made(root: Path, *args: Any, **kwargs: Any) -> catalog.Catalog:
    """The store at `root`, holding what `model(...)` says, open for questions."""
    write(model(*args, **kwargs), root)
    return catalog.Catalog([root])
