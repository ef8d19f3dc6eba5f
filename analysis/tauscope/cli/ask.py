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
    if rows.is_empty():
        output.show("no runs yet; tauscope import LOG makes some")
        return
    _, names = output.apart(rows, ["run_id"])
    heads = ["run_id", *names, "source", "workload", "arm", "prompt_id", "state", ">requests",
             ">cycles", ">tokens emitted", ">tokens generated", ">refused rows", ">unfit lines",
             ">unlogged cycles", "baseline drafts", "machine"]  # fmt: skip
    columns = ["run_id", *(["simulated"] if names else []), "source", "workload", "arm",
               "prompt_id", "state", "requests", "cycles", "emitted", "generated_tokens",
               "refused_rows", "unfit_lines", "unlogged_cycles", "baseline_drafts",
               "machine"]  # fmt: skip
    # What is the same in all runs is said once, so that the rest fits.
    alike = [c for c in columns[1:] if rows.height > 1 and rows[c].n_unique() == 1]
    cells = [
        [output.made(row[c]) if c == "simulated" else output.counted(row[c]) for c in columns]
        for row in rows.iter_rows(named=True)
    ]
    kept = [i for i, column in enumerate(columns) if column not in alike]
    output.show(
        output.table(
            output.title("runs", rows),
            [heads[i] for i in kept],
            ([row[i] for i in kept] for row in cells),
            keys=1,
        )
    )
    said = [f"{heads[i].lstrip('>')} {output.short(cells[0][i])}"
            for i in range(len(columns)) if i not in kept]  # fmt: skip
    if said:
        output.show(f"  in all of them: {', '.join(said)}")


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
        found = summary.rows(data, groups, chosen)
        output.emit_json(found)
        if not found:
            raise output.nothing(data)
        return
    rows = measured.table(data, groups, chosen)
    if rows.is_empty():
        raise output.nothing(data)
    groups = groups if "arm" in groups else [*groups, "arm"]
    output.show(_metrics_table(rows, groups))
    for text in _dashes(rows, groups):
        output.note(text)
    if summary.compares(chosen):
        gains = speedup.table(data, chosen)
        if not gains.is_empty():
            output.show(_speedup_table(gains))
            for text in _remarks(gains, speedup.flips(gains), speedup.pooled(data, chosen)):
                output.note(text)


def _metrics_table(rows: pl.DataFrame, groups: list[str]) -> Any:
    groups = [name for name in groups if name != "simulated"]
    beside, heads = output.apart(rows, groups)
    columns = [
        *groups, *heads, ">prompts", ">cycles", ">τ tokens/cycle", ">committed acceptance",
        ">fold rate", ">ms/token", ">tokens/s", "time from",
    ]  # fmt: skip
    cells = []
    for row in rows.iter_rows(named=True):
        cells.append(
            [
                *(output.short(str(row[g])) if row[g] is not None else "–" for g in groups),
                *output.which(row, beside),
                f"{row['clusters']:,}",
                f"{row['cycles']:,}",
                output.interval(row["tau"], row["tau_lo"], row["tau_hi"]),
                output.share(*(row[f"committed_acceptance{e}"] for e in ("", "_lo", "_hi"))),
                output.share(*(row[f"fold_rate{e}"] for e in ("", "_lo", "_hi"))),
                output.interval(*(row[f"ms_per_token{e}"] for e in ("", "_lo", "_hi")), ".2f"),
                output.number(row["tokens_per_s"], ".2f"),
                row["time_basis"] or "–",
            ]
        )
    title = output.title("metrics, 95 % intervals in brackets", rows)
    return output.table(title, columns, cells, keys=len(groups) + len(heads))


# Columns of the table whose dashes are explained, in the table's words.
_SHOWN = {"tau": "τ", "committed_acceptance": "committed acceptance", "fold_rate": "fold rate",
          "ms_per_token": "ms/token and tokens/s"}  # fmt: skip


def _dashes(rows: pl.DataFrame, groups: list[str]) -> list[str]:
    """Why there are dashes: each reason once, with its columns and the rows that have them."""
    said: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for row in rows.iter_rows(named=True):
        for column, name in _SHOWN.items():
            why = row[f"{column}_why"]
            if row[column] is None and why:
                columns, who = said.setdefault(why, ({}, {}))
                columns[name] = None
                who["/".join("–" if row[g] is None else str(row[g]) for g in groups)] = None
    return [
        f"  – under {', '.join(columns)} of {output.listed(who)}: {why}"
        for why, (columns, who) in said.items()
    ]


def _speedup_table(gains: pl.DataFrame) -> Any:
    beside, heads = output.apart(gains, ["workload", "arm"])
    columns = ["workload", "arm against off", *heads, ">speed-up", ">pairs", "verdict",
               "why undecided"]  # fmt: skip
    cells = [
        [
            row["workload"],
            row["arm"],
            *output.which(row, beside),
            output.gain(row["speedup"], row["speedup_lo"], row["speedup_hi"]),
            str(row["pairs"]),
            row["verdict"] or "none",
            ", ".join(row["reasons"]) or row["speedup_why"] or "",
        ]
        for row in gains.iter_rows(named=True)
    ]
    return output.table(output.title("speed-up over the off arm, measured", gains), columns, cells)


def _remarks(gains: pl.DataFrame, flips: pl.DataFrame, pooled: pl.DataFrame) -> list[str]:
    said: dict[str, list[str]] = {}
    for row in gains.iter_rows(named=True):
        for remark in row["remarks"]:
            said.setdefault(remark, []).append(f"{row['workload']}/{row['arm']}")
    lines = output.codes(gains)
    lines += [f"  {output.listed(who)}: {remark}" for remark, who in said.items()]
    shared = [name for name in flips.columns if name not in ("gains", "loses")]
    beside, _ = output.apart(gains, ["workload", "arm"])

    def under(row: dict[str, Any]) -> str:
        return ", ".join(output.short(text) for text in [row["arm"], *output.which(row, beside)])

    for key, found in flips.group_by(shared, maintain_order=True):
        gain, lose = (output.listed(found[side]) for side in ("gains", "loses"))
        row = dict(zip(shared, key, strict=True))
        lines.append(f"  sign flip under {under(row)}: {gain} gain, {lose} lose")
    # A pooled figure only hides something where its own arm has a flip.
    hiding = pooled.join(flips, on=shared, how="semi", nulls_equal=True, maintain_order="left")
    for row in hiding.iter_rows(named=True):
        lines.append(
            f"  pooled over workloads {output.gain(row['speedup'])} under {under(row)}: "
            "true of this mix alone, it hides the flip"
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
      tauscope sql -f analysis/queries/margins_by_logit.sql --format markdown

    --format is table, json, csv, parquet or markdown. The traces can be read and nothing can be
    written. `tauscope schema` lists tables, columns
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
            output.table(kind, part.columns, ([_text(c) for c in r] for r in part.iter_rows()))
        )


def _text(value: object) -> str:
    return "" if value is None else str(value)
