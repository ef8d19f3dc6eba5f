"""Commands that tell costs and where to send traffic: cost and route."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tauscope.cli import output
from tauscope.cli.options import Json, Traces, Where, where_of
from tauscope.errors import Problem

if TYPE_CHECKING:
    import polars as pl

    from tauscope.economics.routing import Blend


# Drifts that are named in a terminal.
FLAGGED = 5
_NOTHING = "all off: nothing is decided for speculation"


def cost(where: Where = None, traces: Traces = None, json: Json = False) -> None:
    """What cycles cost and why speculation pays or not: T, d, V, break-even, waterfall.

    \b
      tauscope cost
      tauscope cost --where workload=code --where arm=mtp1
      tauscope cost --json | jq '.bottlenecks[] | {workload, arm, bottleneck, because}'

    T is the plain step, d the drafting of a cycle, V a verification; each with its source
    and, in the JSON, with costs per path, by context position and over time.
    """
    from tauscope.economics import bottleneck, breakeven, costs, modelled, step, waterfall

    data = output.opened(traces)
    chosen = where_of(where, data)
    found = costs.each(data, chosen)
    frames = {
        "costs": costs.table(found),
        "steps": step.table(data, chosen),
        "breakeven": breakeven.table(found),
        "waterfall": waterfall.table(found),
        "bottlenecks": bottleneck.table(data, found),
        "modelled": modelled.table(data, found, chosen),
        "course": costs.course(data, chosen),
    }
    if json:
        more = {"paths": costs.paths, "positions": costs.by_position, "over_time": costs.over_time}
        frames |= {name: ask(data, chosen) for name, ask in more.items()}
        output.emit_json({name: frame.to_dicts() for name, frame in frames.items()})
        return
    if not found:
        raise output.nothing(data)
    output.show(*_cost_tables(frames))


def route(
    mix: Annotated[
        str | None,
        typer.Option(
            metavar="WORKLOAD=SHARE,…", help="A traffic mix, shares of tokens: agent=0.5,chat=0.5."
        ),
    ] = None,
    arm: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The arm to ask about; else the one that says most."),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the policy there, as .toml or .json."),
    ] = None,
    where: Where = None,
    traces: Traces = None,
    json: Json = False,
) -> None:
    """Per workload: speculation on, off, elsewhere (another arm) or undecided, and why.

    \b
      tauscope route
      tauscope route --mix agent=0.5,chat=0.5 --where simulated=true
      tauscope route --policy policy.toml --where machine='Apple M5 Max, 128.00 GiB RAM'

    Gains are measured (both arms ran the prompts) or, in a column apart, modelled. A mix is
    blended by shares of tokens, 0.5 or 50%; what is undecided counts as off.
    """
    from tauscope import files
    from tauscope.economics import policy as policies
    from tauscope.economics import routing

    weights = routing.shares(mix) if mix else None
    data = output.opened(traces)
    chosen = where_of(where, data)
    rows = routing.table(data, chosen, arm)
    blend = routing.blend(rows, weights) if weights else None
    wrong, left = routing.wrong_labels(rows), routing.left_out(data, rows, chosen)
    if policy is not None:
        written = policies.document(data, rows, chosen, blend)
        files.write_whole(policy, policies.encoded(written, policy))
    if json:
        output.emit_json({"routes": rows.to_dicts(), "wrong_labels": wrong.to_dicts(),
                          "left_out": left.to_dicts(),
                          "blend": blend.to_dict() if blend else None})  # fmt: skip
        return
    if rows.is_empty():
        output.show(*(f"  not routed: {output.short(r['workload'])}: {r['why']}"
                      for r in left.iter_rows(named=True)))  # fmt: skip
        raise (
            output.nothing(data)
            if left.is_empty()
            else Problem(
                "route: no arm with speculation in this selection; run one beside the off arm"
            )
        )
    output.show(*_route_tables(rows, wrong, blend, left))


def _cost_tables(frames: dict[str, pl.DataFrame]) -> list[Any]:
    from tauscope.economics.step import SOURCES

    num, span = output.number, output.interval
    known = frames["costs"]
    # One set of columns for all tables, so that a row is found again in the next one.
    beside, heads = output.apart(known, ["workload", "arm"])
    first = ["workload", "arm", *heads]

    def key(row: dict[str, Any]) -> list[str]:
        return [row["workload"], row["arm"], *output.which(row, beside)]

    shown: list[Any] = [output.table(
        output.title("costs in ms, 95 % intervals in brackets", known),
        [*first, ">plain step T, ms", "T from", ">sources differ by", ">drafting d, ms a cycle",
         ">verification V, ms", ">V/d, ×", ">V/T, ×", ">base decode, ms", ">ms/token"],
        (
            [*key(r), span(r["step_ms"], r["step_ms_lo"], r["step_ms_hi"], ".2f"),
             r["step_source"] or "–", output.share(r["step_gap"]),
             span(r["draft_ms"], r["draft_ms_lo"], r["draft_ms_hi"], ".2f"),
             span(r["verify_ms"], r["verify_ms_lo"], r["verify_ms_hi"], ".2f"),
             num(r["verify_draft_ratio"], ".1f"), num(r["verify_step_ratio"], ".2f"),
             num(r["base_ms"], ".2f")
             + (" (derived)" if r["base_derived"] and r["base_ms"] is not None else ""),
             num(r["ms_per_token"], ".2f")]
            for r in known.iter_rows(named=True)
        ),
    )]  # fmt: skip
    sources = [*known["step_source"], *frames["modelled"]["step_source"]]
    shown += [f"  T from {name}: {SOURCES[name][1]}" for name in dict.fromkeys(sources) if name]
    even = frames["breakeven"]
    shown.append(output.table(
        output.title("break-even, as committed acceptance, 95 % intervals in brackets", even),
        [*first, ">acceptance", ">break-even of the run", ">break-even of one more bet",
         "unknown because"],
        (
            [*key(r), output.share(r["committed_acceptance"]), _bar(r, "breakeven"),
             _bar(r, "bet_breakeven"), r["why"] or ""]
            for r in even.iter_rows(named=True)
        ),
    ))  # fmt: skip
    if any((r[name] or 0) > 1 for r in even.to_dicts() for name in ("breakeven", "bet_breakeven")):
        shown.append("  above 100 %: even if every draft is accepted it doesn't pay")
    shown += [output.table(
        output.title("bottleneck", frames["bottlenecks"]),
        [*first, "bottleneck", "because", "folds right"],
        (
            [*key(r), r["bottleneck"] or "unknown", r["because"], r["folds_right"]]
            for r in frames["bottlenecks"].iter_rows(named=True)
        ),
    ), output.table(
        output.title("waterfall, ms per token from the plain step (gains positive)",
                     frames["waterfall"]),
        [*first, "part", ">ms/token", "note"],
        (
            [*key(r), r["about"], num(r["ms_each_token"], "+.2f"),
             r["why"] or ("derived as a rest" if r["derived"] else "")]
            for r in frames["waterfall"].iter_rows(named=True)
            if r["arm"] != "off"
        ),
    ), output.table(
        output.title("speed-up as modelled from these costs (never a measured one)",
                     frames["modelled"]),
        [*first, ">speed-up", ">with T + 0.3 ms", "T from", "verdict", "why undecided"],
        (
            [*key(r),
             output.gain(r["speedup"], r["speedup_lo"], r["speedup_hi"]),
             output.gain(r["slower_step_speedup"], r["slower_step_lo"], r["slower_step_hi"]),
             r["step_source"] or "–", r["verdict"] or "none",
             ", ".join(r["reasons"]) or r["speedup_why"] or ""]
            for r in frames["modelled"].iter_rows(named=True)
        ),
    )]  # fmt: skip
    shown += output.codes(frames["modelled"])
    shown += _flagged(frames["course"])
    said: dict[str, list[str]] = {}
    for r in known.iter_rows(named=True):
        for text in r["remarks"]:
            said.setdefault(text, []).append(" ".join(key(r)))
    shown += [f"  {output.listed(who)}: {text}" for text, who in said.items()]
    return shown


def _bar(row: dict[str, Any], name: str) -> str:
    """An acceptance that has to be reached, as percent."""
    text = output.share(*(row[f"{name}{end}"] for end in ("", "_lo", "_hi")))
    return f"{text}: can't be reached" if (row[name] or 0) > 1 else text


def _flagged(course: pl.DataFrame) -> list[str]:
    """What drifts, the worst first, and how many more there are."""
    rows = [r for r in course.iter_rows(named=True) if r["flag"] not in (None, "steady")]
    rows.sort(key=lambda r: -abs(r["drift"]))
    mixed = course["simulated"].n_unique() > 1
    shown = [
        f"  {output.short(r['stretch'])} {output.short(r['arm'])}"
        f"{' (' + output.made(r['simulated']) + ')' if mixed else ''} {r['flag']}: {r['outcome']} "
        f"cycles {r['drift']:+.1%} per token from the first third to the last"
        for r in rows[:FLAGGED]
    ]
    if len(rows) > FLAGGED:
        shown.append(
            f"  … and {len(rows) - FLAGGED} more of {course.height} drift less: "
            "tauscope cost --json | jq .course"
        )
    return shown


def _route_tables(
    rows: pl.DataFrame, wrong: pl.DataFrame, blend: Blend | None, left: pl.DataFrame
) -> list[Any]:
    beside, heads = output.apart(rows, ["workload"])
    columns = ["workload", "arm", *heads, "decision", "send to", ">gain, measured",
               ">gain, modelled", ">seconds saved a turn", "why"]  # fmt: skip
    cells = [
        [r["workload"], r["arm"], *output.which(r, beside), r["decision"], r["send_to"] or "–",
         output.gain(r["speedup"], r["speedup_lo"], r["speedup_hi"]),
         output.gain(r["modelled"], r["modelled_lo"], r["modelled_hi"]),
         output.interval(r["saved_s"], r["saved_s_lo"], r["saved_s_hi"], "+.2f"), r["why"]]
        for r in rows.iter_rows(named=True)
    ]  # fmt: skip
    title = output.title("routing, 95 % intervals in brackets", rows)
    shown: list[Any] = [output.table(title, columns, cells)]
    for r in left.iter_rows(named=True):
        name = " ".join(output.short(text) for text in [r["workload"], *output.which(r, beside)])
        shown.append(f"  not routed: {name}: {r['why']}")
    if not wrong.is_empty():
        shown.append(output.table(
            output.title("what a wrong label costs", wrong),
            ["workload", "taken for", *heads, "goes to", ">ms/token lost", ">of its time",
             ">s a turn"],
            (
                [r["workload"], r["taken_for"], *output.which(r, beside), r["goes_to"],
                 output.number(r["ms_per_token"], "+.2f"), output.share(r["share"]),
                 output.number(r["seconds"], ".2f")]
                for r in wrong.iter_rows(named=True)
            ),
        ))  # fmt: skip
    if blend:
        told = [f"{output.short(name)} {share:.0%}" for name, share in blend.mix.items()]
        nothing = blend.routed.method == "nothing is routed to speculation"
        shown.append(output.table(
            f"the mix {', '.join(told)}, by tokens, against all off ({blend.basis})",
            ["traffic", ">speed-up"],
            [["all on", output.gain(blend.all_on.value, blend.all_on.lo, blend.all_on.hi)],
             ["routed", _NOTHING if nothing else
              output.gain(blend.routed.value, blend.routed.lo, blend.routed.hi)]],
        ))  # fmt: skip
        if blend.break_even_share is None:
            shown.append(f"  no break-even mix: {blend.why}")
        else:
            shown.append(
                f"  all on breaks even when {blend.break_even_share:.1%} of the tokens are of "
                f"losing workloads, in their present proportions; here {blend.losing_share:.1%} are"
            )
    return shown
