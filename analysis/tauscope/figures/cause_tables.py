"""Frames of causes in, tables out; never a query. Conventions are those of tables.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from tauscope.compare import Comparison
from tauscope.economics.routing import Blend
from tauscope.economics.step import SOURCES
from tauscope.figures import cells, evidence, grouping, words
from tauscope.figures.cells import two
from tauscope.figures.drawing import Words
from tauscope.figures.tabling import Cell, Head, Table

WORKLOAD = Head("workload", number=False)


def costs(rows: pl.DataFrame) -> Table | Words:
    """T, d and V with their ratios (costs.table)."""
    if rows.is_empty():
        return Words("No costs: no cycle and no speed is here.")
    rows = grouping.ordered(rows)
    heads = [WORKLOAD, Head("plain step T", "ms", "what one ordinary token costs"),
             Head("T from", number=False), Head("sources differ by"),
             Head("drafting d", "ms", "Σ draft_ms / cycles that draft and log it"),
             Head("verification V", "ms", "Σ verify_ms / bets"),
             Head("V / d", "×"), Head("V / T", "×", "decides the sign of a gain"),
             Head("base decode", "ms"), Head("time", "ms/token")]  # fmt: skip
    body = []
    named = grouping.rows_of(rows)
    for name, row in named:
        sql = evidence.cycles(row)
        source = SOURCES[row["step_source"]][1] if row["step_source"] else "nothing gives it"
        derived = "what the listed stages leave" if row["base_derived"] else "as logged"
        body.append([
            cells.workload(name, row), _mean(row, "step_ms", source, sql),
            Cell((row["step_source"] or "nothing").replace("_", " "), about=source),
            Cell(words.percent(row["step_gap"], sign=True), row["gap_source"] or ""),
            _mean(row, "draft_ms", heads[4].about, sql),
            _mean(row, "verify_ms", heads[5].about, sql),
            _ratio(row, "verify_draft_ratio", 1), _ratio(row, "verify_step_ratio", 2),
            Cell("–") if row["base_ms"] is None else Cell(two(row["base_ms"]), derived),
            cells.known(row["ms_per_token"], two),
        ])  # fmt: skip
    return Table("costs", "What a cycle costs", heads, body, cells.with_sql(rows),
                 cells.remarks(named))  # fmt: skip


def bottlenecks(rows: pl.DataFrame, bars: pl.DataFrame) -> Table | Words:
    """What holds each arm back (bottleneck.table), with break-evens (breakeven.table)."""
    if rows.is_empty():
        return Words("No bottleneck: no arm with speculation is here.")
    keys = ["workload", "arm", "simulated", "machine", "model", "experiment"]
    extra = bars.select(*keys, "breakeven", "breakeven_lo", "breakeven_hi", "why")
    rows = grouping.ordered(
        rows.join(extra, on=keys, how="left", nulls_equal=True, maintain_order="left")
    )
    heads = [WORKLOAD, Head("bottleneck", number=False), Head("because", number=False),
             Head("accepted"), Head("break-even", about="acceptance at which the run breaks even"),
             Head("one more bet needs", about="(V − T) / time per token, a draft"),
             Head("folded drafts right"), Head("folds right", number=False)]  # fmt: skip
    body = []
    for name, row in grouping.rows_of(rows):
        span = words.span(row["breakeven_lo"], row["breakeven_hi"], words.percent)
        right = words.span(row["folded_right_lo"], row["folded_right_hi"], words.percent)
        body.append([
            cells.workload(name, row), Cell(row["bottleneck"] or "unknown"), Cell(row["because"]),
            Cell(words.percent(row["committed_acceptance"]),
                 sql=evidence.cycles(row, "committed_acceptance")),
            Cell(words.percent(row["breakeven"]), span)
            if row["breakeven"] is not None else cells.unknown(row["why"]),
            Cell(words.percent(row["bet_breakeven"])),
            Cell(words.percent(row["folded_right"]), right,
                 f"of {words.count(row['folded_known'])} folded drafts whose fate is known"
                 + (f", from {row['folds_from']}" if row["folds_from"] else ""),
                 f"{evidence.cycles(row)} AND outcome = 'folded'"),
            Cell(row["folds_right"]),
        ])  # fmt: skip
    note = "Folds are right when fewer of the folded drafts would be accepted than a bet needs."
    return Table("bottlenecks", "What holds speculation back", heads, body, rows, note)


def waterfall(rows: pl.DataFrame) -> Table | Words:
    """Part by part from the plain step to the time per token (waterfall.table)."""
    if rows.is_empty():
        return Words("No waterfall: no arm has both a plain step and times.")
    # The waterfall of an off arm is its own step, and nothing else.
    rows = grouping.ordered(rows.filter(pl.col("arm") != "off"))
    if rows.is_empty():
        return Words("No waterfall: no arm with speculation is here.")
    heads = [WORKLOAD, Head("part", number=False), Head("won or lost", "ms/token"),
             Head("in all", "ms"), Head("plain step", "ms"), Head("time", "ms/token"),
             Head("known by", number=False)]  # fmt: skip
    body = [
        [cells.workload(name, row), Cell(row["about"]),
         Cell(two(row["ms_each_token"]), sql=evidence.cycles(row))
         if row["why"] is None else cells.unknown(row["why"]),
         cells.known(row["part_ms"]), cells.known(row["step_ms"], two),
         cells.known(row["ms_per_token"], two),
         Cell("what is left" if row["derived"] else "logged")]
        for name, row in grouping.rows_of(rows)
    ]  # fmt: skip
    note = "Parts add up to the plain step less the time per token; a part that is what others \
leave proves nothing."
    return Table("waterfall", "Where a token's time is won", heads, body, rows, note)


def modelled(rows: pl.DataFrame) -> Table | Words:
    """Speed-ups from an arm's own costs (modelled.table), never beside measured ones."""
    if rows.is_empty():
        return Words("No modelled speed-up: no arm with speculation is here.")
    rows = grouping.ordered(rows)
    heads = [WORKLOAD, Head("verdict", number=False), Head("modelled speed-up"),
             Head("with T + 0.3 ms"), Head("plain step", "ms"), Head("T from", number=False),
             Head("why", number=False)]  # fmt: skip
    body = []
    for name, row in grouping.rows_of(rows):
        said = row["verdict"] or "none"
        slower = words.span(row["slower_step_lo"], row["slower_step_hi"], words.change)
        span = words.span(row["speedup_lo"], row["speedup_hi"], words.change)
        why = words.reasons(row["reasons"], row) if row["verdict"] else row["speedup_why"]
        body.append([
            cells.workload(name, row), Cell(said if row["verdict"] else "no verdict", kind=said),
            Cell(words.change(row["speedup"]), span, "T × τ / mean cycle", evidence.cycles(row)),
            Cell(words.change(row["slower_step_speedup"]), slower),
            cells.known(row["step_ms"], two),
            Cell(SOURCES[row["step_source"]][1] if row["step_source"] else "nothing gives it"),
            Cell(why or "the whole interval lies on one side of no change"),
        ])  # fmt: skip
    return Table("modelled", "Speed-up as these costs predict it", heads, body, rows)


