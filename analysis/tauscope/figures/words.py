"""Numbers in words: how a figure is written, and the sentences that answer first.

Every text here is plain text; whoever puts it on a page escapes it. Labels come from
logs, so they pass through `label`, which makes what would act on a reader visible.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

LONGEST = 48
# U+2068 and U+2069 keep the direction of a label's script to itself.
_ISOLATE = "\u2068{}\u2069"

REASONS = {
    "interval": "the interval of the speed-up includes 1",
    "clusters": "fewer than 5 prompts",
    "bets": "fewer than 30 drafts were verified",
    "treatment": "half of the cycles or fewer drafted anything",
    "tokens": "the tokens don't add up to what the engine says it made",
    "baseline": "the off arm drafts, or it isn't known whether it does",
    "sources": "two sources of the plain step differ by more than 3 %",
    "pairs": "fewer than 5 prompts ran in both arms",
    "outputs": "the arms' outputs were not compared, or differ in length by more than 5 %",
    "drift": "the machine's speed drifted by more than half of the effect",
}


def label(text: str | None, longest: int = LONGEST) -> str:
    """`text` fit to be shown: control and direction marks visible, long ones shortened.

    A shortened label ends in its length and a hash, so two of them never look alike.
    """
    if text is None:
        return "unknown"
    shown = "".join(_visible(char) for char in text[: longest + 1])
    if len(text) <= longest and len(shown) <= 8 * longest:
        return shown or "(empty)"
    mark = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=3).hexdigest()
    return f"{shown[: longest - 8]}… ({len(text):,} characters, {mark})"


def _visible(char: str) -> str:
    kind = unicodedata.category(char)
    if kind in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
        return f"<U+{ord(char):04X}>"
    return char


def quoted(text: str | None) -> str:
    """A label inside a sentence: its script's direction ends where it ends."""
    return _ISOLATE.format(label(text))


def listed(items: Sequence[str], last: str = "and") -> str:
    """`a, b and c`."""
    items = list(items)
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def number(value: float | None, digits: int = 3) -> str:
    """A plain number, with a true minus sign; None is a dash."""
    if value is None:
        return "–"
    return f"{value:,.{digits}f}".replace("-", "−")


def count(value: float | None) -> str:
    return number(value, 0) if value is None or float(value).is_integer() else number(value, 1)


def percent(value: float | None, digits: int = 1, sign: bool = False) -> str:
    """0.969 as `96.9 %`."""
    if value is None:
        return "–"
    return f"{100 * value:{'+' if sign else ''}.{digits}f} %".replace("-", "−")


def change(speedup: float | None) -> str:
    """A speed-up of 1.094 as `+9.4 %`."""
    return percent(None if speedup is None else speedup - 1, sign=True)


def span(lo: float | None, hi: float | None, write: Any = number) -> str:
    """An interval, or nothing where there is none."""
    if lo is None or hi is None:
        return ""
    low, high = write(lo), write(hi)
    return f"{low.removesuffix(' %')} … {high}" if low.endswith(" %") else f"{low} … {high}"


def plural(value: int, one: str, many: str | None = None) -> str:
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def reasons(names: Iterable[str]) -> str:
    """A verdict's reasons in plain words."""
    return listed([REASONS[name] for name in names])


def verdict(row: Mapping[str, Any]) -> str:
    """`on`, `off` or `undecided`, or the reason for which there is no verdict."""
    return row["verdict"] or "none"


def why(row: Mapping[str, Any]) -> str:
    """Why a row of speedup.table says what it says."""
    if row["speedup"] is None:
        return f"unknown: {row['speedup_why']}"
    if row["reasons"]:
        return reasons(row["reasons"])
    side = "above" if row["verdict"] == "on" else "below"
    return f"the whole interval lies {side} 1, over {plural(row['pairs'], 'paired prompt')}"


MOST_NAMED = 5


def speedup_answer(rows: Sequence[Mapping[str, Any]], flips: Sequence[Mapping[str, Any]]) -> str:
    """The answer of a report, from rows of speedup.table and speedup.flips."""
    if not rows:
        return "No run with speculation is here, so nothing can be said about what it gains."
    said = []
    for kind in sorted({row["simulated"] for row in rows}):
        some = [row for row in rows if row["simulated"] == kind]
        text = _answer(some, [flip for flip in flips if flip["simulated"] == kind])
        said.append(f"In the simulated runs: {_lower(text)}" if kind else text)
    return " ".join(said)


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
        names = list(dict.fromkeys(name for row in open_ for name in row["reasons"]))
        text += f" Why: {reasons(names)}."
    if flips:
        text += " One pooled figure would hide that the sign changes from workload to workload."
    return text


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def row_names(
    rows: Sequence[Mapping[str, Any]],
    also: Sequence[str] = (),
    first: str = "workload",
    unique: bool = True,
) -> list[str]:
    """A short name for each row: `first`, and whatever of `also` tells rows apart.

    What the others tell already is left out, the last of `also` first. `unique` numbers
    names that are still alike.
    """

    def told(names: Sequence[str]) -> int:
        return len({tuple(repr(row.get(name)) for name in (first, *names)) for row in rows})

    differs = [name for name in also if name != first]
    for name in reversed(differs.copy()):
        fewer = [other for other in differs if other != name]
        if told(fewer) == told(differs):
            differs = fewer
    names = []
    for row in rows:
        parts = [label(row[first])]
        for name in differs:
            value = row.get(name)
            if name == "simulated":
                parts.append("simulated" if value else "real")
            else:
                parts.append(label(value if value is None else str(value), 24))
        names.append(" · ".join(parts))
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 or not unique else f"{name} ({seen[name]})")
    return out


def run_id(row: Mapping[str, Any]) -> str:
    """What a row of ledger.stretches stands for: one run by its id, or so many."""
    return plural(row["runs"], "run") if row["run_id"] is None else label(row["run_id"])


def ledger_answer(
    runs: Sequence[Mapping[str, Any]], outcomes: Sequence[Mapping[str, Any]], damaged: int
) -> str:
    """What adds up and what doesn't, from rows of ledger.runs and ledger.outcomes."""
    if not runs:
        return "No run is here, so there is nothing to add up."
    cycles = sum(row["cycles"] for row in outcomes)
    text = f"{plural(len(runs), 'run')} with {plural(cycles, 'cycle')}"
    known = [row for row in runs if row["unattributed_tokens"] is not None]
    if known:
        gap = sum(row["unattributed_tokens"] for row in known)
        made = sum(row["generated_tokens"] for row in known)
        open_ = [row for row in known if row["unattributed_tokens"]]
        if open_:
            text += f"; {count(gap)} of {count(made)} tokens are in no cycle"
            text += f" ({plural(len(open_), 'run')})"
        else:
            text += f"; all {count(made)} generated tokens are accounted for"
    unknown = len(runs) - len(known)
    if unknown:
        text += f"; for {plural(unknown, 'run')} the token count or the cycles are unknown"
    faults = {
        "unlogged cycles": sum(row["unlogged"] for row in runs),
        "cycles of an undocumented kind": sum(row["unknown"] for row in runs),
        "refused rows": sum(row["refused_rows"] or 0 for row in runs),
        "lines of no known shape": sum(row["unfit_lines"] or 0 for row in runs),
        "damaged logs left out": damaged,
    }
    found = [f"{number:,} {name}" for name, number in faults.items() if number]
    return f"{text}. " + (f"Kept apart: {listed(found)}." if found else "Nothing was kept out.")


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
