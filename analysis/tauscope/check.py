"""Did a change make decoding slower than it may be? A comparison, judged for CI.

A loss is 1 − S, S the speed-up of the candidate over the baseline. It passes only if the
whole interval lies within the limit, fails if the whole interval lies beyond it, and is
otherwise not told: a figure without evidence is no pass.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import asdict, dataclass
from typing import Any

from tauscope.compare import Comparison
from tauscope.errors import Problem
from tauscope.figures import words

PASS, FAIL, UNKNOWN = "pass", "fail", "can't tell"
EXITS = {PASS: 0, FAIL: 1, UNKNOWN: 3}
# What would have to be there, by the name of the failed condition.
REMEDIES = {
    "clusters": "at least 5 prompts are needed",
    "bets": "at least 30 verified drafts are needed",
    "treatment": "speculation must have run in more than half of the cycles",
    "tokens": "the engine's own token counts are needed, and must agree with the cycles",
    "baseline": "a baseline without a loaded drafter is needed",
    "pairs": "at least 5 prompts that both sides ran are needed: name them with --prompt-id",
    "outputs": "output hashes on both sides are needed, and lengths within 5 %",
    "drift": "the machine's speed drifted too much: interleave the runs, or cool it",
}


@dataclass(frozen=True, slots=True)
class Case:
    """One workload and pair of arms. Losses as fractions; negative is a gain."""

    name: str
    state: str
    loss: float | None
    loss_lo: float | None
    loss_hi: float | None
    missing: list[str]


@dataclass(frozen=True, slots=True)
class Judgement:
    """All cases; a failure outweighs what can't be told, that outweighs a pass."""

    limit: float
    cases: list[Case]

    @property
    def state(self) -> str:
        found = {case.state for case in self.cases}
        return next(state for state in (FAIL, UNKNOWN, PASS) if state in found)

    @property
    def code(self) -> int:
        return EXITS[self.state]

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        cases = [asdict(case) for case in self.cases]
        return {"state": self.state, "exit_code": self.code, "max_loss": self.limit,
                "cases": cases}  # fmt: skip


def judge(found: Comparison, limit: float) -> Judgement:
    """Each compared workload against `limit` (a fraction), and what the candidate lacks."""
    mixed = found.speedups["simulated"].n_unique() > 1
    cases = [_case(row, limit, mixed) for row in found.speedups.iter_rows(named=True)]
    cases += [
        Case(text, UNKNOWN, None, None, None, ["the candidate has nothing like it"])
        for text in found.only_a
    ]
    return Judgement(limit, cases)


def fraction(text: str) -> float:
    """0.02 of `2%` or `0.02`. Raises Problem for anything else, and for 1 and above."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*", text)
    value = float(match[1]) / (100 if match[2] else 1) if match else 1.0
    if not value < 1:
        raise Problem(f"--max-loss {text}: write it as 2% or 0.02, less than 100%", code=2)
    return value


def junit(found: Judgement) -> bytes:
    """The judgement as JUnit XML; what can't be told is an error, not a pass."""
    count = [sum(case.state == state for case in found.cases) for state in (FAIL, UNKNOWN)]
    suite = ET.Element("testsuite", name="tauscope check", tests=str(len(found.cases)),
                       failures=str(count[0]), errors=str(count[1]))  # fmt: skip
    for case in found.cases:
        made = ET.SubElement(suite, "testcase", classname="tauscope.check", name=_xml(case.name))
        if case.state != PASS:
            kind = "failure" if case.state == FAIL else "error"
            ET.SubElement(made, kind, message=_xml(said(case, found.limit)))
    return ET.tostring(suite, encoding="utf-8", xml_declaration=True)


def said(case: Case, limit: float) -> str:
    """One case in words."""
    if case.loss is None:
        return f"{case.state}: {'; '.join(case.missing)}"
    gain = case.loss < 0
    ends = case.loss_lo, case.loss_hi
    if gain and None not in ends:
        ends = -case.loss_hi, -case.loss_lo
    span = words.span(*ends, words.percent)
    text = f"{'gain' if gain else 'loss'} {words.percent(abs(case.loss))}"
    text += f"{f' ({span})' if span else ''}, limit a loss of {words.percent(limit)}"
    return f"{case.state}: {text}" + (f"; {'; '.join(case.missing)}" if case.missing else "")


def _case(row: dict[str, Any], limit: float, mixed: bool) -> Case:
    arms = row["arm_b"] if row["arm_a"] == row["arm_b"] else f"{row['arm_a']} → {row['arm_b']}"
    name = f"{words.label(row['workload'])}: {words.label(arms)}"
    if mixed:
        name += " (simulated)" if row["simulated"] else " (real)"
    if row["speedup"] is None:
        return Case(name, UNKNOWN, None, None, None, [row["speedup_why"]])
    value = 1 - row["speedup"]
    lo, hi = (None if row[f"speedup_{end}"] is None else 1 - row[f"speedup_{end}"]
              for end in ("hi", "lo"))  # fmt: skip
    # What matters here is which side of the limit the loss is on, not the sign of the gain.
    failed = [name for name in row["failed"] if name not in ("interval", "drift")]
    moves = row["drift"] is not None and abs(row["drift"]) > abs(value - limit) / 2
    if moves and not row["interleaved"]:
        failed.append("drift")
    missing = [REMEDIES[name] for name in failed]
    if lo is None or hi is None:
        missing.append(f"no interval: {row['speedup_why']}")
    if missing:
        return Case(name, UNKNOWN, value, lo, hi, missing)
    if hi <= limit:
        return Case(name, PASS, value, lo, hi, [])
    if lo > limit:
        return Case(name, FAIL, value, lo, hi, [])
    return Case(name, UNKNOWN, value, lo, hi, ["the interval holds the limit: more prompts"])


def _xml(text: str) -> str:
    """`text` without the characters that XML can't hold at all."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "�", text)
