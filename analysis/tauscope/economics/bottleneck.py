"""What holds speculation back, with the numbers that say so, and whether folds were right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from tauscope import arms, catalog, schema, stats, within
from tauscope.economics import breakeven, sums
from tauscope.economics.costs import Costs
from tauscope.figures import words

VERIFIER_BAR, DRAFT_BAR = 0.95, 0.25
LOW_ACCEPTANCE, HIGH_ACCEPTANCE, MANY_FOLDS = 0.8, 0.9, 0.3
UNKNOWN = "unknown"
SCHEMA = {
    **{name: pl.Boolean if name == "simulated" else pl.String for name in sums.GROUP},
    "bottleneck": pl.String, "because": pl.String, "verifier_bar": pl.Float64,
    "draft_share": pl.Float64, "committed_acceptance": pl.Float64, "fold_rate": pl.Float64,
    "folds_right": pl.String, "folded_right": pl.Float64, "folded_right_lo": pl.Float64,
    "folded_right_hi": pl.Float64, "folded_known": pl.Int64, "folds_from": pl.String,
    "bet_breakeven": pl.Float64, "remarks": pl.List(pl.String),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Folds:
    """Were the folds right? `right` is how often a folded draft would have been accepted."""

    said: str
    right: stats.Interval
    known: int
    source: str | None
    bar: float | None


def table(data: catalog.Catalog, found: list[Costs]) -> pl.DataFrame:
    """One row an arm that drafts: columns of SCHEMA.

    `bottleneck` is verifier, draft cost, drafter, gate or none; null where what decides is
    unknown, with `because`.
    """
    rows = []
    for costs in found:
        if not costs.drafts:
            continue
        said = folds(data, costs, found)
        name, because, numbers = _name(costs, said)
        gap = costs.step.disagree()
        rows.append({
            **costs.key, "bottleneck": name, "because": because, **numbers,
            "folds_right": said.said, "folded_right": said.right.value,
            "folded_right_lo": said.right.lo, "folded_right_hi": said.right.hi,
            "folded_known": said.known, "folds_from": said.source, "bet_breakeven": said.bar,
            "remarks": ["sources of the plain step differ by more than 3 %"] if gap else [],
        })  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def folds(data: catalog.Catalog, costs: Costs, found: list[Costs]) -> Folds:
    """`yes` when folded drafts would be accepted less often than one more bet needs.

    From the next token of the folds themselves, else from the shadow arm's drafts below the
    same bar. `yes` and `no` need the whole interval on one side.
    """
    bar = None if costs.missing() else breakeven.bet(costs).value
    known = costs.sum("folds_right_den")
    source = "next_token"
    if known:
        rows = costs.rows
        right = stats.proportion(rows["folds_right_num"], rows["folds_right_den"])
        if right.lo is None:
            cells = sums.cycle_cells(data, sums.alone(costs.key, rows))
            cells = cells.filter(pl.col("right_den") > 0)
            right = within.within_run(cells["right_num"], cells["right_den"], "proportion")
    else:
        right, known = _shadow(data, costs, found)
        source = "shadow" if known else None
    if not costs.sum("folds") or bar is None or not known:
        said = UNKNOWN
    else:
        said = "yes" if right.below(bar) else "no" if right.above(bar) else UNKNOWN
    return Folds(said, right, int(known or 0), source, bar)


def _shadow(
    data: catalog.Catalog, costs: Costs, found: list[Costs]
) -> tuple[stats.Interval, float]:
    """How often the shadow arm's drafts below the arm's own bar were right.

    Not for a two-pass path: its drafter depends on what was accepted before.
    """
    none = stats.Interval(None, None, None, 0, None, "no folded draft whose next token is known"), 0
    shadow = {**costs.key, "arm": schema.SHADOW}
    if costs.two_pass or not any(other.key == shadow for other in found):
        return none
    condition, params = catalog.selection(costs.key)
    bars = data.run(catalog.sql_text("gate_bar").replace("{where}", condition), "gate_bar", params)
    if bars.height != 1 or bars.item(0, "bar") is None:
        return none
    condition, params = catalog.selection(shadow)
    text = catalog.sql_text("shadow_right").replace("{where}", condition)
    rows = data.run(text, "shadow_right", {**params, "bar": bars.item(0, "bar")})
    return stats.proportion(rows["right_num"], rows["right_den"]), float(rows["right_den"].sum())


def _name(costs: Costs, said: Folds) -> tuple[str | None, str, dict[str, Any]]:
    acceptance = arms.ratio(costs.counts, "committed_acceptance")
    fold_rate = arms.ratio(costs.counts, "fold_rate")
    numbers = {"committed_acceptance": acceptance, "fold_rate": fold_rate}
    why = costs.missing()
    if why:
        return None, why, numbers
    step, paid, k = costs.step.ms, costs.bet_ms, costs.drafts_a_bet
    draft = (costs.bet_draft_ms or 0.0) + costs.free_draft_ms
    if costs.two_pass:
        bar, called = breakeven.run(costs).value, "break-even acceptance of the run"
    else:
        bar, called = ((paid + draft) / step - 1) / k, "break-even acceptance without a fold"
    numbers |= {"verifier_bar": bar, "draft_share": draft / paid}
    if bar > VERIFIER_BAR:
        return "verifier", f"{called} {_beyond(bar, VERIFIER_BAR)}", numbers
    if draft > DRAFT_BAR * paid:
        share = _beyond(draft / paid, DRAFT_BAR)
        return "draft cost", f"drafting over a verification {share}", numbers
    if acceptance is None or fold_rate is None:
        return None, "acceptance or fold rate is unknown", numbers
    if acceptance < LOW_ACCEPTANCE:
        because = f"only {words.percent(acceptance)} of verified drafts were accepted"
        return "drafter", because, numbers
    if fold_rate >= MANY_FOLDS and said.said == "yes":
        because = (
            f"{words.percent(fold_rate, 0)} of cycles fold, rightly: "
            f"{words.percent(said.right.value, 0)} of folded drafts would be accepted, and a bet "
            f"needs {words.percent(said.bar, 0)}"
        )
        return "drafter", because, numbers
    if fold_rate >= MANY_FOLDS and acceptance >= HIGH_ACCEPTANCE:
        known = "is not known to be right"
        if said.said == "no":
            known = (f"folds drafts right {words.percent(said.right.value, 0)} of the time; "
                     f"a bet needs {words.percent(said.bar, 0)}")  # fmt: skip
        because = (f"{words.percent(acceptance)} accepted, yet {words.percent(fold_rate, 0)} of "
                   f"cycles fold: the gate {known}")  # fmt: skip
        return "gate", because, numbers
    return "none", "no part stands out", numbers


def _beyond(value: float, bar: float) -> str:
    """`95.02 % is above 95 %`: with as many digits as it takes to see that it is."""
    digits = next((n for n in range(1, 12) if round(100 * value, n) > 100 * bar), 12)
    return f"{words.percent(value, digits)} is above {words.percent(bar, 0)}"
