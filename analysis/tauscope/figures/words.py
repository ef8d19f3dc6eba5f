"""Numbers and names in words: how a figure, a label and a reason are written.

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
    "interval": "the interval of the speed-up includes no change",
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
# A reason whose cause a row tells apart: the column, what it says there, what it says of null.
_CAUSES = {
    "bets": ("verified", REASONS["bets"], "the number of verified drafts is unknown"),
    "treatment": ("drafting_share", REASONS["treatment"],
                  "the number of cycles that drafted is unknown"),
    "tokens": ("unattributed_tokens", REASONS["tokens"],
               "the engine's token count is unknown, or what its cycles emitted"),
    "baseline": ("baseline_drafts", "the off arm drafts",
                 "it isn't known whether the off arm drafts"),
    "outputs": ("outputs_equal", "the arms' outputs differ in length by more than 5 %",
                "the arms' outputs were not compared"),
}  # fmt: skip
# What a shortened label says beside its ends; up to so much more is shown as it is.
_MARK = 24
_TAIL = 12


def label(text: str | None, longest: int = LONGEST) -> str:
    """`text` fit to be shown: control and direction marks visible, long ones shortened.

    They lose their middle, since labels of a kind begin alike and differ at the end; their
    length and a hash follow, so two of them never look alike.
    """
    if text is None:
        return "unknown"
    shown = _written(text[: longest + _MARK + 1])
    if len(text) <= longest + _MARK and len(shown) <= 8 * longest:
        return shown or "(empty)"
    mark = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=3).hexdigest()
    ends = _written(text[: longest - _TAIL - 8]), _written(text[-_TAIL:])
    return f"{ends[0]}…{ends[1]} ({len(text):,} characters, {mark})"


def _written(text: str) -> str:
    return "".join(_visible(char) for char in text)


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


def reasons(names: Iterable[str], row: Mapping[str, Any] | None = None) -> str:
    """A verdict's reasons in plain words; `row` tells which of their causes it was."""
    return "; ".join(_reason(name, row or {}) for name in names)


def _reason(name: str, row: Mapping[str, Any]) -> str:
    if name == "interval":
        return _no_side(row)
    column, known, unknown = _CAUSES.get(name, ("", "", ""))
    if column not in row:
        return REASONS[name]
    if row[column] is None:
        return unknown
    lengths = [row[side] for side in ("base_tokens", "tokens") if side in row]
    if name == "outputs" and None in lengths:
        return "the lengths of the arms' outputs are unknown"
    return known


def _no_side(row: Mapping[str, Any]) -> str:
    """Why an interval says neither faster nor slower."""
    low, high = row.get("speedup_lo"), row.get("speedup_hi")
    if "speedup_lo" in row and (low is None or high is None):
        both = " in both arms" if "pairs" in row else ""
        why = row.get("speedup_why")
        if why is None or (row.get("clusters") or 0) < 2:
            why = f"fewer than two prompts{both}"
        return f"no interval: {why}"
    if low is not None and not low <= 1 <= high:
        # A modelled gain has to hold at a slower plain step too.
        return "with 0.3 ms more for the plain step the interval includes no change"
    return REASONS["interval"]


def verdict(row: Mapping[str, Any]) -> str:
    """`on`, `off` or `undecided`, or the reason for which there is no verdict."""
    return row["verdict"] or "none"


def why(row: Mapping[str, Any]) -> str:
    """Why a row of speedup.table says what it says."""
    if row["speedup"] is None:
        return f"unknown: {row['speedup_why']}"
    if row["reasons"]:
        return reasons(row["reasons"], row)
    side = "above" if row["verdict"] == "on" else "below"
    over = plural(row["pairs"], "paired prompt")
    return f"the whole interval lies {side} no change, over {over}"


# What tells one set of arms from another; a pooled figure is of one of them.
POOLED = ("simulated", "machine", "model", "experiment", "arm")


def hidden(row: Mapping[str, Any], flips: Sequence[Mapping[str, Any]]) -> str:
    """What the pooled figure of `row` hides, by the flips of its own arm; empty without one."""
    for flip in flips:
        if all(row[name] == flip[name] for name in POOLED):
            return f"hides that {quoted(flip['gains'])} gains and {quoted(flip['loses'])} loses"
    return ""


def row_names(
    rows: Sequence[Mapping[str, Any]],
    also: Sequence[str] = (),
    first: str = "workload",
    unique: bool = True,
) -> list[str]:
    """A short name for each row: `first`, and whatever of `also` tells rows apart.

    What the others tell already is left out, the last of `also` first; but where real and
    simulated rows stand together, each says which it is. `unique` numbers names that are
    still alike.
    """
    mixed = "simulated" in also and len({bool(row.get("simulated")) for row in rows}) > 1

    def told(names: Sequence[str]) -> int:
        return len({tuple(repr(row.get(name)) for name in (first, *names)) for row in rows})

    differs = [name for name in also if name != first]
    for name in reversed(differs.copy()):
        fewer = [other for other in differs if other != name]
        if mixed and name == "simulated":
            continue
        # That the one arm was simulated and the other not doesn't say what they are called.
        apart = {"simulated"} if mixed and name == "arm" else set()
        pair = ([n for n in names if n not in apart] for names in (fewer, differs))
        if len({told(names) for names in pair}) == 1:
            differs = fewer
    names = []
    for row in rows:
        parts = [label(row[first])]
        for name in differs:
            value = row.get(name)
            if name == "simulated":
                parts.append(made(value))
            else:
                parts.append(label(value if value is None else str(value), 24))
        names.append(" · ".join(parts))
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 or not unique else f"{name} ({seen[name]})")
    return out


def made(simulated: bool | None) -> str:
    """Which kind of data a row is of."""
    return "simulated" if simulated else "real"


def turn(prefill: bool) -> str:
    """Which parts of a request its seconds are of."""
    return "prefill and decode" if prefill else "decode alone"


def turns(prefill: Iterable[bool]) -> str:
    """What a chart or table of such seconds is about."""
    known = set(prefill)
    return "the decode of a request, without prefill" if known == {False} else "a whole request"


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
