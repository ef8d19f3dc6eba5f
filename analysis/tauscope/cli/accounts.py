"""Commands that account for what a log says: the ledger, and other tools' names for it."""

from __future__ import annotations

from typing import Any

from tauscope.cli import output
from tauscope.cli.options import Json, Traces, Where, where_of


def ledger(where: Where = None, traces: Traces = None, json: Json = False) -> None:
    """Where tokens and milliseconds went, and what doesn't add up, run by run.

    \b
      tauscope ledger
      tauscope ledger --where workload=code --json
    """
    from tauscope import ledger as found
    from tauscope.figures import words

    data = output.opened(traces)
    chosen = where_of(where, data)
    runs, outcomes = found.runs(data, chosen), found.outcomes(data, chosen)
    stages, refused = found.stages(data, chosen), found.refused(data, chosen)
    if json:
        output.emit_json(
            {"runs": runs.to_dicts(), "outcomes": outcomes.to_dicts(),
             "stages": stages.to_dicts(), "refused": refused.to_dicts()}
        )  # fmt: skip
        return
    if runs.is_empty():
        raise output.nothing(data)
    beside, heads = output.apart(outcomes, ["workload", "arm", "outcome"])
    first = ["workload", "arm", *heads]

    def key(row: dict[str, Any]) -> list[str]:
        return [row["workload"], row["arm"], *output.which(row, beside)]

    counts = ("cycles", "emitted", "drafted", "verified", "accepted")
    output.show(
        output.table(
            output.title("outcomes, cycles and tokens", outcomes),
            [*first, "outcome", ">cycles", ">tokens emitted", ">drafted", ">verified",
             ">accepted"],
            (
                [*key(r), r["outcome"], *(output.number(r[n], ",d") for n in counts)]
                for r in outcomes.iter_rows(named=True)
            ),
        ),
        output.table(
            output.title("milliseconds by stage", stages),
            [*first, "stage", ">ms", ">ms/token"],
            (
                [*key(r), r["stage"], *_ms(r["ms"]), *_ms(r["ms_per_token"], 3)]
                for r in stages.iter_rows(named=True)
            ),
        ),
    )  # fmt: skip
    of, more = output.apart(runs, ["run_id"])
    tokens = ("generated_tokens", "emitted", "unattributed_tokens", "unlogged")
    output.show(
        output.table(
            output.title("what adds up: tokens and ms", runs),
            ["source", "arm", *more, ">tokens generated", ">emitted", ">unattributed tokens",
             ">unlogged cycles", ">decode, ms", ">cycles, ms", ">unattributed, ms"],
            (
                [r["source"], r["arm"], *output.which(r, of),
                 *(output.number(r[n], ",d") for n in tokens),
                 *_ms(r["decode_ms"]), *_ms(r["cycles_ms"]), *_ms(r["unattributed_ms"])]
                for r in runs.iter_rows(named=True)
            ),
        )
    )  # fmt: skip
    if refused.height:
        output.show_frame(refused, "kept out of every figure")
    output.note(words.ledger_answer(runs.to_dicts(), outcomes.to_dicts(), len(data.damaged)))


def _ms(value: float | None, digits: int = 1) -> list[str]:
    """A time as a cell; what rounds to nothing has no sign."""
    return [output.number(value, f"z,.{digits}f")]


def rosetta(where: Where = None, traces: Traces = None, json: Json = False) -> None:
    """The same cycles under other tools' names, numerator and denominator beside each.

    \b
      tauscope rosetta
      tauscope rosetta --where workload=code --json
    """
    from tauscope import rosetta as names

    data = output.opened(traces)
    rows = names.table(data, where_of(where, data))
    if json:
        output.emit_json(rows.drop("depth"))
        return
    if rows.is_empty():
        raise output.nothing(data)
    beside, heads = output.apart(rows, ["arm", "name"])
    output.show(
        output.table(
            output.title("the same cycles under other names", rows),
            ["arm", *heads, "tool", ">value", ">numerator", ">denominator", "formula", "why"],
            (
                [r["arm"], *output.which(r, beside), r["tool"], _printed(r),
                 *(output.number(r[n], ",.6g") for n in ("num", "den")), r["formula"],
                 r["why"] or ""]
                for r in rows.iter_rows(named=True)
            ),
            keys=2 + len(heads),
        )
    )  # fmt: skip
    output.note("lengths that begin with 1 + are their numerator over their denominator, and 1")


def _printed(row: dict[str, Any]) -> str:
    return output.share(row["value"]) if row["kind"] == "ratio" else output.number(row["value"])
