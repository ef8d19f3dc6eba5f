"""The sentences that answer first on the pages about metrics and other tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tauscope.figures.words import (
    change,
    listed,
    number,
    percent,
    quoted,
    reasons,
)

MOST_NAMED = 5


def speedup_answer(rows: Sequence[Mapping[str, Any]], flips: Sequence[Mapping[str, Any]]) -> str:
    """The answer of a report, from rows of speedup.table and speedup.flips."""
    if not rows:
        return "No run with speculation is here, so nothing can be said about what it gains."
    said = []
    for kind in sorted({row["simulated"] for row in rows}):
        some = [row for row in rows if row["simulated"] == kind]
        text = _answer(some, [flip for flip in flips if flip["simulated"] == kind])
        whose = "In the simulated runs" if kind else _whose(some)
        said.append(f"{whose}: {_lower(text)}" if whose else text)
    return " ".join(said)


def _whose(rows: Sequence[Mapping[str, Any]]) -> str:
    """`With MODEL on MACHINE`, as far as there is exactly one of them."""
    found = {name: {row.get(name) for row in rows} for name in ("model", "machine")}
    one = {name: values.pop() for name, values in found.items() if len(values) == 1}
    parts = {"model": "with", "machine": "on"}
    told = [f"{parts[name]} {quoted(one[name])}" for name in parts if one.get(name)]
    text = " ".join(told)
    return text[:1].upper() + text[1:]


def _answer(rows: Sequence[Mapping[str, Any]], flips: Sequence[Mapping[str, Any]]) -> str:
    several = len({row.get("arm") for row in rows}) > 1

    def named(some: Iterable[Mapping[str, Any]]) -> str:
        def one(row: Mapping[str, Any]) -> str:
            arm = f" under {quoted(row['arm'])}" if several else ""
            return f"{quoted(row['workload'])}{arm} ({change(row['speedup'])})"

        return listed([one(row) for row in some])

    def sided(name: str) -> list[Mapping[str, Any]]:
        found = [row for row in rows if row["verdict"] == name]
        return sorted(found, key=lambda row: -row["speedup"])

    gains, losses, open_ = sided("on"), sided("off"), sided("undecided")
    parts = []
    if gains:
        parts.append(f"speculation pays for {named(gains)}")
    if losses:
        parts.append(f"costs time on {named(losses)}" if gains else
                     f"speculation costs time on {named(losses)}")  # fmt: skip
    text = " and ".join(parts)
    if len(open_) > MOST_NAMED:
        some = f"{len(open_)} of {len(rows)} pairs of a workload and an arm"
        text = f"{text}; undecided for {some}" if text else f"undecided: {some}"
    elif open_:
        text = f"{text}; undecided for {named(open_)}" if text else f"undecided: {named(open_)}"
    if not text:
        lone = rows[0]["speedup_why"] or "no off arm to compare with"
        return f"No verdict: {lone}."
    text = text[0].upper() + text[1:] + "."
    if open_ and not (gains or losses):
        each = dict.fromkeys(reasons([name], row) for row in open_ for name in row["reasons"])
        text += f" Why: {'; '.join(each)}."
    if flips:
        arms = listed([quoted(arm) for arm in dict.fromkeys(flip["arm"] for flip in flips)])
        under = f" Under {arms} one" if several else " One"
        text += f"{under} pooled figure would hide that the sign changes from workload to workload."
    return text


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def rosetta_answer(rows: Sequence[Mapping[str, Any]]) -> str:
    """The span of numbers that the same cycles give, from rows of rosetta.table."""
    said = []
    for key in dict.fromkeys((row["arm"], row["simulated"]) for row in rows):
        own = {r["name"]: r for r in rows if (r["arm"], r["simulated"]) == key}
        rates = [r for r in own.values() if r["kind"] == "ratio" and r["value"] is not None]
        tau, arm = own["sglang_length"]["value"], quoted(key[0])
        made = "simulated cycles" if key[1] else "cycles"
        if tau is None or not rates:
            said.append(f"The {made} of arm {arm} don't tell what these tools would print.")
            continue
        low, high = min(rates, key=_value), max(rates, key=_value)
        said.append(
            f"The {made} of arm {arm} emit {number(tau)} tokens each; the “acceptance” that "
            f"tools would print for them goes from {percent(low['value'])} to "
            f"{percent(high['value'])}."
        )
    return " ".join(said) or "No cycle of a treated arm is here, so no tool would print anything."


def _value(row: Mapping[str, Any]) -> float:
    return row["value"]