def course(rows: pl.DataFrame) -> Table | Words:
    """Warm-up, drift and throttling, a run or an arm of an experiment a row (costs.course)."""
    if rows.is_empty():
        return Words("No course: no cycle was logged.")
    heads = [Head("run or experiment", number=False), Head("arm", number=False), Head("runs"),
             Head("cycles"), Head("warm-up", "cycles"),
             Head("drift", about="last third over first third"),
             Head("of the path", number=False), Head("says", number=False)]  # fmt: skip
    body = [
        [Cell(words.label(row["stretch"]), "simulated" if row["simulated"] else "real"),
         Cell(words.label(row["arm"])), Cell(words.count(row["runs"])),
         Cell(words.count(row["cycles"])),
         cells.known(row["warmup_cycles"]), Cell(words.percent(row["drift"], sign=True)),
         Cell(row["outcome"] or "–"), Cell(row["flag"] or "too short to tell")]
        for row in rows.iter_rows(named=True)
    ]  # fmt: skip
    return Table("course", "Does the machine hold its speed?", heads, body, rows)


def compared(found: Comparison) -> Table | Words:
    """The speed-ups of a comparison, with failed conditions by name."""
    if found.speedups.is_empty():
        return Words(f"Nothing to compare: {words.listed(found.only_a)}.")
    rows = grouping.ordered(found.speedups.with_columns(arm=_arms()))
    heads = [WORKLOAD, Head("says", number=False), Head("speed-up"), Head("before", "ms/token"),
             Head("after", "ms/token"), Head("prompts in both"),
             Head("why", number=False)]  # fmt: skip
    kinds = {"faster": "on", "slower": "off", "undecided": "undecided"}
    body = []
    named = grouping.rows_of(rows)
    for name, row in named:
        span = words.span(row["speedup_lo"], row["speedup_hi"], words.change)
        why = words.reasons(row["failed"], row) or row["speedup_why"]
        body.append([
            cells.workload(name, row),
            Cell(row["said"] or "nothing", kind=kinds.get(row["said"], "none")),
            Cell(words.change(row["speedup"]), span, "ms per token before / after"),
            cells.known(row["ms_per_token_a"], two), cells.known(row["ms_per_token_b"], two),
            Cell(words.count(row["pairs"])),
            Cell(why or "nothing speaks against it"),
        ])  # fmt: skip
    lone = [words.label(text, 200) for text in found.only_a + found.only_b]
    note = " ".join([cells.remarks(named), *(f"{text}." for text in lone)])
    return Table("compared", "Before and after", heads, body, rows, note.strip())


