"""Recording: an engine runs as a child, its journal is followed, cycles are committed meanwhile."""

from __future__ import annotations
