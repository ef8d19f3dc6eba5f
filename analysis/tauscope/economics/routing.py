"""Where to send which traffic: on, off, elsewhere or undecided, and what a mix comes to.

One treated arm is asked about; the others stand by as places to send traffic to. What was
measured and what was only modelled stay in columns of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import stdtrit

from tauscope import arms, catalog, metrics, schema, speedup, stats, turns
from tauscope.economics import costs, modelled
from tauscope.errors import Problem
from tauscope.figures import words

# Traffic is routed on one machine with one model; the rest are other tables.
GROUP = ("simulated", "machine", "model", "experiment")
ON, OFF, ELSEWHERE, UNDECIDED = "on", "off", "elsewhere", "undecided"
SCHEMA = {
    **{name: pl.Boolean if name == "simulated" else pl.String for name in GROUP},
    "workload": pl.String, "arm": pl.String, "decision": pl.String, "send_to": pl.String,
    "basis": pl.String, "speedup": pl.Float64, "speedup_lo": pl.Float64, "speedup_hi": pl.Float64,
    "modelled": pl.Float64, "modelled_lo": pl.Float64, "modelled_hi": pl.Float64,
    "base_ms_per_token": pl.Float64, "ms_per_token": pl.Float64,
    "routed_ms_per_token": pl.Float64, "clusters": pl.Int64,
    "saved_s": pl.Float64, "saved_s_lo": pl.Float64, "saved_s_hi": pl.Float64,
    "off_s": pl.Float64, "verdict": pl.String, "reasons": pl.List(pl.String), "why": pl.String,
}  # fmt: skip


def table(
    data: catalog.Catalog, where: Mapping[str, Any] | None = None, arm: str | None = None
) -> pl.DataFrame:
    """One row a (GROUP, workload): columns of SCHEMA, for the arm asked about.

    Without `arm`, in each group the one that decides most workloads. `send_to` is the arm that
    traffic should take; null where that is undecided. `saved_s` are seconds a turn. Raises
    Problem when `arm` did not run.
    """
    every = _options(data, where or {})
    if arm is not None and not any(row["arm"] == arm for row in every):
        ran = sorted({row["arm"] for row in every})
        use = f"use {words.listed(ran, 'or')}" if ran else "no arm here speculates"
        raise Problem(f"--arm {arm}: no such treated arm; {use}")
    seconds = turns.table(data, where)
    out = []
    for group in dict.fromkeys(tuple(row[n] for n in GROUP) for row in every):
        mine = [row for row in every if tuple(row[n] for n in GROUP) == group]
        asked = arm or _most_decided(mine)
        for row in mine:
            if row["arm"] == asked:
                rivals = [r for r in mine if r["workload"] == row["workload"] and r is not row]
                out.append({**row, **_decision(row, rivals), **_seconds(seconds, row)})
    return pl.DataFrame(
        [{name: row.get(name) for name in SCHEMA} for row in out], schema=SCHEMA, orient="row"
    )


def left_out(
    data: catalog.Catalog, rows: pl.DataFrame, where: Mapping[str, Any] | None = None
) -> pl.DataFrame:
    """What `rows` of table says nothing about: GROUP, workload and why, one row a workload."""
    by = [*GROUP, "workload"]
    ran = metrics.in_order(
        metrics.clusters(data, [*by, "arm"], where or {}).group_by(by, maintain_order=True)
        .agg(pl.col("arm").unique().sort().alias("ran"))
    )  # fmt: skip
    rest = ran.join(rows, on=by, how="anti", nulls_equal=True, maintain_order="left")
    out = []
    for row in rest.iter_rows(named=True):
        same = rows.filter(
            pl.all_horizontal(pl.col(name).eq_missing(pl.lit(row[name])) for name in GROUP)
        )
        treated = sorted(set(row["ran"]) - set(arms.UNTREATED))
        if not treated:
            why = f"no arm with speculation, only {words.listed(row['ran'])}"
        elif same.is_empty():
            why = f"the arm asked about did not run; {words.listed(treated)} did"
        else:
            why = f"arm {same['arm'][0]} did not run; {words.listed(treated)} did: see --arm"
        out.append({**{name: row[name] for name in by}, "why": why})
    return pl.DataFrame(
        out, schema={**{name: SCHEMA[name] for name in by}, "why": pl.String}, orient="row"
    )


def _options(data: catalog.Catalog, where: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each workload and treated arm, with what was measured, or else modelled."""
    guesses = {
        tuple(row[name] for name in (*GROUP, "workload", "arm")): row
        for row in modelled.table(data, costs.each(data, where), where).to_dicts()
    }
    rows = []
    for row in speedup.table(data, where).iter_rows(named=True):
        guess = guesses.get(tuple(row[name] for name in (*GROUP, "workload", "arm")), {})
        shown = {
            "modelled": guess.get("speedup"), "modelled_lo": guess.get("speedup_lo"),
            "modelled_hi": guess.get("speedup_hi"),
        }  # fmt: skip
        if row["speedup"] is not None or guess.get("speedup") is None:
            rows.append({**row, **shown, "why": words.why(row)})
            continue
        # Nothing ran beside it: the model speaks, and only in its own columns.
        why = words.reasons(guess["reasons"], guess) or "modelled from the costs of its own paths"
        rows.append({
            **{name: row[name] for name in (*GROUP, "workload", "arm")}, **shown,
            "basis": "modelled", "base_ms_per_token": guess["step_ms"],
            "ms_per_token": guess["ms_per_token"], "clusters": guess["clusters"],
            "verdict": guess["verdict"], "reasons": guess["reasons"], "why": why,
        })  # fmt: skip
    return rows


