"""The waterfall: from the plain step to the time per token, part by part.

The parts add up to T − ms_per_token exactly, because `unattributed` is what is left. A part
that was itself computed as a rest is marked `derived`: it is no proof of anything.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from tauscope.economics import sums
from tauscope.economics.costs import Costs
from tauscope.economics.step import base_left

PARTS = {
    "accepted": "gain of accepted drafts",
    "drafting": "draft tax",
    "bets_won": "bets that won something",
    "bets_lost": "bets that won nothing",
    "folds": "folds",
    "base": "base decode",
    "unattributed": "unattributed",
}
SCHEMA = {
    **{name: pl.Boolean if name == "simulated" else pl.String for name in sums.GROUP},
    "step_ms": pl.Float64, "step_source": pl.String, "ms_per_token": pl.Float64,
    "time_basis": pl.String, "part": pl.String, "about": pl.String,
    "ms_each_token": pl.Float64, "part_ms": pl.Float64, "tokens": pl.Float64,
    "derived": pl.Boolean, "why": pl.String,
}  # fmt: skip
SPEED_ONLY = "only a speed was printed; import with --tokens N"


def table(found: list[Costs]) -> pl.DataFrame:
    """One row an arm and part: columns of SCHEMA; gains are positive, in ms per token.

    Of one arm `step_ms - ms_per_token` is the sum of `ms_each_token`. An arm whose waterfall
    can't be made has the one row `unattributed`, null, with `why`.
    """
    rows = []
    for costs in found:
        if costs.key["arm"] == "shadow":
            continue
        tokens, why = costs.sum("total_tokens"), missing(costs)
        head = {
            **costs.key, "step_ms": costs.step.ms,
            "step_source": costs.step.best.name if costs.step.best else None,
            "ms_per_token": costs.ms_per_token,
            "time_basis": costs.rows["time_basis"].first(), "tokens": tokens,
        }  # fmt: skip
        if why:
            rows.append({**head, "part": "unattributed", "about": PARTS["unattributed"],
                         "derived": True, "why": why})  # fmt: skip
            continue
        values, derived = parts(costs)
        rows += [
            {**head, "part": part, "about": about, "part_ms": values[part],
             "ms_each_token": values[part] / tokens, "derived": part in derived}
            for part, about in PARTS.items()
        ]  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def missing(costs: Costs) -> str | None:
    """Why there is no waterfall, or None."""
    if costs.step.ms is None:
        return costs.missing() if costs.drafts else "no plain step to start from"
    if costs.ms_per_token is None:
        return "the arm's own time per token is unknown"
    if not costs.sum("timed_cycles"):
        return None if costs.step.best.name == "off" else "no cycle was logged"
    for name, what in (("accepted", "what was accepted"), ("won_ms", "what bets cost"),
                       ("fold_ms", "what folds cost")):  # fmt: skip
        if costs.sum(name) is None:
            return f"{what} is unknown in some cycles"
    if costs.sum("d_unlogged"):
        return costs.missing()
    if costs.two_pass and not costs.sum("base_den") and base_left(costs.rows) is None:
        return SPEED_ONLY
    return None


def parts(costs: Costs) -> tuple[dict[str, float], set[str]]:
    """Each of PARTS in ms over all tokens of the arm, and which are derived as a rest.

    Call it only where `missing(costs)` is None.
    """
    step, total = costs.step.ms, costs.sum("total_ms")
    found: dict[str, Any] = {
        "accepted": step * costs.sum("accepted"),
        "drafting": 0.0 - costs.sum("draft_ms"),
        "bets_won": step * costs.sum("won") - costs.sum("won_ms"),
        "bets_lost": step * costs.sum("lost") - costs.sum("lost_ms"),
        "folds": step * costs.sum("folds") - costs.sum("fold_ms"),
        "base": step * costs.sum("base_den") - costs.sum("base_num"),
    }
    # A fold whose decode was not timed takes what its draft leaves of the cycle.
    derived = {"folds"} if costs.sum("folds_derived") else set()
    if costs.two_pass and not costs.sum("base_den"):
        left = base_left(costs.rows).sum()
        found["base"] = step * costs.sum("timed_cycles") - left
        derived.add("base")
    found["unattributed"] = step * costs.sum("total_tokens") - total - sum(found.values())
    if "base" in derived and costs.rows["time_basis"].first() == "cycles":
        derived.add("unattributed")
    return found, derived
