"""The rows behind a figure, as a query that anyone can paste.

A figure is a numerator over a denominator; the query picks the cycles (or requests)
that both are summed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KEYS = ("workload", "arm", "simulated", "machine", "model", "experiment")
# Which cycles of a selection a metric's denominator counts; all of them where not named.
COUNTED = {
    "committed_acceptance": "verified > 0 AND outcome <> 'fallback'",
    "gated_fold_rate": "margin IS NOT NULL",
    "draft_hit_rate": "free_checked + verified > 0",
    "draft_yield": "drafted > 0",
    "draft_accuracy": (
        "first_draft_right(drafted, free_checked, free_accepted, verified, accepted, "
        "draft_token, next_token) IS NOT NULL"
    ),
    "verify_draft_ratio": "is_bet(outcome)",
}


def where(row: Mapping[str, Any]) -> str:
    """A WHERE condition that picks the rows of `row`, by those of KEYS that it holds."""
    parts = [_equals(name, row[name]) for name in KEYS if name in row]
    return " AND ".join(parts) or "TRUE"


def cycles(row: Mapping[str, Any], metric: str = "") -> str:
    """The query for the cycles of `row` that `metric` counts."""
    parts = [where(row)]
    if metric in COUNTED:
        parts.append(COUNTED[metric])
    if metric == "ms_per_token" and row.get("time_basis") == "run":
        return requests(row)
    return f"SELECT * FROM cycles WHERE {' AND '.join(parts)}"


def requests(row: Mapping[str, Any]) -> str:
    """The query for the requests of `row`, with their own token counts and times."""
    return f"SELECT * FROM requests WHERE {where(row)}"


def arms(row: Mapping[str, Any]) -> str:
    """The query for the requests of both arms that a speed-up of `row` compares."""
    rest = {name: row[name] for name in KEYS if name in row and name != "arm"}
    pair = f"arm IN ({literal(row['baseline'])}, {literal(row['arm'])})"
    return f"SELECT * FROM request_sums WHERE {where(rest)} AND {pair}"


def _equals(name: str, value: Any) -> str:
    if value is None:
        return f"{name} IS NULL"
    if isinstance(value, bool):
        return name if value else f"NOT {name}"
    return f"{name} = {literal(str(value))}"


def literal(text: str) -> str:
    """`text` as an SQL string; a quote in it is doubled, so it stays text."""
    return "'" + text.replace("'", "''") + "'"
