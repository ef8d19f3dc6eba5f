"""What is wrong with an experiment: one query a finding, and the rows that show it.

Each `.sql` beside this file is a finding: its comment says what it means and what to do, and
its rows, if there are any, are the evidence. Anyone can paste it into `tauscope sql`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

import polars as pl

from tauscope import catalog

# In the order of how much of a comparison they take away.
NAMES = (
    "impossible_counters", "mixed_runs", "treatment", "no_cycles", "baseline_drafts",
    "outputs_differ", "dark_cycles", "open_tokens", "prefill_in_speed", "drift",
    "unpaired_prompts", "repeated_prompts", "repetitive_prompts", "few_bets", "unknown_kinds",
    "unfit_lines",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    """A finding as it is defined: `query` is one SELECT over the views of a store."""

    name: str
    title: str
    means: str
    remedy: str
    query: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that found something: `rows` show it."""

    rule: Rule
    rows: pl.DataFrame


def examine(data: catalog.Catalog) -> list[Finding]:
    """Every rule that finds rows in the stores, in the order of NAMES; damaged logs come first."""
    found = []
    if data.damaged:
        rows = pl.DataFrame({"store": [str(d.store) for d in data.damaged],
                             "log_id": [d.log_id for d in data.damaged],
                             "what": [d.text for d in data.damaged]})  # fmt: skip
        found.append(Finding(_DAMAGED, rows))
    for name in NAMES:
        rows = data.run(rule(name).query, name, {})
        if not rows.is_empty():
            found.append(Finding(rule(name), rows))
    return found


@cache
def rule(name: str) -> Rule:
    """The rule in <name>.sql."""
    text = (resources.files("tauscope.doctor") / f"{name}.sql").read_text(encoding="utf-8")
    told = {
        key.lower(): " ".join(re.sub(r"(?m)^--", "", value).split())
        for key, value in re.findall(r"(?ms)^-- (Finding|Means|Do): (.*?)(?=^-- \w+:|^\w)", text)
    }
    return Rule(name, told["finding"], told["means"], told["do"], text)


_DAMAGED = Rule(
    "damaged_logs",
    "a log is damaged",
    "its rows are left out of every figure",
    "do what the row says; the raw log is kept where it was imported",
    "",
)
