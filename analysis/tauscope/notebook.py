"""What every notebook needs: the selection its parameters make, and data to open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tauscope import catalog
from tauscope.figures import drawing
from tauscope.figures.drawing import answer

__all__ = ["answer", "choose", "open_traces"]


def open_traces(traces: Sequence[str | Path] = ()) -> catalog.Catalog:
    """The stores that a notebook's `traces` parameter names; none: the usual ones."""
    drawing.alt.renderers.enable("tauscope")
    return catalog.connect(traces)


def choose(**columns: str) -> dict[str, str]:
    """The selection that parameters make: those left empty pick everything."""
    return {catalog.dimension(name): value for name, value in columns.items() if value != ""}
