"""Traces from a stated model, so that an analysis can be held against a known truth.

Nothing here is shared with the code that analyses: only the table definitions are.

- `model`: the model file, validated
- `texts`: what every position of a text holds, drawn once and the same for all arms
- `walk`: the cycles that arise from walking the positions, for each path
- `times`: what those cycles cost
- `rows`: the frames
- `write`: the frames into a store
"""

from __future__ import annotations

from tauscope.simulate.model import Model, load_model
from tauscope.simulate.rows import Simulated, simulate
from tauscope.simulate.write import write

__all__ = ["Model", "Simulated", "load_model", "simulate", "write"]
