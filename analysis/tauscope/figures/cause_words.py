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
    for head, some in _by_arm(rows):
        by: dict[str, list[str]] = {}
        for row in some:
            by.setdefault(row["bottleneck"] or "", []).append(words.quoted(row["workload"]))
        unknown, free = by.pop("", None), by.pop("none", None)
        held = [f"the {name} for {words.listed(_once(who))}" for name, who in by.items()]
        told = []
        if held:
            told.append(f"what holds speculation back is {words.listed(held)}")
        if free:
            told.append(f"no part stands out for {words.listed(_once(free))}")
        if unknown:
            told.append(f"unknown for {words.listed(_once(unknown))}: {_why(some)}")
        if head:
            parts.append(f"{head}: {'; '.join(told)}.")
        else:
            parts += [f"{text[0].upper()}{text[1:]}." for text in told]
    return " ".join(parts)


def _by_arm(
    rows: Sequence[Mapping[str, Any]], always: bool = False
) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Rows by arm, and by machine and model where there are several: (`Under ARM …`, rows).

    The head of a lone arm is empty, unless it is `always` to be named.
    """
    shared = {"machine": "on", "model": "with"}
    several = [n for n in shared if len({row.get(n) for row in rows}) > 1]
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["arm"], *(row.get(n) for n in several)), []).append(row)
    if len(groups) == 1 and not always:
        return [("", list(rows))]
    out = []
    for (arm, *rest), some in groups.items():
        where = [f"{shared[n]} {words.quoted(v)}" for n, v in zip(several, rest, strict=True)]
        out.append((" ".join([f"Under {words.quoted(arm)}", *where]), some))
    return out


def compare_answer(found: Comparison) -> str:
    """Which workloads got faster, and which slower."""
    rows = found.speedups.to_dicts()
    if not rows:
        return f"Nothing to compare: {words.label(words.listed(found.only_a), 200)}."
    mixed = len({row["simulated"] for row in rows}) > 1

    def named(row: Mapping[str, Any], *more: str) -> str:
        told = ", ".join([*([words.made(row["simulated"])] if mixed else []), *more])
        return words.quoted(row["workload"]) + (f" ({told})" if told else "")

    parts = []
    for name in ("faster", "slower", "undecided"):
        some = [row for row in rows if row["said"] == name]
        if some:
            each = [named(row, words.change(row["speedup"])) for row in some]
            parts.append(f"{name} for {words.listed(each)}")
    lone = [row for row in rows if row["said"] is None]
    if lone:
        parts.append(f"unknown for {words.listed([named(row) for row in lone])}")
    made = " (simulated)" if not mixed and rows[0]["simulated"] else ""
    sides = sorted({(row["arm_a"], row["arm_b"]) for row in rows})
    heads = [f"{words.quoted(b)} against {words.quoted(a)}" for a, b in sides]
    differ = sum(row["unequal"] or 0 for row in found.outputs.to_dicts())
    end = f" {words.plural(differ, 'output')} not the same." if differ else ""
    return f"{words.listed(heads)}{made}: {'; '.join(parts)}.{end}"


def routing_answer(rows: Sequence[Mapping[str, Any]], asked: str = "") -> str:
    """Which workloads to send where, of the arm `asked` about, else of the one shown."""
    if not rows:
        return "No run with speculation is here, so there is nothing to route."
    said = []
    for kind in sorted({row["simulated"] for row in rows}):
        for head, some in _by_arm([r for r in rows if r["simulated"] == kind], always=True):
            parts = []
            for name in ("on", "off", "elsewhere", "undecided"):
                who = [words.quoted(row["workload"]) for row in some if row["decision"] == name]
                if who:
                    told = "better under another arm" if name == "elsewhere" else name
                    parts.append(f"{told} for {words.listed(_once(who))}")
            if kind:
                head = f"In the simulated runs, u{head[1:]}"
            chosen = "" if asked else ", the arm that decides most"
            said.append(f"{head}{chosen}, speculation is {'; '.join(parts)}.")
    return " ".join(said)


def _once(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _why(rows: Sequence[Mapping[str, Any]]) -> str:
    reasons = [row["because"] for row in rows if row["bottleneck"] is None]
    return words.listed(_once(reasons))
