"""Comments on views, columns and macros, so that the database explains itself."""

from __future__ import annotations

import re

import duckdb

from tauscope import schema
from tauscope.texts import sql_text

VIEWS = {
    "runs": schema.RUNS.grain,
    "requests": schema.REQUESTS.grain,
    "cycles": schema.CYCLES.grain,
    "refused": schema.REFUSED.grain,
    "facts": "what the log says of a run, each fact with its line",
    "unfit_lines": "the first lines of a run that look like speculation but fit no shape",
    "warmup": "first cycles of a run that stay out of time ratios",
    "drifts": "how the cost of a path moved in the course of a run, or of an experiment's arm",
    "request_sums": "numerators and denominators of each metric, summed over a request",
}
# Columns that a view adds to the stored ones.
_ADDED = {
    "workload": "label: what was generated",
    "arm": "label: what speculation did in the run",
    "prompt_id": "label: the prompt, by which runs of two arms are paired",
    "cluster": "workload and prompt, or the request where its prompt has no name",
    "name": "name of the fact",
    "value": "its value, as printed",
    "line": "line of the log it stands in",
    "text": "the line, shortened",
    "cycles": "[cycles] cycles of the request",
    "warmup_cycles": "[cycles] first cycles of the run that stay out of time ratios",
    "wall_num": "[ms] Σ wall_ms without warm-up",
    "wall_den": "[tokens] Σ emitted without warm-up",
    "run_num": "[ms] the engine's own decode time, or that of one token",
    "run_den": "[tokens] tokens behind it",
    "run_weightless": "only the speed was printed: usable alone, never added up",
}


def put(con: duckdb.DuckDBPyConnection) -> None:
    """Comment on every view, column and macro that `con` holds."""
    statements = [f"COMMENT ON VIEW {view} IS {literal(about)}" for view, about in VIEWS.items()]
    stored = {"requests": schema.REQUESTS, "cycles": schema.CYCLES, "refused": schema.REFUSED}
    known = {
        column.name: f"[{column.unit}] {column.about}" if column.unit else column.about
        for table in (schema.CYCLES, schema.REQUESTS, schema.RUNS)
        for column in table.columns
    }
    own = {
        view: {c.name: f"[{c.unit}] {c.about}" if c.unit else c.about for c in table.columns}
        for view, table in {**stored, "runs": schema.RUNS}.items()
    }
    columns = con.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal"
    ).fetchall()
    for view, column in columns:
        if view in VIEWS:
            about = own.get(view, {}).get(column) or _ADDED.get(column) or known.get(column)
            about = about or _of_sums(column)
            statements.append(f'COMMENT ON COLUMN {view}."{column}" IS {literal(about)}')
    statements += [
        f"COMMENT ON MACRO {name} IS {literal(about)}" for name, about in _macros().items()
    ]
    con.execute(";".join(statements))


def literal(text: str) -> str:
    """`text` as a SQL string: for comments and file names, which can't be bound."""
    return "'" + text.replace("'", "''") + "'"


def _of_sums(column: str) -> str:
    if column.endswith("_num"):
        return f"numerator of {column.removesuffix('_num')}"
    if column.endswith("_den"):
        return f"denominator of {column.removesuffix('_den')}"
    return f"[cycles] cycles of outcome {column}"


def _macros() -> dict[str, str]:
    """Name of each macro and the comment above it; one block may comment on several."""
    found: dict[str, str] = {}
    for block in sql_text("macros").split("\n\n"):
        about = " ".join(re.findall(r"(?m)^-- ?(.*)$", block))
        found.update(dict.fromkeys(re.findall(r"(?m)^CREATE MACRO (\w+)", block), about))
    return found
