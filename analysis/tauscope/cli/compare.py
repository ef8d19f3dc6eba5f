"""Commands that hold two selections against each other: compare and check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tauscope.cli import output
from tauscope.cli.options import Json

if TYPE_CHECKING:
    from tauscope.check import Judgement
    from tauscope.compare import Comparison

_SELECTOR = "STORE, STORE:COLUMN=VALUE,… or :COLUMN=VALUE,… of the usual store."
Baseline = Annotated[str, typer.Argument(metavar="BASELINE", help=f"Before: {_SELECTOR}")]
Candidate = Annotated[str, typer.Argument(metavar="CANDIDATE", help="After: the same.")]


def compare(
    a: Baseline,
    b: Candidate,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print what one pastes into a pull request.")
    ] = False,
    json: Json = False,
) -> None:
    """Hold two selections against each other: speed, outcomes, costs, outputs, what moved.

    \b
      tauscope compare traces/sample:arm=off traces/sample:arm=mtp1
      tauscope compare runs/main runs/branch
      tauscope compare runs/main:workload=code runs/branch:workload=code --markdown
      tauscope compare :arm=mtp1,drafter=old :arm=mtp1,drafter=new

    Prompts that both sides ran are paired. Conditions that keep a figure from being a
    verdict are named. Columns: workload, arm, machine, model, experiment, prompt_id, run_id,
    log_id, source, drafter, draft_depth, simulated.
    """
    from tauscope import pasted

    found = _compared(a, b)
    if json:
        output.emit_json(found.to_dict())
    elif markdown:
        typer.echo(pasted.markdown(found, a, b), nl=False)
    else:
        output.show(*_tables(found))


def check(
    baseline: Baseline,
    candidate: Candidate,
    max_loss: Annotated[
        str, typer.Option("--max-loss", metavar="SHARE", help="Loss of speed allowed, as 2%.")
    ] = "2%",
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write JUnit XML there too.")
    ] = None,
    json: Json = False,
) -> None:
    """Fail when decoding became slower than --max-loss allows: 0 no, 1 yes, 3 can't tell.

    \b
      tauscope check runs/main runs/branch --max-loss 2% --junit check.xml

    0 only when the whole interval of the loss lies within the limit; 1 when all of it lies
    beyond; 3 otherwise, with what is missing.
    """
    from tauscope import check as judging
    from tauscope import files

    limit = judging.fraction(max_loss)
    compared = _compared(baseline, candidate)
    for text in compared.only_b:
        output.note(text)
    found = judging.judge(compared, limit)
    if junit is not None:
        files.write_whole(junit, judging.junit(found))
    if json:
        output.emit_json(found.to_dict())
    else:
        output.show(_judgement(found))
    raise typer.Exit(found.code)


def _compared(a: str, b: str) -> Comparison:
    from tauscope import compare as comparing
    from tauscope import select

    sides = select.opened(a), select.opened(b)
    for side in sides:
        for damage in side.data.damaged:
            output.note(damage.text)
    return comparing.compare(*sides)


def _judgement(found: Judgement) -> Any:
    from tauscope import check as judging

    rows = [[case.name, judging.said(case, found.limit)] for case in found.cases]
    return output.table(f"check: {found.state}", ["workload and arm", "loss of speed"], rows, 400)


def _tables(found: Comparison) -> list[Any]:
    from tauscope import pasted

    most = pasted.moved_most(found.parts)
    speed, notes = [], []
    for row in found.speedups.iter_rows(named=True):
        key = tuple(row[name] for name in pasted.KEY)
        part = most.get(key)
        moved = f"{part['about']} {part['moved']:+.2f} ms/token" if part else "–"
        speed.append([
            _name(row), output.gain(row["speedup"], row["speedup_lo"], row["speedup_hi"]),
            str(row["pairs"]), row["said"] or "nothing",
            ", ".join(row["failed"]) or row["speedup_why"] or "", moved,
        ])  # fmt: skip
        notes += [f"  {output.short(_name(row))}: {remark}" for remark in row["remarks"]]
    simulated = " (simulated)" if found.speedups["simulated"].any() else ""
    heads = ["workload and arms", ">speed-up", ">pairs", "says", "why undecided", "moved most"]
    return [
        output.table(f"speed-up, 95 % intervals in brackets{simulated}", heads, speed),
        *notes,
        *(f"  {output.short(text, 400)}" for text in found.only_a + found.only_b),
        output.table(
            "outputs, lengths first",
            ["workload and arms", ">prompts in both", ">tokens before", ">after",
             ">lengths differ", ">equal", ">unequal", ">not compared", "first unequal"],
            (
                [_name(row), *(output.number(row[n], "d") for n in
                               ("prompts", "tokens_a", "tokens_b", "lengths_differ", "equal",
                                "unequal", "unknown")), ", ".join(row["differing"] or [])]
                for row in found.outputs.iter_rows(named=True)
            ),
        ),
        output.table(
            "metrics",
            ["workload and arms", "metric", ">before", ">after", "unit"],
            (
                [_name(row), row["label"],
                 *(output.interval(*(row[f"{s}{e}"] for e in ("", "_lo", "_hi"))) for s in "ab"),
                 row["unit"]]
                for row in found.metrics.iter_rows(named=True)
                if row["a"] is not None or row["b"] is not None
            ),
        ),
        output.table(
            "outcomes",
            ["workload and arms", "outcome", ">before", ">after", ">share before", ">share after"],
            (
                [_name(row), row["outcome"], str(row["cycles_a"]), str(row["cycles_b"]),
                 output.share(row["share_a"]), output.share(row["share_b"])]
                for row in found.outcomes.iter_rows(named=True)
            ),
        ),
        output.table(
            "costs, ms",
            ["workload and arms", "cost", ">before", ">after"],
            (
                [_name(row), row["cost"], output.number(row["a"], ".2f"),
                 output.number(row["b"], ".2f")]
                for row in found.costs.iter_rows(named=True)
            ),
        ),
        output.table(
            "what moved, ms per token (gains positive)",
            ["workload and arms", "part", ">before", ">after", ">moved"],
            (
                [_name(row), row["about"] + (" (derived)" if row["derived"] else ""),
                 *(output.number(row[n], "+.2f") for n in ("a", "b", "moved"))]
                if row["why"] is None
                else [_name(row), f"no waterfall: {row['why']}", "", "", ""]
                for row in found.parts.iter_rows(named=True)
            ),
        ),
    ]  # fmt: skip


def _name(row: dict[str, Any]) -> str:
    if row["arm_a"] == row["arm_b"]:
        return f"{row['workload']} {row['arm_b']}"
    return f"{row['workload']} {row['arm_a']} → {row['arm_b']}"
