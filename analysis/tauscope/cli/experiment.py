"""The command that runs an experiment and shows what came of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tauscope.cli import output
from tauscope.cli.options import Json, Store
from tauscope.errors import Problem

if TYPE_CHECKING:
    from tauscope.experiment import Plan, Result
    from tauscope.experiment.report import Report

# Of outputs that differ, so many are shown; all are in --json.
SHOWN = 12


def experiment(
    plan: Annotated[Path, typer.Argument(metavar="PLAN.toml", help="The plan.")],
    init: Annotated[
        bool, typer.Option("--init", help="Write a commented plan for ds4 there, and stop.")
    ] = False,
    traces: Store = None,
    json: Json = False,
) -> None:
    """Run prompts × arms, paired and interleaved, each cell once, and compare the arms.

    \b
      tauscope experiment --init plan.toml
      tauscope experiment plan.toml
      tauscope experiment plan.toml --traces /data/traces --json

    Interrupted, the same command goes on where it was; when all is done, it shows the result
    again. A changed plan is another experiment.
    """
    from tauscope import experiment as experiments
    from tauscope import places

    if init:
        _init(plan, experiments.starting_plan())
        return
    read = experiments.load_plan(plan)
    root = places.to_write(traces)
    with _progress() as bar:
        result = experiments.run(read, root, _watcher(bar))
    from tauscope.experiment.report import report

    if result.done:
        found = report(root, read)
        if json:
            output.emit_json(_as_json(result, found))
        else:
            output.show(*_shown(read, found))
    elif json:
        output.emit_json(_as_json(result, None))
    _conclude(result, root)


def _init(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as handle:
            handle.write(text)
    except FileExistsError:
        raise Problem(f"{path}: is there already; name another file for the plan") from None
    except OSError as error:
        raise Problem(f"{path}: can't be written ({error.strerror}); name another file") from None
    output.show(
        f"{path}: a plan for ds4; set `command` and the drafter's file, then run it; its "
        "comments tell how many runs it makes, and which arms a stock ds4 can run"
    )


def _progress() -> Any:
    """Cells done, and the time left, on standard error; silent where that is no terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    # Warm-up and pauses make cells uneven: the estimate looks back over the last half hour.
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        speed_estimate_period=1800,
        disable=not sys.stderr.isatty(),
    )


def _watcher(bar: Any) -> Any:
    from tauscope.experiment import Watcher

    class Shown(Watcher):
        """Progress on a terminal; elsewhere only what a person should know."""

        def begins(self, total: int, done: int) -> None:
            self.task = bar.add_task("experiment", total=total, completed=done)

        def starts(self, cell: Any, warming: bool) -> None:
            what = "warm-up" if warming else output.short(cell.prompt.id, 24)
            bar.update(self.task, description=f"{what} {output.short(cell.arm, 16)}")

        def ends(self, cell: Any, seconds: float) -> None:
            bar.advance(self.task)

        def says(self, text: str) -> None:
            if sys.stderr.isatty():
                bar.console.print(output.clean(text), markup=False, highlight=False)
            else:
                output.note(text)

    return Shown()


def _shown(plan: Plan, found: Report) -> list[Any]:
    from tauscope.figures import words

    parts: list[Any] = []
    if not found.speedups.is_empty():
        rows = [
            [r["workload"], r["arm"], str(r["pairs"]),
             output.number(r["base_ms_per_token"], ".2f"), output.number(r["ms_per_token"], ".2f"),
             output.gain(r["speedup"], r["speedup_lo"], r["speedup_hi"]),
             r["verdict"] or r["speedup_why"] or "–"]
            for r in found.speedups.iter_rows(named=True)
        ]  # fmt: skip
        columns = ["workload", "arm", ">pairs", ">off ms/token", ">ms/token", ">speed-up [95 %]",
                   "verdict"]  # fmt: skip
        parts.append(output.table(f"{plan.id}: paired speed-up over off", columns, rows))
    parts += _losslessness(found.outputs)
    if found.drift.is_empty():
        parts.append("drift: can't be seen, too few timed cycles")
    else:
        worst = found.drift.sort(found.drift["drift"].abs()).row(-1, named=True)
        parts.append(
            f"drift: at most {worst['drift']:+.1%}, of {output.short(worst['arm'])}'s "
            f"{worst['outcome']} cycles on {output.short(worst['workload'])}, from the first "
            "third of the experiment to the last"
        )
    for reasons, group in found.barred.group_by("reasons", maintain_order=True):
        cells = ", ".join(f"{w}/{a}" for w, a in group.select("workload", "arm").iter_rows())
        parts.append(f"no verdict on {output.short(cells, 200)}: {words.reasons(reasons[0])}")
    return parts


def _losslessness(rows: Any) -> list[Any]:
    if rows.is_empty():
        return ["losslessness: no two outputs to compare"]
    equal, differ = (rows.filter(rows["equal"].eq_missing(side)).height for side in (True, False))
    text = f"losslessness: {equal} of {rows.height} outputs equal the off arm's, {differ} differ"
    if rows.height - equal - differ:
        text += f", {rows.height - equal - differ} couldn't be compared"
    different = rows.filter(~rows["equal"])
    lines: list[Any] = [text]
    for row in different.head(SHOWN).iter_rows(named=True):
        lines.append(
            f"  {output.short(row['prompt_id'])}/{output.short(row['arm'])}: lengths "
            f"{row['base_length']} and {row['length']}, first differing {row['unit']} is number "
            f"{row['first_difference']}: {output.short(repr(row['base_said']), 30)} became "
            f"{output.short(repr(row['said']), 30)}"
        )
    if different.height > SHOWN:
        lines.append(f"  and {different.height - SHOWN} more: --json lists them")
    return lines


def _as_json(result: Result, found: Report | None) -> dict[str, Any]:
    frames = ("speedups", "outputs", "drift", "barred")
    return {
        "experiment": result.experiment,
        "cells": result.total,
        "done": result.done,
        "stopped": result.stopped,
        "out_of_time": result.out_of_time,
        **{name: getattr(found, name).to_dicts() if found else [] for name in frames},
    }


def _conclude(result: Result, root: Path) -> None:
    """What isn't done, on standard error; exit code 1 then."""
    for arm, why in result.stopped.items():
        output.note(f"arm {arm}: stopped, it failed three times: {why}")
    if result.out_of_time:
        output.note("the time budget is spent; the same command goes on")
    if not result.complete:
        output.note(f"{result.experiment}: {result.done} of {result.total} cells are in {root}")
        raise typer.Exit(1)
