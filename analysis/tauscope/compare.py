"""Two selections held against each other: speed, outcomes, costs, outputs, and what moved.

`a` is the baseline, `b` the candidate; a speed-up above 1 says that b is faster. Cells match
when workload, model and machine do; arms when each side has one, else by their label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import polars as pl

from tauscope import arms, catalog, metrics, schema, stats
from tauscope.economics import costs, sums, waterfall
from tauscope.errors import Problem
from tauscope.select import Selection
from tauscope.verdict import MEASURED, Evidence, remarks, verdict

CELL = ("workload", "simulated", "machine", "model")
SIDES = ("a", "b")
SHOWN = ("tau", "tau_forward", "committed_acceptance", "fold_rate", "draft_hit_rate",
         "drafting_share", "ms_per_token")  # fmt: skip
SAID = {"on": "faster", "off": "slower", "undecided": "undecided"}
KEY = {**{name: pl.Boolean if name == "simulated" else pl.String for name in CELL},
       "arm_a": pl.String, "arm_b": pl.String}  # fmt: skip
SPEED = {
    **KEY, "basis": pl.String, "speedup": pl.Float64, "speedup_lo": pl.Float64,
    "speedup_hi": pl.Float64, "speedup_method": pl.String, "speedup_why": pl.String,
    "ms_per_token_a": pl.Float64, "ms_per_token_b": pl.Float64, "time_basis_a": pl.String,
    "time_basis_b": pl.String, "paired": pl.Boolean, "clusters": pl.Int64, "pairs": pl.Int64,
    "unattributed_tokens": pl.Float64, "baseline_drafts": pl.Boolean, "outputs_equal": pl.Boolean,
    "drift": pl.Float64, "interleaved": pl.Boolean, "said": pl.String, "failed": pl.List(pl.String),
    "remarks": pl.List(pl.String),
}  # fmt: skip
METRIC = {
    **KEY, "metric": pl.String, "label": pl.String, "unit": pl.String,
    **{f"{side}{end}": pl.Float64 for side in SIDES for end in ("", "_lo", "_hi")},
}  # fmt: skip
MIX = {**KEY, "outcome": pl.String, "cycles_a": pl.Int64, "cycles_b": pl.Int64,
       "share_a": pl.Float64, "share_b": pl.Float64}  # fmt: skip
COST = {**KEY, "cost": pl.String, "unit": pl.String, "a": pl.Float64, "b": pl.Float64}
PART = {**KEY, "part": pl.String, "about": pl.String, "a": pl.Float64, "b": pl.Float64,
        "moved": pl.Float64, "derived": pl.Boolean, "why": pl.String}  # fmt: skip
OUTPUT = {**KEY, "prompts": pl.Int64, "tokens_a": pl.Int64, "tokens_b": pl.Int64,
          "lengths_differ": pl.Int64, "equal": pl.Int64, "unequal": pl.Int64, "unknown": pl.Int64,
          "differing": pl.List(pl.String)}  # fmt: skip
KINDS = {"speedups": SPEED, "metrics": METRIC, "outcomes": MIX, "costs": COST, "parts": PART,
         "outputs": OUTPUT}  # fmt: skip
COSTS = (("step_ms", "plain step"), ("draft_ms", "drafting of a cycle"),
         ("verify_ms", "one verification"), ("bet_ms", "what a bet pays"),
         ("base_ms", "base decode"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """Frames of one comparison, each with KEY first; `only_a`, `only_b` are cells of one side."""

    speedups: pl.DataFrame
    metrics: pl.DataFrame
    outcomes: pl.DataFrame
    costs: pl.DataFrame
    parts: pl.DataFrame
    outputs: pl.DataFrame
    only_a: list[str]
    only_b: list[str]

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {n: v.to_dicts() if isinstance(v, pl.DataFrame) else v for n, v in values.items()}


@dataclass(frozen=True, slots=True)
class _Side:
    selection: Selection
    clusters: pl.DataFrame
    experiments: pl.DataFrame
    drifts: pl.DataFrame
    order: pl.DataFrame
    sums: pl.DataFrame
    counts: pl.DataFrame

    def of(self, cell: dict[str, Any], arm: str) -> pl.DataFrame:
        return self.clusters.filter(_same(cell), pl.col("arm") == arm)

    def ran_in(self, cell: dict[str, Any], rows: pl.DataFrame, arm: str) -> set[str | None]:
        """The experiments that the clusters `rows` of an arm come from."""
        mine = self.experiments.filter(
            _same(cell), pl.col("arm") == arm, pl.col("cluster").is_in(rows["cluster"].to_list())
        )
        return set(mine["experiment"])

    def where(self, cell: dict[str, Any]) -> dict[str, Any]:
        return {**self.selection.where, **cell}


def compare(a: Selection, b: Selection) -> Comparison:
    """Everything that two selections say about each other.

    Raises Problem when a side is empty, when no cell is in both, or when the sides' arms
    can't be matched.
    """
    sides = _side(a), _side(b)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in KINDS}
    cells, only = _cells(*sides)
    for cell, arm_a, arm_b in _pairs(*sides, cells):
        key = {**cell, "arm_a": arm_a, "arm_b": arm_b}
        speed, rows = _speed(sides, key)
        found["speedups"].append({**key, **speed})
        found["metrics"] += [{**key, **row} for row in _metrics(rows)]
        found["outcomes"] += [{**key, **row} for row in _mix(rows)]
        found["outputs"].append({**key, **_outputs(rows, speed["paired"])})
        models = _models(sides, key, rows, speed["paired"])
        found["costs"] += [{**key, **row} for row in _costs(models)]
        found["parts"] += [{**key, **row} for row in _parts(models)]
    return _made(found, only)


def among(data: catalog.Catalog, before: str, after: str, where: Mapping[str, Any]) -> Comparison:
    """Two arms of the same stores, for a notebook.

    An empty `after` is the treated arm with the most cycles. What can't be compared gives
    empty frames, and the reason in `only_a`.
    """
    try:
        named = before, after or _busiest(data, where)
        return compare(*(Selection(f"arm {arm}", data, {**where, "arm": [arm]}) for arm in named))
    except Problem as problem:
        return _made({name: [] for name in KINDS}, [[str(problem)], []])


def _busiest(data: catalog.Catalog, where: Mapping[str, Any]) -> str:
    rows = metrics.clusters(data, ("arm",), where).filter(~pl.col("arm").is_in(arms.UNTREATED))
    if rows.is_empty():
        raise Problem("no arm with speculation is here to hold against another")
    counts = rows.group_by("arm", maintain_order=True).agg(pl.col("cycles").sum())
    return counts.sort("cycles", descending=True, maintain_order=True).item(0, "arm")


def _made(found: dict[str, list[dict[str, Any]]], only: list[list[str]]) -> Comparison:
    frames = {
        name: pl.DataFrame(rows, schema=KINDS[name], orient="row") for name, rows in found.items()
    }
    return Comparison(**frames, only_a=only[0], only_b=only[1])


def _side(chosen: Selection) -> _Side:
    by = (*CELL, "arm")
    clusters = metrics.clusters(chosen.data, by, chosen.where)
    if clusters.is_empty():
        raise Problem(
            f"{chosen.text}: no run, request or cycle in this selection; "
            "tauscope runs lists what there is"
        )
    labels = metrics.clusters(chosen.data, (*by, "experiment"), chosen.where)
    moves = arms.drifts(chosen.data, chosen.where)
    order = arms.orders(chosen.data, chosen.where)
    # The other arms of the store stay in: they may give the plain step.
    wider = {name: value for name, value in chosen.where.items() if name != "arm"}
    return _Side(
        chosen, clusters, labels.select(*by, "experiment", "cluster"), moves, order,
        sums.table(chosen.data, wider), metrics.clusters(chosen.data, sums.GROUP, wider),
    )  # fmt: skip


def _cells(a: _Side, b: _Side) -> tuple[list[dict[str, Any]], list[list[str]]]:
    """Cells of both sides, and in words those that only one side has."""
    keys = [side.clusters.select(CELL).unique(maintain_order=True) for side in (a, b)]
    both = keys[0].join(keys[1], on=CELL, how="semi", nulls_equal=True, maintain_order="left")
    only: list[list[str]] = []
    for side, mine, other in ((a, *keys), (b, *keys[::-1])):
        lone = mine.join(other, on=CELL, how="anti", nulls_equal=True, maintain_order="left")
        only.append(_lone(side, lone))
    if both.is_empty():
        raise Problem(
            f"{a.selection.text} and {b.selection.text}: no workload with the same model and "
            f"machine in both ({'; '.join(only[0] + only[1])}); label the runs alike with "
            "tauscope label"
        )
    return both.to_dicts(), only


def _lone(side: _Side, cells: pl.DataFrame) -> list[str]:
    """What only one side has: a sentence for all workloads of a machine and model."""
    out = []
    for (simulated, machine, model), rows in cells.group_by(CELL[1:], maintain_order=True):
        names = rows["workload"].to_list()
        parts = [f"workload{'s' if len(names) > 1 else ''} {', '.join(names)}"]
        parts += [f"{n} {v}" for n, v in (("machine", machine), ("model", model)) if v]
        kind = " (simulated)" if simulated else ""
        out.append(f"only in {side.selection.text}: {', '.join(parts)}{kind}")
    return out


def _pairs(a: _Side, b: _Side, cells: list[dict[str, Any]]) -> Iterator[tuple]:
    names = [
        [arm for arm in side.clusters["arm"].unique(maintain_order=True)] for side in (a, b)
    ]  # fmt: skip
    treated = [[arm for arm in side if arm != schema.SHADOW] or side for side in names]
    lone = all(len(side) == 1 for side in treated)
    shared = [(treated[0][0], treated[1][0])] if lone else [
        (arm, arm) for arm in treated[0] if arm in treated[1]
    ]  # fmt: skip
    if a.selection.data.stores == b.selection.data.stores and not lone:
        raise Problem(
            f"{a.selection.text} and {b.selection.text}: both read the same store and more than "
            "one arm; pick one each, as in STORE:arm=off STORE:arm=mtp1",
            code=2,
        )
    found = [
        (cell, x, y)
        for cell in cells
        for x, y in shared
        if not a.of(cell, x).is_empty() and not b.of(cell, y).is_empty()
    ]
    if not found:
        raise Problem(
            f"{a.selection.text} has the arms {', '.join(names[0])} and {b.selection.text} "
            f"{', '.join(names[1])}: pick one each, as in STORE:arm=mtp1",
            code=2,
        )
    yield from found


def _speed(
    sides: tuple[_Side, _Side], key: dict[str, Any]
) -> tuple[dict[str, Any], tuple[pl.DataFrame, pl.DataFrame]]:
    cell = {name: key[name] for name in CELL}
    named = key["arm_a"], key["arm_b"]
    every = [side.of(cell, arm) for side, arm in zip(sides, named, strict=True)]

    def timed(cluster: str) -> list:
        out = []
        for side, arm in zip(sides, named, strict=True):
            where = {**side.where(cell), "arm": arm}
            if cluster:
                where["prompt_id"] = cluster.removeprefix(f"{cell['workload']}/")
            values = metrics.cycle_values(side.selection.data, where)
            out += [values[f"ms_per_token_{end}"].to_numpy() for end in ("num", "den")]
        return out

    interval, base, treated, pairs = arms.interval(*every, timed)
    both = [(rows, arm) for rows, arm in zip((base, treated), named, strict=True)]
    drafting = [rows for rows, arm in both if arm != schema.OFF]
    shares = [arms.ratio(rows, "drafting_share") for rows in drafting]
    bets = [arms.whole(arms.strict_sum(rows, "committed_acceptance_den")) for rows in drafting]
    gap, made, requests = arms.ledger(base, treated)
    drift = [side.drifts.filter(_same(cell), pl.col("arm") == arm)["drift"]
             for side, arm in zip(sides, named, strict=True)]  # fmt: skip
    evidence = Evidence(
        speedup=interval, basis=MEASURED, clusters=interval.clusters, pairs=pairs,
        # Conditions on drafting hold for each arm that is meant to draft, and for no other.
        verified=_least(bets), drafting_share=_least(shares),
        unattributed_tokens=gap, generated_tokens=made, requests=requests,
        baseline_drafts=arms.any_true(every[0], "baseline_drafts")
        if named[0] == schema.OFF and named[1] != schema.OFF else False,
        outputs_equal=arms.outputs_equal(base, treated) if pairs else None,
        tokens_base=arms.tokens(base), tokens_treated=arms.tokens(treated),
        drift=arms.worst(pl.concat(drift)),
        interleaved=arms.interleaved(pl.concat([side.order for side in sides]), cell, named),
    )  # fmt: skip
    said, failed, notes = None, [], []
    if interval.value is not None:
        word, failed = verdict(evidence)
        if not drafting:
            failed = [name for name in failed if name not in ("bets", "treatment")]
            word = word if failed else _word(interval)
        said, notes = SAID[word], remarks(evidence)
    ran = [side.ran_in(cell, rows, arm)
           for side, rows, arm in zip(sides, (base, treated), named, strict=True)]  # fmt: skip
    if ran[0] != ran[1]:
        notes.append("the sides come from different experiments: nothing was interleaved")
    bases = [rows["time_basis"].first() for rows in every]
    if bases[0] != bases[1]:
        notes.append("the sides' times come from different sources: see time_basis")
    return {
        "basis": MEASURED, "speedup": interval.value, "speedup_lo": interval.lo,
        "speedup_hi": interval.hi, "speedup_method": interval.method,
        "speedup_why": interval.reason, "ms_per_token_a": arms.ratio(base, "ms_per_token"),
        "ms_per_token_b": arms.ratio(treated, "ms_per_token"), "time_basis_a": bases[0],
        "time_basis_b": bases[1], "paired": bool(pairs), "clusters": interval.clusters,
        "pairs": pairs, "unattributed_tokens": gap, "baseline_drafts": evidence.baseline_drafts,
        "outputs_equal": evidence.outputs_equal, "drift": evidence.drift,
        "interleaved": evidence.interleaved,
        "said": said, "failed": failed, "remarks": notes,
    }, (base, treated)  # fmt: skip


def _word(interval: stats.Interval) -> str:
    return "on" if interval.above(1) else "off" if interval.below(1) else "undecided"


def _least(values: list[Any]) -> Any:
    return None if not values or any(value is None for value in values) else min(values)


def _metrics(rows: tuple[pl.DataFrame, pl.DataFrame]) -> Iterator[dict[str, Any]]:
    kinds = {name: metrics.BY_NAME[name].kind for name in SHOWN}
    found = [stats.grouped(frame, [], kinds).row(0, named=True) for frame in rows]
    for name in SHOWN:
        ends = {
            f"{side}{end}": row[f"{name}{end}"]
            for side, row in zip(SIDES, found, strict=True)
            for end in ("", "_lo", "_hi")
        }
        about = metrics.BY_NAME[name]
        yield {"metric": name, "label": about.label, "unit": about.unit, **ends}


def _mix(rows: tuple[pl.DataFrame, pl.DataFrame]) -> Iterator[dict[str, Any]]:
    cycles = [int(frame["cycles"].sum()) for frame in rows]
    for outcome in schema.OUTCOMES:
        counts = [int(frame[outcome].sum()) for frame in rows]
        if any(counts):
            shares = [n / of if of else None for n, of in zip(counts, cycles, strict=True)]
            yield {"outcome": outcome, "cycles_a": counts[0], "cycles_b": counts[1],
                   "share_a": shares[0], "share_b": shares[1]}  # fmt: skip


def _outputs(rows: tuple[pl.DataFrame, pl.DataFrame], paired: bool) -> dict[str, Any]:
    """Lengths first: a cut output is not an equal one, however alike its beginning is."""
    if not paired:
        return {"prompts": 0, "tokens_a": arms.tokens(rows[0]), "tokens_b": arms.tokens(rows[1])}
    wanted = ("cluster", "generated_tokens", "requests", "outputs")
    pairs = rows[0].select(wanted).join(rows[1].select(wanted), on="cluster", suffix="_b")
    # Repeats of a prompt add up: what one run of it made is the mean.
    length = [pl.col(f"generated_tokens{s}") / pl.col(f"requests{s}") for s in ("", "_b")]
    same = arms.same_outputs("outputs", "outputs_b")
    judged = pairs.select(
        "cluster",
        longer=(length[0] != length[1]).fill_null(False),
        # Unequal lengths settle it without a hash.
        same=pl.when(length[0] != length[1]).then(False).otherwise(same),
    )
    return {
        "prompts": pairs.height, "tokens_a": arms.tokens(rows[0]),
        "tokens_b": arms.tokens(rows[1]), "lengths_differ": int(judged["longer"].sum()),
        "equal": int(judged["same"].sum() or 0),
        "unequal": int((~judged["same"]).sum() or 0), "unknown": judged["same"].null_count(),
        "differing": judged.filter(~pl.col("same"))["cluster"].head(3).to_list(),
    }  # fmt: skip


def _models(
    sides: tuple[_Side, _Side],
    key: dict[str, Any],
    rows: tuple[pl.DataFrame, pl.DataFrame],
    paired: bool,
) -> list[costs.Costs | None]:
    """The cost model of both arms, over the prompts that count; None over several experiments."""
    out = []
    cell = {name: key[name] for name in CELL}
    for side, arm, frame in zip(sides, (key["arm_a"], key["arm_b"]), rows, strict=True):
        mine = _same(cell)
        if paired:
            mine &= pl.col("cluster").is_in(frame["cluster"].to_list())
        found = costs.built(
            side.selection.data, side.sums.filter(mine), side.counts.filter(mine), arm
        )
        out.append(found[0] if len(found) == 1 else None)
    return out


def _costs(models: list[costs.Costs | None]) -> Iterator[dict[str, Any]]:
    rows = [costs.table([m]).row(0, named=True) if m else {} for m in models]
    for name, about in COSTS:
        pair = [row.get(name) for row in rows]
        if any(value is not None for value in pair):
            yield {"cost": about, "unit": "ms", "a": pair[0], "b": pair[1]}


def _parts(models: list[costs.Costs | None]) -> Iterator[dict[str, Any]]:
    """Each part of the waterfall; what all moved adds up to how much faster a token is."""
    why = [waterfall.missing(m) if m else "several experiments on one side" for m in models]
    if why[0] and not why[1] and models[0] and models[0].key["arm"] == schema.OFF:
        # A baseline that drafts has no step of its own: held against the candidate's, all that
        # it takes beyond one is unattributed.
        yield from _moved(models[1].step.ms, models[0], models[1])
        return
    if any(why):
        yield {"part": "unattributed", "about": "no waterfall", "why": why[0] or why[1]}
        return
    yield from _moved(models[0].step.ms, *models)


def _moved(step_a: float, a: costs.Costs, b: costs.Costs) -> Iterator[dict[str, Any]]:
    steps, tokens = (step_a, b.step.ms), [m.sum("total_tokens") for m in (a, b)]
    if a.step.ms is None:
        rest = step_a * tokens[0] - a.sum("total_ms")
        first = {part: 0.0 for part in waterfall.PARTS} | {"unattributed": rest}, {"unattributed"}
    else:
        first = waterfall.parts(a)
    found = first, waterfall.parts(b)
    yield {"part": "step", "about": "plain step", "a": steps[0], "b": steps[1],
           "moved": steps[0] - steps[1], "derived": False}  # fmt: skip
    for part, about in waterfall.PARTS.items():
        pair = [values[part] / n for (values, _), n in zip(found, tokens, strict=True)]
        derived = any(part in marked for _, marked in found)
        yield {"part": part, "about": about, "a": pair[0], "b": pair[1],
               "moved": pair[1] - pair[0], "derived": derived}  # fmt: skip


def _same(cell: dict[str, Any]) -> pl.Expr:
    return pl.all_horizontal(pl.col(name).eq_missing(pl.lit(cell[name])) for name in CELL)
