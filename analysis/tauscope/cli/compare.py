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
    beyond; 3 otherwise, with what is missing: a store that isn't there tells of no loss.
    """
    from tauscope import check as judging
    from tauscope import files

    limit = judging.fraction(max_loss)
    with output.cant_tell():
        compared = _compared(baseline, candidate)
    for text in compared.only_b:
        output.note(text)
    found = judging.judge(compared, limit)
    if junit is not None:
        with output.cant_tell():
            files.write_whole(junit, judging.junit(found))
    if json:
        output.emit_json(found.to_dict())
    else:
        output.show(_judgement(found, output.title("check", compared.speedups)))
    raise typer.Exit(found.code)


def _compared(a: str, b: str) -> Comparison:
    from tauscope import compare as comparing
    from tauscope import metrics, select

    sides = select.opened(a), select.opened(b)
    for side in sides:
        for damage in side.data.damaged:
            output.note(damage.text)
    for side in sides:
        if metrics.clusters(side.data, ("arm",), side.where).is_empty():
            raise output.nothing(side.data, f"{side.text}: ")
    return comparing.compare(*sides)


def _judgement(found: Judgement, title: str) -> Any:
    from tauscope import check as judging

    rows = [[case.name, judging.said(case, found.limit)] for case in found.cases]
    # The names are whole sentences where one side lacks something; they wrap.
    heads = ["workload and its arms", "speed"]
    return output.table(f"{title}: {found.state}", heads, rows)


def _tables(found: Comparison) -> list[Any]:
    from tauscope import pasted

    most = pasted.moved_most(found.parts)
    beside, columns = output.apart(found.speedups, ["workload", "arm_a", "arm_b"])
    first = ["workload and arms", *columns]

    def key(row: dict[str, Any]) -> list[str]:
        return [_name(row), *output.which(row, beside)]

    speed, notes = [], output.codes(found.speedups, "failed")
    for row in found.speedups.iter_rows(named=True):
        part = most.get(tuple(row[name] for name in pasted.KEY))
        moved = f"{part['about']} {part['moved']:+.2f} ms/token" if part else "–"
        speed.append([
            *key(row), output.gain(row["speedup"], row["speedup_lo"], row["speedup_hi"]),
            str(row["pairs"]), row["said"] or "nothing",
            ", ".join(row["failed"]) or row["speedup_why"] or "", moved,
        ])  # fmt: skip
        notes += [f"  {output.listed([' '.join(key(row))])}: {remark}" for remark in row["remarks"]]
    heads = [*first, ">speed-up", ">pairs", "says", "why undecided", "moved most"]
    return [
        output.table(
            output.title("speed-up, 95 % intervals in brackets", found.speedups), heads, speed
        ),
        *notes,
        *(f"  {output.clean(text)}" for text in found.only_a + found.only_b),
        output.table(
            "outputs, lengths first",
            [*first, ">prompts in both", ">tokens before", ">after",
             ">lengths differ", ">equal", ">unequal", ">not compared", "first unequal"],
            (
                [*key(row), *(output.number(row[n], ",d") for n in
                               ("prompts", "tokens_a", "tokens_b", "lengths_differ", "equal",
                                "unequal", "unknown")), ", ".join(row["differing"] or [])]
                for row in found.outputs.iter_rows(named=True)
            ),
        ),
        output.table(
            "metrics",
            [*first, "metric", ">before", ">after", "unit"],
            (
                [*key(row), row["label"], *(_value(row, side) for side in "ab"),
                 "%" if row["unit"] == "ratio" else row["unit"]]
                for row in found.metrics.iter_rows(named=True)
                if row["a"] is not None or row["b"] is not None
            ),
        ),
        output.table(
            "outcomes",
            [*first, "outcome", ">before", ">after", ">share before", ">share after"],
            (
                [*key(row), row["outcome"], f"{row['cycles_a']:,}", f"{row['cycles_b']:,}",
                 output.share(row["share_a"]), output.share(row["share_b"])]
                for row in found.outcomes.iter_rows(named=True)
            ),
        ),
        output.table(
            "costs, ms",
            [*first, "cost", ">before", ">after"],
            (
                [*key(row), row["cost"], output.number(row["a"], ".2f"),
                 output.number(row["b"], ".2f")]
                for row in found.costs.iter_rows(named=True)
            ),
        ),
        output.table(
            "what moved, ms per token (gains positive)",
            [*first, "part", ">before", ">after", ">moved"],
            (
                [*key(row), row["about"] + (" (derived)" if row["derived"] else ""),
                 *(output.number(row[n], "+.2f") for n in ("a", "b", "moved"))]
                if row["why"] is None
                else [*key(row), f"no waterfall: {row['why']}", "", "", ""]
                for row in found.parts.iter_rows(named=True)
            ),
        ),
    ]  # fmt: skip


def _value(row: dict[str, Any], side: str) -> str:
    ends = [row[f"{side}{end}"] for end in ("", "_lo", "_hi")]
    return output.share(*ends) if row["unit"] == "ratio" else output.interval(*ends)


def _name(row: dict[str, Any]) -> str:
    if row["arm_a"] == row["arm_b"]:
        return f"{row['workload']} {row['arm_b']}"
    return f"{row['workload']} {row['arm_a']} → {row['arm_b']}"
