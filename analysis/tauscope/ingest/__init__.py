"""Log bytes to rows: one vectorised parser for import and for live recording."""

from __future__ import annotations

from tauscope.ingest.parser import Batch, LogParser

__all__ = ["Batch", "LogParser"]
