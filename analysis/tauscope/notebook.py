"""What every notebook needs: the selection its parameters make, and data to open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tauscope import catalog, places
from tauscope.figures import drawing
from tauscope.figures.drawing import answer

__all__ = ["answer", "choose", "open_traces"]


def open_traces(traces: Sequence[str | Path] = (), chosen_by: str = "") -> catalog.Catalog:
    """The stores that a notebook's `traces` parameter names; none: the usual ones.

    `chosen_by` says what named them, where that wasn't the notebook's own cell.
    """
    drawing.alt.renderers.enable("tauscope")
    stores, origin = places.to_read(traces)
    named = chosen_by or "the notebook's parameters"
    return catalog.Catalog(stores, named if traces else origin)


def choose(**columns: str) -> dict[str, str]:
    """The selection that parameters make: those left empty pick everything."""
    return {catalog.dimension(name): value for name, value in columns.items() if value != ""}