def outputs(found: Comparison) -> Table | Words:
    """Losslessness: lengths first, then hashes."""
    if found.outputs.is_empty():
        return Words("No outputs to hold against each other.")
    rows = grouping.ordered(found.outputs.with_columns(arm=_arms()))
    heads = [WORKLOAD, Head("prompts in both"), Head("before", "tokens"), Head("after", "tokens"),
             Head("lengths differ"), Head("equal"), Head("unequal"), Head("not compared"),
             Head("first unequal", number=False)]  # fmt: skip
    body = [
        [cells.workload(name, row), *(cells.known(row[key]) for key in (
            "prompts", "tokens_a", "tokens_b", "lengths_differ", "equal", "unequal", "unknown")),
         Cell(words.listed([words.label(text) for text in row["differing"] or []]) or "–")]
        for name, row in grouping.rows_of(rows)
    ]  # fmt: skip
    return Table("outputs", "Is the output the same?", heads, body, rows)


def sides(found: Comparison) -> Table | Words:
    """Metrics, outcomes and costs of both sides, one below another."""
    told = [
        *({**row, "what": row["label"], "write": words.number} for row in found.metrics.to_dicts()),
        *({**row, "what": f"share of cycles {row['outcome']}", "unit": "ratio",
           "a": row["share_a"], "b": row["share_b"], "write": words.number}
          for row in found.outcomes.to_dicts()),
        *({**row, "what": row["cost"], "write": two} for row in found.costs.to_dicts()),
    ]  # fmt: skip
    told = [row for row in told if row["a"] is not None or row["b"] is not None]
    if not told:
        return Words("No metric is known on either side.")
    keys = ["workload", "simulated", "machine", "model", "arm_a", "arm_b", "what", "unit", "a", "b"]
    rows = pl.DataFrame([{key: row[key] for key in keys} for row in told]).with_columns(arm=_arms())
    write = {row["what"]: row["write"] for row in told}
    heads = [WORKLOAD, Head("what", number=False), Head("before"), Head("after"),
             Head("unit", number=False)]  # fmt: skip
    ordered = grouping.ordered(rows)
    body = [
        [cells.workload(name, row), Cell(row["what"]),
         *(cells.known(row[side], write[row["what"]]) for side in ("a", "b")), Cell(row["unit"])]
        for name, row in grouping.rows_of(ordered)
    ]  # fmt: skip
    return Table("sides", "Side by side", heads, body, ordered)


def parts(found: Comparison) -> Table | Words:
    """Which part of the waterfall moved."""
    if found.parts.is_empty():
        return Words("No waterfall on either side.")
    rows = grouping.ordered(found.parts.with_columns(arm=_arms()))
    heads = [WORKLOAD, Head("part", number=False), Head("before", "ms/token"),
             Head("after", "ms/token"),
             Head("moved", "ms/token", "positive: time won")]  # fmt: skip
    body = [
        [cells.workload(name, row), Cell(row["about"], row["why"] or ""),
         *(cells.known(row[key], two) for key in ("a", "b", "moved"))]
        for name, row in grouping.rows_of(rows)
    ]  # fmt: skip
    note = "What moved adds up to the time that a token is faster."
    return Table("parts", "What moved", heads, body, rows, note)


