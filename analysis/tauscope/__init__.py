"""tauscope: traces of speculative decoding in ds4, and what they mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tauscope.catalog import connect

__version__ = "0.1.0"
__all__ = ["__version__", "connect"]


def __getattr__(name: str) -> Any:
    # Not imported at once: DuckDB and Polars would slow every command's start.
    if name == "connect":
        from tauscope.catalog import connect

        return connect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
