"""Commands that ask a store: runs, metrics, SQL and the catalogue of tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tauscope.cli import output
from tauscope.cli.formats import Format, deliver
from tauscope.cli.options import Json, Traces, Where, where_of
from tauscope.errors import Problem

if TYPE_CHECKING:
    import polars as pl


def runs(traces: Traces = None, json: Json = False) -> None:
    """List the runs of a store: labels, size, state and what the log left open.

    tauscope runs --traces traces/sample
    """
    data = output.opened(traces)
    rows = data.query("runs_listed")
    if json:
        output.emit_json(rows)
        return
    output.show_frame(rows, "runs")


def metrics(
    by: Annotated[
        str,
        typer.Option(metavar="COLUMNS", help="Group by these columns of runs, requests or cycles."),
    ] = "workload,arm",
    where: Where = None,
    traces: Traces = None,
    json: Json = False,
) -> None:
    """τ, acceptance, fold rate and speed by group, 95 % intervals, speed-ups with a verdict.

    \b
      tauscope metrics
      tauscope metrics --by workload
      tauscope metrics --by prompt_id,arm --where workload=code
      tauscope metrics --by threshold,arm --where 'margin IS NOT NULL'
      tauscope metrics --json | jq '.[] | {workload, arm, tau, speedup, verdict}'

    Arms never share a row: without arm among the columns there is a row for each treated arm,
    and the off arm is the reference alone. The JSON is one array, a row a group, a speed-up as
    a ratio (1.094 is +9.4 %); tauscope schema tells what each metric divides by what.
    """
    from tauscope import metrics as measured
    from tauscope import speedup, summary

    data = output.opened(traces)
    chosen = where_of(where, data, of_cycles=True)
    groups = list(dict.fromkeys(name.strip() for name in by.split(",") if name.strip()))
    if json:
        output.emit_json(summary.rows(data, groups, chosen))
        return
    rows = measured.table(data, groups, chosen)
    if rows.is_empty():
        output.note(
            "no cycle, request or speed in this selection; tauscope runs lists what there is"
        )
        return
    output.show(_metrics_table(rows, groups if "arm" in groups else [*groups, "arm"]))
    if summary.compares(chosen):
        gains = speedup.table(data, chosen)
        if not gains.is_empty():
            output.show(_speedup_table(gains))
            for text in _remarks(gains, speedup.flips(gains), speedup.pooled(data, chosen)):
                output.note(text)


def _metrics_table(rows: pl.DataFrame, groups: list[str]) -> Any:
    columns = [
        *groups, ">prompts", ">cycles", ">τ tokens/cycle", ">committed acceptance", ">fold rate",
        ">ms/token", ">tokens/s", "time from",
    ]  # fmt: skip
    cells = []
    for row in rows.iter_rows(named=True):
        cells.append(
            [
                *(str(row[g]) if row[g] is not None else "–" for g in groups),
                str(row["clusters"]),
                str(row["cycles"]),
                output.interval(row["tau"], row["tau_lo"], row["tau_hi"]),
                output.share(*(row[f"committed_acceptance{e}"] for e in ("", "_lo", "_hi"))),
                output.share(*(row[f"fold_rate{e}"] for e in ("", "_lo", "_hi"))),
                output.interval(*(row[f"ms_per_token{e}"] for e in ("", "_lo", "_hi")), ".2f"),
                output.number(row["tokens_per_s"], ".2f"),
                row["time_basis"] or "–",
            ]
        )
    simulated = " (simulated)" if rows["simulated"].all() else ""
    return output.table(f"metrics, 95 % intervals in brackets{simulated}", columns, cells)


def _speedup_table(gains: pl.DataFrame) -> Any:
    columns = ["workload", "arm against off", ">speed-up", ">pairs", "verdict", "why undecided"]
    cells = [
        [
            row["workload"],
            row["arm"],
            output.gain(row["speedup"], row["speedup_lo"], row["speedup_hi"]),
            str(row["pairs"]),
            row["verdict"] or "none",
            ", ".join(row["reasons"]) or row["speedup_why"] or "",
        ]
        for row in gains.iter_rows(named=True)
    ]
    return output.table("speed-up over the off arm, measured", columns, cells)


def _remarks(gains: pl.DataFrame, flips: pl.DataFrame, pooled: pl.DataFrame) -> list[str]:
    said: dict[str, list[str]] = {}
    for row in gains.iter_rows(named=True):
        for remark in row["remarks"]:
            said.setdefault(remark, []).append(f"{row['workload']}/{row['arm']}")
    lines = [f"  {output.short(', '.join(who))}: {remark}" for remark, who in said.items()]
    for (arm,), found in flips.group_by("arm", maintain_order=True):
        gains_, loses = (", ".join(found[side].unique(maintain_order=True)) for side in
                         ("gains", "loses"))  # fmt: skip
        lines.append(
            f"  sign flip under {output.short(arm)}: {output.short(gains_)} gain, "
            f"{output.short(loses)} lose"
        )
    if not flips.is_empty():
        for row in pooled.iter_rows(named=True):
            lines.append(
                f"  pooled over workloads {output.gain(row['speedup'])} under "
                f"{output.short(row['arm'])}: true of this mix alone, it hides the flip"
            )
    return lines


def sql(
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="One SELECT; - reads it from stdin.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("-f", "--file", metavar="FILE", help="Read the query there.")
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option("--format", help="How the rows are written; a table where it isn't said."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the rows there.")
    ] = None,
    traces: Traces = None,
    json: Json = False,
) -> None:
    """Ask anything: one SELECT over runs, requests, cycles, refused and facts.

    \b
      tauscope sql 'SELECT workload, arm, tau(emitted) FROM cycles GROUP BY ALL ORDER BY ALL'
      tauscope sql 'SELECT outcome, count(*) FROM cycles GROUP BY outcome' --format csv -o out.csv
      tauscope sql -f analysis/queries/margins.sql --format markdown

    The traces can be read and nothing can be written. `tauscope schema` lists tables, columns
    and macros.
    """
    if json and form not in (None, Format.JSON):
        raise Problem(f"sql: --json and --format {form.value} differ; give one", code=2)
    text = _query(query, file)
    data = output.opened(traces)
    data.strict = False  # one question: it is simply asked again
    known = len(data.damaged)
    rows = data.ask(text)
    if len(data.damaged) > known:
        for damage in data.damaged:
            output.note(damage.text)
    deliver(rows, Format.JSON if json else form or Format.TABLE, out)


def _query(query: str | None, file: Path | None) -> str:
    """The one query that was given. Raises Problem when there is none, or there are two."""
    if (query is None) == (file is None):
        raise Problem("sql: give one query, as text, as -f FILE, or - for stdin", code=2)
    if query is not None:
        return sys.stdin.read() if query == "-" else query
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise Problem(f"{file}: {error.strerror}; name a file with one SELECT") from None
    except UnicodeDecodeError:
        raise Problem(f"{file}: is no UTF-8 text; name a file with one SELECT") from None


def schema(traces: Traces = None, json: Json = False) -> None:
    """Print the catalogue: every view, column and macro, with its unit and meaning.

    tauscope schema
    """
    data = output.opened(traces)
    rows = data.query("schema")
    if json:
        output.emit_json(rows)
        return
    for kind in rows["of"].unique(maintain_order=True):
        part = rows.filter(rows["of"] == kind).drop("of")
        output.show(
            output.table(kind, part.columns, ([_text(c) for c in r] for r in part.iter_rows()), 400)
        )


def _text(value: object) -> str:
    return "" if value is None else str(value)
