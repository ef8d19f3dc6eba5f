"""The cost model of an arm: T, d and V with their ratios, by path, by position, over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from tauscope import arms, catalog, metrics, stats
from tauscope.economics import step, sums

NO_BET = "no bet was made"
UNKNOWN_KIND = "it is unknown whether they bet: {} cycles are of an undocumented kind"
UNLOGGED_DRAFT = "drafting times were not logged in {} cycles"
# A path that costs so much more per token at the end of a run than at its start slows down.
DRIFTS, THROTTLES = 0.02, 0.05


@dataclass(frozen=True, slots=True)
class Costs:
    """One arm of a cell. Times in ms; means over the cycles that log them, warm-up left out.

    `rows` are its clusters (economics.sums), `counts` the same clusters of metrics.clusters,
    over all cycles. What is not known is None.
    """

    key: dict[str, Any]
    rows: pl.DataFrame
    counts: pl.DataFrame
    step: step.Step
    draft: stats.Interval
    """d, drafting of one cycle that drafts."""
    verify: stats.Interval
    """V, one verification pass, over bets."""
    two_pass: bool
    """A base decode judges draft 1 for free before anything is verified."""

    def sum(self, name: str) -> float | None:
        return sums.total(self.rows, name)

    @property
    def drafts(self) -> bool:
        """The arm is one to judge: not an off arm, not the shadow, and it drafted."""
        return self.key["arm"] not in ("off", "shadow") and bool(self.sum("drafting"))

    @property
    def ms_per_token(self) -> float | None:
        """λ, the arm's own time per token."""
        tokens = self.sum("total_tokens")
        total = self.sum("total_ms")
        return total / tokens if tokens and total is not None else None

    @property
    def bet_ms(self) -> float | None:
        """What a bet pays: pass, snapshot, and repair or replay."""
        paid, bets = self.sum("bet_ms"), self.sum("bets")
        return paid / bets if bets and paid is not None else None

    @property
    def bet_draft_ms(self) -> float | None:
        """Drafting of a cycle that bets; a free draft stands in no draft time."""
        logged = self.sum("bet_drafts_logged")
        return self.sum("bet_draft_ms") / logged if logged else None

    @property
    def drafts_a_bet(self) -> float | None:
        """k, drafts verified in one bet."""
        verified, bets = self.sum("bet_verified"), self.sum("bets")
        return verified / bets if bets and verified is not None else None

    @property
    def free_draft_ms(self) -> float:
        """Draft 1 of a two-pass path, in no field: taken to cost what a timed draft does."""
        return (step.draft_token_ms(self.rows) or 0.0) if self.two_pass else 0.0

    def missing(self) -> str | None:
        """Why nothing can be said of what bets cost, or None."""
        if not self.sum("bets"):
            unknown = int(self.counts["unknown"].sum())
            return UNKNOWN_KIND.format(unknown) if unknown else NO_BET
        if self.step.ms is None:
            return f"no plain step: {step.NO_SOURCE}"
        if self.bet_ms is None:
            return "verification times were not logged in some bets"
        if self.sum("d_unlogged"):
            return UNLOGGED_DRAFT.format(int(self.sum("d_unlogged")))
        return None


SCHEMA = {
    **{name: pl.Boolean if name == "simulated" else pl.String for name in sums.GROUP},
    **{f"{name}_ms{end}": pl.Float64 for name in ("step", "draft", "verify")
       for end in ("", "_lo", "_hi")},
    "step_source": pl.String, "step_gap": pl.Float64, "gap_source": pl.String,
    "bet_ms": pl.Float64, "base_ms": pl.Float64, "base_derived": pl.Boolean,
    "drafts_a_bet": pl.Float64,
    **{f"{name}{end}": pl.Float64 for name in ("verify_draft_ratio", "verify_step_ratio")
       for end in ("", "_lo", "_hi")},
    "ms_per_token": pl.Float64, "time_basis": pl.String, "cycles": pl.Float64,
    "warmup_cycles": pl.Int64, "clusters": pl.Int64, "remarks": pl.List(pl.String),
}  # fmt: skip


def each(data: catalog.Catalog, where: Mapping[str, Any] | None = None) -> list[Costs]:
    """The cost model of every arm of every cell that a selection holds."""
    return built(data, sums.table(data, where), metrics.clusters(data, sums.GROUP, where))


def built(
    data: catalog.Catalog, rows: pl.DataFrame, counts: pl.DataFrame, arm: str | None = None
) -> list[Costs]:
    """The same from frames at hand, which may have been narrowed to some clusters.

    `rows` as sums.table, `counts` as metrics.clusters by sums.GROUP; of one arm if `arm`.
    """
    return [
        _costs(data, rows, counts, key, mine)
        for key, mine in sums.groups(rows)
        if arm is None or key["arm"] == arm
    ]


def table(found: list[Costs]) -> pl.DataFrame:
    """One row an arm: columns of SCHEMA. Times in ms, ratios as numbers, `step_gap` a fraction.

    `base_ms` is the base decode of a two-pass cycle; `base_derived` where it is what the listed
    stages leave of the decode time, draft 1 inside.
    """
    return pl.DataFrame([_row(costs) for costs in found], schema=SCHEMA, orient="row")


def _costs(
    data: catalog.Catalog,
    rows: pl.DataFrame,
    counts: pl.DataFrame,
    key: dict[str, Any],
    mine: pl.DataFrame,
) -> Costs:
    same = pl.all_horizontal(pl.col(name).eq_missing(pl.lit(key[name])) for name in sums.GROUP)
    none = stats.Interval(None, None, None, 0, None, NO_BET)
    bets = sums.total(mine, "bets")
    return Costs(
        key=key,
        rows=mine,
        counts=counts.filter(same),
        step=step.of(data, rows, key, mine),
        draft=sums.mean(data, key, mine, "d_num", "d_den", "d"),
        verify=sums.mean(data, key, mine, "v_num", "bets", "v") if bets else none,
        two_pass=bool(mine["two_pass"].any()),
    )


