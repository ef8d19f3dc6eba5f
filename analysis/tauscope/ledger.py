"""Where tokens and milliseconds went, and how good the logs are: frames from sql/ledger_*."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from tauscope import catalog

BY = ("workload", "arm", "simulated", "machine", "model", "experiment")
# Of catalog.DIMENSIONS, those that a whole run has.
_OF_RUNS = ("arm", "simulated", "machine", "model", "experiment", "run_id", "log_id", "source",
            "drafter", "draft_depth")  # fmt: skip


def grouped(
    data: catalog.Catalog,
    name: str,
    by: Sequence[str],
    where: Mapping[str, Any] | None,
    **more: Any,
) -> pl.DataFrame:
    """The rows of sql/<name>.sql with {dims} and {where} put in; `more` is bound.

    Raises Problem for a name that is no dimension.
    """
    condition, params = catalog.selection(where or {})
    dims = ", ".join(catalog.dimension(column) for column in by)
    text = catalog.sql_text(name).replace("{dims}", dims).replace("{where}", condition)
    return data.run(text, name, {**params, **more})


def outcomes(
    data: catalog.Catalog, where: Mapping[str, Any] | None = None, by: Sequence[str] = BY
) -> pl.DataFrame:
    """Cycles and tokens by outcome: columns `by`, outcome, cycles, share, emitted, drafted, …"""
    return grouped(data, "ledger_outcomes", by, where)


def stages(
    data: catalog.Catalog, where: Mapping[str, Any] | None = None, by: Sequence[str] = BY
) -> pl.DataFrame:
    """Milliseconds by stage: columns `by`, stage, ms, ms_per_token, emitted, untimed."""
    return grouped(data, "ledger_stages", by, where)


def runs(data: catalog.Catalog, where: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """One row a run: labels, tokens and times with what doesn't add up, lines and their fate.

    Runs of which `where` leaves no request still show when the condition is on requests
    only; a condition on runs leaves them out.
    """
    text, params = _runs_text(where)
    return data.run(text, "ledger_runs", params)


def stretches(data: catalog.Catalog, where: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """`runs`, with all runs of an arm in an experiment as one row: more fit to be looked at.

    `stretch` is the experiment or the run; `runs` how many they are.
    """
    text, params = _runs_text(where)
    text = catalog.sql_text("ledger_stretches").replace("{ledger_runs}", text)
    return data.run(text, "ledger_stretches", params)


def _runs_text(where: Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
    where = dict(where or {})
    condition, params = catalog.selection(where)
    text = catalog.sql_text("ledger_runs").replace("{where}", condition)
    return text.replace("{runs}", _of_runs(where, condition)), params


def refused(data: catalog.Catalog, where: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Rows that broke a rule and the first lines of no known shape: run_id, kind, line, text."""
    where = dict(where or {})
    condition, params = catalog.selection(where)
    text = catalog.sql_text("ledger_refused").replace("{runs}", _of_runs(where, condition))
    return data.run(text, "ledger_refused", params)


def _of_runs(where: Mapping[str, Any], condition: str) -> str:
    """Runs that `where` touches: by their own columns, or by one of their requests."""
    if not where:
        return "TRUE"
    if all(name in _OF_RUNS for name in where):
        return condition
    return f"r.run_id IN (SELECT run_id FROM request_sums WHERE {condition})"
