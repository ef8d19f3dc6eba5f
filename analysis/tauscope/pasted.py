"""A comparison as Markdown: what one pastes into a pull request.

Labels come from logs, so each stands in a code element with every character that Markdown,
HTML or a forge's mentions would act on written as an entity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from tauscope.compare import KEY, Comparison
from tauscope.figures import words

_ACTIVE = frozenset("\\`*_{}[]()<>#+-.!|~&@:/'\"$=^")


def label(text: str | None, longest: int = words.LONGEST) -> str:
    """A label that stays text, wherever Markdown is shown."""
    shown = words.label(text, longest)
    return f"<code>{''.join(f'&#{ord(c)};' if c in _ACTIVE else c for c in shown)}</code>"


def markdown(found: Comparison, a: str, b: str) -> str:
    """The whole comparison; `a` and `b` are the selectors as they were typed."""
    simulated = " (simulated)" if found.speedups["simulated"].any() else ""
    parts = [
        f"**{label(b)} against {label(a)}**{simulated}",
        _table(
            ("workload", "speed-up", "95 % interval", "says", "pairs", "why undecided"),
            (
                (
                    _name(row), words.change(row["speedup"]),
                    words.span(row["speedup_lo"], row["speedup_hi"], words.change),
                    row["said"] or "nothing", str(row["pairs"]),
                    words.reasons(row["failed"]) or row["speedup_why"] or "",
                )
                for row in found.speedups.iter_rows(named=True)
            ),
        ),
        *(f"- {label(row['workload'])}: {remark}"
          for row in found.speedups.iter_rows(named=True) for remark in row["remarks"]),
        "Outputs, lengths first:",
        _table(
            ("workload", "prompts in both", "tokens", "lengths differ", "equal", "unequal",
             "not compared"),
            (
                (
                    _name(row), words.count(row["prompts"]),
                    f"{words.count(row['tokens_a'])} → {words.count(row['tokens_b'])}",
                    *(words.count(row[n]) for n in ("lengths_differ", "equal", "unequal",
                                                    "unknown")),
                )
                for row in found.outputs.iter_rows(named=True)
            ),
        ),
        "<details><summary>metrics, outcomes, costs, and what moved</summary>",
        _table(
            ("workload", "metric", "before", "after", "unit"),
            (
                (_name(row), row["label"], *(_interval(row, side) for side in ("a", "b")),
                 row["unit"])
                for row in found.metrics.iter_rows(named=True)
                if row["a"] is not None or row["b"] is not None
            ),
        ),
        _table(
            ("workload", "outcome", "share before", "share after"),
            (
                (_name(row), row["outcome"].replace("_", " "),
                 *(words.percent(row[f"share_{side}"]) for side in ("a", "b")))
                for row in found.outcomes.iter_rows(named=True)
            ),
        ),
        _table(
            ("workload", "cost, ms", "before", "after"),
            (
                (_name(row), row["cost"], *(words.number(row[s], 2) for s in ("a", "b")))
                for row in found.costs.iter_rows(named=True)
            ),
        ),
        _table(
            ("workload", "ms per token won (lost)", "before", "after", "moved"),
            (
                (_name(row), row["about"] + (" (derived)" if row["derived"] else ""),
                 *(words.number(row[n], 2) for n in ("a", "b", "moved")))
                for row in found.parts.iter_rows(named=True)
            ),
        ),
        "</details>",
        # Sentences, not labels: a part of one says nothing.
        *(f"- {label(text, len(text))}" for text in found.only_a + found.only_b),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def moved_most(parts: pl.DataFrame) -> dict[tuple, dict]:
    """For each compared arm the part that moved most, by the values of KEY."""
    known = parts.filter(pl.col("moved").is_not_null())
    most = known.sort(pl.col("moved").abs(), descending=True, maintain_order=True)
    rows = most.unique(list(KEY), keep="first", maintain_order=True).iter_rows(named=True)
    return {tuple(row[name] for name in KEY): row for row in rows}


def _name(row: dict) -> str:
    arms = row["arm_b"]
    if row["arm_a"] != row["arm_b"]:
        return f"{label(row['workload'])}, {label(row['arm_a'])} → {label(arms)}"
    return f"{label(row['workload'])}, {label(arms)}"


def _interval(row: dict, side: str) -> str:
    span = words.span(row[f"{side}_lo"], row[f"{side}_hi"])
    return words.number(row[side]) + (f" ({span})" if span else "")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join(lines)