def _most_decided(rows: list[dict[str, Any]]) -> str:
    """The arm with most verdicts; then with most known gains, then first by name."""
    counts: dict[str, list[int]] = {}
    for row in rows:
        count = counts.setdefault(row["arm"], [0, 0])
        count[0] -= row["verdict"] in (ON, OFF)
        count[1] -= row["verdict"] is not None
    return min(counts, key=lambda name: (*counts[name], name))


def _bounds(row: dict[str, Any]) -> tuple[float | None, float | None]:
    name = "modelled" if row["basis"] == "modelled" else "speedup"
    return row.get(f"{name}_lo"), row.get(f"{name}_hi")


def _decision(row: dict[str, Any], rivals: list[dict[str, Any]]) -> dict[str, Any]:
    """The verdict, unless another arm is surely better: then that one."""
    said = row["verdict"]
    base, mine = row.get("base_ms_per_token"), row.get("ms_per_token")
    better = [rival for rival in rivals if rival["verdict"] == ON]
    best = max(better, key=lambda rival: _bounds(rival)[0], default=None)
    if best and (said == OFF or (said == ON and _bounds(best)[0] > _bounds(row)[1])):
        return {"decision": ELSEWHERE, "send_to": best["arm"],
                "routed_ms_per_token": best["ms_per_token"],
                "why": f"{row['arm']} {'loses' if said == OFF else 'gains less'}, "
                       f"{best['arm']} gains {words.change(_shown(best))}"}  # fmt: skip
    if said == ON:
        return {"decision": ON, "send_to": row["arm"], "routed_ms_per_token": mine}
    if said == OFF:
        return {"decision": OFF, "send_to": schema.OFF, "routed_ms_per_token": base}
    # Without evidence nothing is gained: the blend takes it as not speculating.
    return {"decision": UNDECIDED, "send_to": None, "routed_ms_per_token": base}


def _shown(row: dict[str, Any]) -> float | None:
    return row.get("modelled") if row["basis"] == "modelled" else row["speedup"]


def _seconds(seconds: pl.DataFrame, row: dict[str, Any]) -> dict[str, Any]:
    keys = (*GROUP, "workload", "arm")
    found = seconds.filter(
        pl.all_horizontal(pl.col(name).eq_missing(pl.lit(row[name])) for name in keys)
    ).to_dicts()
    names = ("saved_s", "saved_s_lo", "saved_s_hi", "off_s")
    return {name: found[0][name] if found else None for name in names}


