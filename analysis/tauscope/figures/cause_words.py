"""The sentences that answer first on the pages about causes, comparison and routing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tauscope.compare import Comparison
from tauscope.figures import words


def timing_answer(rows: Sequence[Mapping[str, Any]], costs: Sequence[Mapping[str, Any]]) -> str:
    """From bottleneck.table and costs.table: what holds speculation back, by how much."""
    if not rows:
        return "No run with speculation is here, so nothing can be said about what it costs."
    said = []
    for kind in sorted({row["simulated"] for row in rows}):
        some, known = ([r for r in frame if r["simulated"] == kind] for frame in (rows, costs))
        text = _held(some, known)
        said.append(f"In the simulated runs: {text[0].lower()}{text[1:]}" if kind else text)
    return " ".join(said)


def _held(rows: Sequence[Mapping[str, Any]], costs: Sequence[Mapping[str, Any]]) -> str:
    steps = [row["verify_step_ratio"] for row in costs if row["verify_step_ratio"] is not None]
    parts = []
    if steps:
        low, high = words.number(min(steps), 2), words.number(max(steps), 2)
        parts.append(
            f"One verification costs {low if low == high else f'{low} to {high}'} plain steps."
        )
    by: dict[str, list[str]] = {}
    for row in rows:
        by.setdefault(row["bottleneck"] or "", []).append(words.quoted(row["workload"]))
    unknown, free = by.pop("", None), by.pop("none", None)
    held = [f"the {name} for {words.listed(_once(who))}" for name, who in by.items()]
    if held:
        parts.append(f"What holds speculation back is {words.listed(held)}.")
    if free:
        parts.append(f"No part stands out for {words.listed(_once(free))}.")
    if unknown:
        parts.append(f"Unknown for {words.listed(_once(unknown))}: {_why(rows)}.")
    return " ".join(parts)


def compare_answer(found: Comparison) -> str:
    """Which workloads got faster, and which slower."""
    rows = found.speedups.to_dicts()
    if not rows:
        return f"Nothing to compare: {words.label(words.listed(found.only_a), 200)}."
    parts = []
    for name in ("faster", "slower", "undecided"):
        some = [row for row in rows if row["said"] == name]
        if some:
            named = [f"{words.quoted(r['workload'])} ({words.change(r['speedup'])})" for r in some]
            parts.append(f"{name} for {words.listed(named)}")
    lone = [row for row in rows if row["said"] is None]
    if lone:
        parts.append(f"unknown for {words.listed([words.quoted(r['workload']) for r in lone])}")
    made = " (simulated)" if any(row["simulated"] for row in rows) else ""
    sides = sorted({(row["arm_a"], row["arm_b"]) for row in rows})
    heads = [f"{words.quoted(b)} against {words.quoted(a)}" for a, b in sides]
    differ = sum(row["unequal"] or 0 for row in found.outputs.to_dicts())
    end = f" {words.plural(differ, 'output')} not the same." if differ else ""
    return f"{words.listed(heads)}{made}: {'; '.join(parts)}.{end}"


def routing_answer(rows: Sequence[Mapping[str, Any]]) -> str:
    """Which workloads to send where."""
    if not rows:
        return "No run with speculation is here, so there is nothing to route."
    said = []
    for kind in sorted({row["simulated"] for row in rows}):
        parts = []
        some = [row for row in rows if row["simulated"] == kind]
        for name in ("on", "off", "elsewhere", "undecided"):
            who = [words.quoted(row["workload"]) for row in some if row["decision"] == name]
            if who:
                parts.append(f"{name} for {words.listed(_once(who))}")
        head = "In the simulated runs, speculation" if kind else "Speculation"
        said.append(f"{head}: {'; '.join(parts)}.")
    return " ".join(said)


def _once(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _why(rows: Sequence[Mapping[str, Any]]) -> str:
    reasons = [row["because"] for row in rows if row["bottleneck"] is None]
    return words.listed(_once(reasons))
