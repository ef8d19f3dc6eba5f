"""Commands that account for what a log says: the ledger, and other tools' names for it."""

from __future__ import annotations

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
    dims = ["workload", "arm", "simulated"]
    output.show_frame(
        outcomes.select(*dims, "outcome", "cycles", "emitted", "drafted", "verified", "accepted"),
        "outcomes, cycles and tokens",
    )
    output.show_frame(stages.select(*dims, "stage", "ms", "ms_per_token"), "milliseconds by stage")
    output.show_frame(
        runs.select("source", "arm", "generated_tokens", "emitted", "unattributed_tokens",
                    "unlogged", "decode_ms", "cycles_ms", "unattributed_ms"),
        "what adds up: tokens and ms",
    )  # fmt: skip
    if refused.height:
        output.show_frame(refused, "kept out of every figure")
    output.note(words.ledger_answer(runs.to_dicts(), outcomes.to_dicts(), len(data.damaged)))


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
    output.show_frame(
        rows.select("arm", "simulated", "tool", "value", "num", "den", "formula", "why"),
        "the same cycles under other names",
    )
    output.note("lengths that begin with 1 + are their numerator over their denominator, and 1")
