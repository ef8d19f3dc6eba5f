"""The MIME types under which charts and tables leave a notebook."""

from __future__ import annotations

CHART = "application/vnd.vegalite.v5+json"
TABLE = "application/vnd.tauscope.table+json"