@dataclass(frozen=True, slots=True)
class Blend:
    """What a mix of traffic comes to; weights are shares of tokens."""

    arm: str
    simulated: bool
    mix: dict[str, float]
    basis: str
    """`measured`, `modelled`, or both named where the mix rests on both."""
    all_on: stats.Interval
    routed: stats.Interval
    losing_share: float
    break_even_share: float | None
    """Share of tokens that may be of losing workloads before all on gains nothing."""
    why: str | None

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        sides = {"all_on": self.all_on, "routed": self.routed}
        return {
            "arm": self.arm, "simulated": self.simulated, "mix": self.mix, "basis": self.basis,
            **{name: {"speedup": i.value, "speedup_lo": i.lo, "speedup_hi": i.hi}
               for name, i in sides.items()},
            "losing_share": self.losing_share, "break_even_losing_share": self.break_even_share,
            "why": self.why,
        }  # fmt: skip


def blend(rows: pl.DataFrame, mix: Mapping[str, float]) -> Blend:
    """Speed-up over all off when `mix` (workload: share of tokens) is all on, or routed.

    Time per token of a mix is Σ share × ms per token, so S = Σ w b / Σ w m. Its interval
    adds the workloads' relative errors, weighted by their share of the time (delta method,
    degrees of freedom by Welch and Satterthwaite); workloads are independent of each other.
    Raises Problem when a workload is not in `rows`, which must be of one group.
    """
    if rows.select(GROUP).unique().height > 1:
        raise Problem("--mix: several machines, models or experiments; pick one with --where")
    found = {row["workload"]: row for row in rows.iter_rows(named=True)}
    for name in mix:
        row = found.get(name)
        if row is None or row["base_ms_per_token"] is None or row["ms_per_token"] is None:
            known = [w for w, r in found.items() if r["base_ms_per_token"] is not None]
            raise Problem(f"--mix {name}: no speed with and without speculation for it; "
                          f"known are {words.listed(known) or 'none'}")  # fmt: skip
    parts = [(found[name], weight) for name, weight in mix.items() if weight > 0]
    gained = sum(w * max(0.0, r["base_ms_per_token"] - r["ms_per_token"]) for r, w in parts)
    losing = [(r, w) for r, w in parts if r["ms_per_token"] > r["base_ms_per_token"]]
    share = sum(w for _, w in losing)
    share_even, why = None, None
    if losing and share < 1:
        lost = sum(w * (r["ms_per_token"] - r["base_ms_per_token"]) for r, w in losing)
        # Per token of each kind: (1 − x) gain = x loss.
        gain, loss = gained / (1 - share), lost / share
        share_even = gain / (gain + loss)
    else:
        why = "no workload of the mix loses" if not losing else "no workload of the mix gains"
    basis = words.listed(sorted({row["basis"] for row, _ in parts}))
    of = next(iter(found.values()))
    return Blend(of["arm"], of["simulated"], dict(mix), basis, _pooled(parts, "ms_per_token"),
                 _pooled(parts, "routed_ms_per_token"), share, share_even, why)  # fmt: skip


def example(rows: pl.DataFrame, text: str = "") -> Blend | None:
    """`blend` for a page: the mix that `text` states, else equal shares of what has speeds.

    Of several groups the first with such workloads, real ones first; None without any.
    """
    known = rows.drop_nulls(["base_ms_per_token", "ms_per_token"]).sort(
        "simulated", maintain_order=True
    )
    if not text and known["speedup"].count():
        known = known.drop_nulls("speedup")  # what is only modelled stays out of it
    if known.is_empty():
        return None
    first = known.select(GROUP).row(0, named=True)
    group = known.filter(
        pl.all_horizontal(pl.col(name).eq_missing(pl.lit(first[name])) for name in GROUP)
    )
    names = group["workload"].unique(maintain_order=True).to_list()
    return blend(group, shares(text) if text else dict.fromkeys(names, 1 / len(names)))