def _row(costs: Costs) -> dict[str, Any]:
    best = costs.step.best
    gap, other = costs.step.gap()
    draft_ratio = step_ratio = stats.Interval(None, None, None, 0, None)
    if costs.verify.value is not None:
        draft_ratio = stats.ratio(
            costs.counts["verify_draft_ratio_num"], costs.counts["verify_draft_ratio_den"]
        )
        if best is not None:
            step_ratio = step.over(best, costs.rows, "v_num", "bets")
    times = {
        "step": best.ms if best else stats.Interval(None, None, None, 0, None),
        "draft": costs.draft,
        "verify": costs.verify,
    }
    ratios = {"verify_draft_ratio": draft_ratio, "verify_step_ratio": step_ratio}
    return {
        **costs.key,
        **{f"{name}_ms{end}": value for name, i in times.items() for end, value in _ends(i)},
        **{f"{name}{end}": value for name, i in ratios.items() for end, value in _ends(i)},
        "step_source": best.name if best else None, "step_gap": gap, "gap_source": other,
        "bet_ms": costs.bet_ms, **_base(costs), "drafts_a_bet": costs.drafts_a_bet,
        "ms_per_token": costs.ms_per_token, "time_basis": costs.rows["time_basis"].first(),
        "cycles": costs.sum("timed_cycles"), "warmup_cycles": costs.rows["warmup_cycles"].sum(),
        "clusters": costs.rows.height, "remarks": remarks(costs),
    }  # fmt: skip


def _base(costs: Costs) -> dict[str, Any]:
    logged, cycles = costs.sum("base_den"), costs.sum("timed_cycles")
    if logged:
        return {"base_ms": costs.sum("base_num") / logged, "base_derived": False}
    left = step.base_left(costs.rows) if costs.two_pass and cycles else None
    return {"base_ms": None if left is None else float(left.sum()) / cycles, "base_derived": True}


def remarks(costs: Costs) -> list[str]:
    """What a reader of causes must know, in words."""
    said = []
    if costs.step.disagree():
        gap, other = costs.step.gap()
        said.append(
            f"sources of the plain step differ by {gap:+.1%} "
            f"({costs.step.best.name} against {other}): what is said of causes is uncertain"
        )
    if costs.rows["time_basis"].first() == "run":
        said.append("one time a request: warm-up can't be left out")
    elif costs.rows["warmup_cycles"].sum():
        said.append(f"{costs.rows['warmup_cycles'].sum()} warm-up cycles left out")
    return said


def paths(data: catalog.Catalog, where: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Cost per path: the query `cost_paths`, bets by drafts verified, replays apart (ms)."""
    return _asked(data, "cost_paths", where)


def by_position(data: catalog.Catalog, where: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Cost per path by context position, in doublings: the query `cost_positions` (ms)."""
    return _asked(data, "cost_positions", where)


def over_time(data: catalog.Catalog, where: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Cost per path in twentieths of each run: the query `cost_course` (ms)."""
    return _asked(data, "cost_course", where)


def course_by_arm(data: catalog.Catalog, where: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """`over_time` with the runs of an arm taken together: what a chart can hold.

    Columns: arm, simulated, outcome, slice (1 to 20), cycles, cycle_ms (mean over cycles), runs.
    """
    rows = over_time(data, where)
    return rows.group_by("arm", "simulated", "outcome", "slice", maintain_order=True).agg(
        pl.col("cycles").sum(),
        ((pl.col("cycle_ms") * pl.col("cycles")).sum() / pl.col("cycles").sum()).alias("cycle_ms"),
        pl.col("run_id").n_unique().cast(pl.Int64).alias("runs"),
    ).sort("arm", "simulated", "outcome", "slice")  # fmt: skip


def course(data: catalog.Catalog, where: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Warm-up, drift and throttling: stretch, arm, runs, warmup_cycles, drift, outcome, flag.

    A stretch is a run, or all runs of an arm in an experiment. `drift` is the path that moved
    most: its ms per token in the last third of a stretch over the first, less 1. `flag`:
    `throttles` when every path slowed by 5 % or more, `drifts` when one moved by 2 %, `steady`,
    or null with too few timed cycles to say.
    """
    moved = arms.drifts(data, where or {})
    runs = _asked(data, "cost_warmup", where)
    flags = moved.group_by("stretch", "arm", maintain_order=True).agg(
        pl.col("drift").sort_by(pl.col("drift").abs(), descending=True).first(),
        pl.col("outcome").sort_by(pl.col("drift").abs(), descending=True).first(),
        pl.when(pl.col("drift").min() >= THROTTLES).then(pl.lit("throttles"))
        .when(pl.col("drift").abs().max() >= DRIFTS).then(pl.lit("drifts"))
        .otherwise(pl.lit("steady")).alias("flag"),
    )  # fmt: skip
    return runs.join(
        flags, on=["stretch", "arm"], how="left", nulls_equal=True, maintain_order="left"
    )


def _asked(data: catalog.Catalog, name: str, where: Mapping[str, Any] | None) -> pl.DataFrame:
    condition, params = catalog.selection(where or {})
    return data.run(catalog.sql_text(name).replace("{where}", condition), name, params)


def _ends(interval: stats.Interval) -> tuple[tuple[str, float | None], ...]:
    return ("", interval.value), ("_lo", interval.lo), ("_hi", interval.hi)
