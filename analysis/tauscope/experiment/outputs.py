"""Losslessness: did every arm give the off arm's output, and if not, where did it first differ?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from tauscope.experiment.cell import Desk
from tauscope.experiment.plan import Plan
from tauscope.experiment.schedule import Cell, cells
from tauscope.schema import OFF

SCHEMA = {
    "workload": pl.String, "prompt_id": pl.String, "arm": pl.String, "repeat": pl.Int64,
    "unit": pl.String, "base_length": pl.Int64, "length": pl.Int64, "equal": pl.Boolean,
    "first_difference": pl.Int64, "base_said": pl.String, "said": pl.String,
}  # fmt: skip


def compare(desk: Desk, plan: Plan) -> pl.DataFrame:
    """Each cell's output held against the off arm's of the same prompt: columns of SCHEMA.

    Token by token where the engine wrote its token ids, else word by word. Lengths are in
    `unit`s; `first_difference` counts them from 0, and is the shorter length where one
    output is the beginning of the other. The off arm's repeats are held against its first:
    an engine that doesn't repeat itself can't be called lossless. `equal` is null where an
    output is missing.
    """
    done = [cell for cell in cells(plan) if desk.is_done(cell)]
    off = {(c.prompt.id, c.repeat): c for c in done if c.arm == OFF}
    rows = []
    for cell in done:
        repeat = 0 if cell.arm == OFF else cell.repeat
        if cell.arm == OFF and cell.repeat == 0:
            continue
        base = off.get((cell.prompt.id, repeat))
        rows.append(
            {"workload": cell.prompt.workload, "prompt_id": cell.prompt.id, "arm": cell.arm,
             "repeat": cell.repeat, **(_held_against(desk, base, cell) if base else {})}
        )  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA)


def first_difference(base: Sequence[str], other: Sequence[str]) -> int | None:
    """The first place where the two differ, their lengths included; None when they are equal."""
    if len(base) == len(other) and list(base) == list(other):
        return None
    shared = min(len(base), len(other))
    return next((place for place in range(shared) if base[place] != other[place]), shared)


def _held_against(desk: Desk, base: Cell, cell: Cell) -> dict[str, object]:
    for suffix, unit in (("tokens", "token"), ("txt", "word")):
        texts = [_parts(desk.output(c, suffix), suffix) for c in (base, cell)]
        if None in texts:
            continue
        ours, theirs = texts
        place = first_difference(ours, theirs)
        return {
            "unit": unit, "base_length": len(ours), "length": len(theirs), "equal": place is None,
            "first_difference": place, "base_said": _at(ours, place), "said": _at(theirs, place),
        }  # fmt: skip
    return {}


def _parts(path: Path, suffix: str) -> list[str] | None:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # Blanks stay with the word before them, so that no difference is lost.
    return text.split() if suffix == "tokens" else re.findall(r"\s*\S+|\s+", text)


def _at(parts: Sequence[str], place: int | None) -> str | None:
    if place is None:
        return None
    return parts[place] if place < len(parts) else "(end)"