def routes(rows: pl.DataFrame) -> Table | Words:
    """Where to send which workload (routing.table); measured and modelled gains apart."""
    if rows.is_empty():
        return Words("Nothing to route: no arm with speculation is here.")
    rows = grouping.ordered(rows)
    kinds = {"on": "on", "off": "off", "elsewhere": "off", "undecided": "undecided"}
    heads = [WORKLOAD, Head("decision", number=False), Head("send to", number=False),
             Head("gain, measured"), Head("gain, modelled"), Head("saved", "s a turn"),
             Head("why", number=False)]  # fmt: skip
    body = [
        [cells.workload(name, row), Cell(row["decision"], kind=kinds[row["decision"]]),
         Cell("–" if row["send_to"] is None else words.label(row["send_to"])),
         *(Cell(words.change(row[key]),
                words.span(row[f"{key}_lo"], row[f"{key}_hi"], words.change))
           for key in ("speedup", "modelled")),
         Cell(two(row["saved_s"]), words.span(row["saved_s_lo"], row["saved_s_hi"], two)),
         Cell(row["why"])]
        for name, row in grouping.rows_of(rows)
    ]  # fmt: skip
    return Table("routes", f"Where to send it, {grouping.under(rows)}", heads, body, rows)


def wrong_labels(rows: pl.DataFrame) -> Table | Words:
    """What it costs to take one workload for another (routing.wrong_labels)."""
    if rows.is_empty():
        return Words("No label can go wrong: all decided workloads go the same way.")
    rows = grouping.ordered(rows)
    heads = [WORKLOAD, Head("taken for", number=False), Head("goes to", number=False),
             Head("lost", "ms/token"), Head("of its time"), Head("lost", "s a turn")]  # fmt: skip
    body = [
        [cells.workload(name, row), Cell(words.label(row["taken_for"])),
         Cell(words.label(row["goes_to"])), Cell(two(row["ms_per_token"])),
         Cell(words.percent(row["share"])), cells.known(row["seconds"], two)]
        for name, row in grouping.rows_of(rows)
    ]  # fmt: skip
    return Table("wrong_labels", "What a wrong label costs", heads, body, rows)


def blended(found: Blend | None) -> Table | Words:
    """What a traffic mix comes to (routing.blend)."""
    if found is None:
        return Words("No mix: fewer than one workload has a speed with and without speculation.")
    told = words.listed([f"{words.label(n)} {words.percent(w, 0)}" for n, w in found.mix.items()])
    rows = [
        {"traffic": name, "speedup": i.value, "speedup_lo": i.lo, "speedup_hi": i.hi}
        for name, i in (("all on", found.all_on), ("routed", found.routed))
    ]
    body = [
        [Cell(row["traffic"]),
         Cell(words.change(row["speedup"]),
              words.span(row["speedup_lo"], row["speedup_hi"], words.change))]
        for row in rows
    ]  # fmt: skip
    even = found.break_even_share
    note = f"Shares of tokens: {told}; {found.basis}. "
    note += (
        f"No break-even mix: {found.why}." if even is None
        else f"All on breaks even when {words.percent(even)} of the tokens are of losing "
             f"workloads; here {words.percent(found.losing_share)} are."
    )  # fmt: skip
    heads = [Head("traffic", number=False), Head("speed-up over all off")]
    title = f"What a mix comes to, under {words.label(found.arm)} ({words.made(found.simulated)})"
    return Table("blend", title, heads, body, pl.DataFrame(rows), note)


def _arms() -> pl.Expr:
    same = pl.when(pl.col("arm_a") == pl.col("arm_b")).then("arm_a")
    return same.otherwise(pl.format("{} → {}", "arm_a", "arm_b"))


def _mean(row: Mapping[str, Any], name: str, about: str, sql: str) -> Cell:
    if row[name] is None:
        return Cell("–")
    return Cell(
        two(row[name]),
        words.span(row[f"{name}_lo"], row[f"{name}_hi"], two),
        about,
        sql,
    )


def _ratio(row: Mapping[str, Any], name: str, digits: int) -> Cell:
    if row[name] is None:
        return Cell("–")
    return Cell(words.number(row[name], digits),
                words.span(row[f"{name}_lo"], row[f"{name}_hi"]))  # fmt: skip