def _pooled(parts: list[tuple[dict[str, Any], float]], column: str) -> stats.Interval:
    base = sum(w * row["base_ms_per_token"] for row, w in parts)
    times = np.array([w * row[column] for row, w in parts])
    value = float(base / times.sum())
    errors, freedoms, named = [], [], 0
    for (row, _), time in zip(parts, times, strict=True):
        moved = row[column] != row["base_ms_per_token"]
        lo, hi = _bounds(row)
        if not moved:
            continue  # off is what it is held against: no error of its own
        if lo is None or hi is None or row["clusters"] < 2:
            return stats.Interval(value, None, None, 0, None, "a workload has no interval")
        freedom = row["clusters"] - 1
        half = (hi - lo) / 2 / _shown(row)
        errors.append((half / stdtrit(freedom, 1 - stats.TAIL) * time / times.sum()) ** 2)
        freedoms.append(freedom)
        named += 1
    if not errors:
        return stats.Interval(value, value, value, 0, "nothing is routed to speculation")
    variance = float(sum(errors))
    freedom = variance**2 / sum(e**2 / f for e, f in zip(errors, freedoms, strict=True))
    half = float(stdtrit(freedom, 1 - stats.TAIL)) * variance**0.5 * value
    return stats.Interval(value, value - half, value + half, named, "delta-welch-t")


def wrong_labels(rows: pl.DataFrame) -> pl.DataFrame:
    """What it costs to take one workload for another: one row a pair with unlike decisions.

    Columns: GROUP, workload, taken_for, goes_to, ms_per_token (lost, or gained below 0),
    share (of its time when labelled rightly), seconds (a turn). Undecided rows are left out.
    """
    out = []
    known = rows.filter(pl.col("decision").is_in([ON, OFF]))
    for key, group in known.group_by(GROUP, maintain_order=True):
        listed = group.to_dicts()
        for row in listed:
            # On labelled off, or off labelled on: the other path's time per token.
            other = row["base_ms_per_token"] if row["decision"] == ON else row["ms_per_token"]
            lost = other - row["routed_ms_per_token"]
            for taken in listed:
                if taken["decision"] != row["decision"]:
                    saved = row["saved_s"]
                    out.append({
                        **dict(zip(GROUP, key, strict=True)), "workload": row["workload"],
                        "taken_for": taken["workload"], "goes_to": taken["send_to"],
                        "ms_per_token": lost, "share": lost / row["routed_ms_per_token"],
                        "seconds": None if saved is None else abs(saved),
                    })  # fmt: skip
    kinds = {**{name: SCHEMA[name] for name in GROUP}, "workload": pl.String,
             "taken_for": pl.String, "goes_to": pl.String, "ms_per_token": pl.Float64,
             "share": pl.Float64, "seconds": pl.Float64}  # fmt: skip
    return pl.DataFrame(out, schema=kinds, orient="row")


def shares(text: str) -> dict[str, float]:
    """{workload: share} of `agent=0.5,chat=50%`. Raises Problem unless they add up to 1."""
    found: dict[str, float] = {}
    for pair in text.split(","):
        name, sign, value = pair.rpartition("=")
        try:
            share = float(value.strip().removesuffix("%")) / (100 if "%" in value else 1)
        except ValueError:
            share = -1.0
        if not sign or not name.strip() or not 0 <= share <= 1 or name.strip() in found:
            raise Problem(
                f"--mix {pair}: write WORKLOAD=SHARE, each once, as agent=0.5 or 50%", code=2
            )
        found[name.strip()] = share
    if abs(sum(found.values()) - 1) > 1e-3:
        raise Problem(f"--mix {text}: shares of tokens must add up to 1, these to "
                      f"{sum(found.values()):g}", code=2)  # fmt: skip
    return found
