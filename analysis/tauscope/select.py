"""Selectors: which rows of which store, in one word, as `compare` and `check` take them.

    traces/store                       every row of a store
    traces/store:arm=mtp2              only that arm
    runs/new:arm=mtp1,workload=code    both must hold
    s:workload=code,workload=chat      either value of one column
    :arm=off                           of the usual store

A column is one of catalog.DIMENSIONS.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tauscope import catalog
from tauscope.errors import Problem

_CONDITIONS = re.compile(r"(?s)(.*?):((?:[a-z_]+=[^,]*)(?:,[a-z_]+=[^,]*)*)")


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows of some stores: `where` as catalog.selection takes it, `text` as it was typed."""

    text: str
    data: catalog.Catalog
    where: dict[str, list[str]]


def opened(text: str) -> Selection:
    """The rows that the selector `text` names. Raises Problem when it names none that exist."""
    store, where = split(text)
    data = catalog.connect([store] if store else None)
    return Selection(text, data, where)


def split(text: str) -> tuple[str, dict[str, list[str]]]:
    """The store's path ("" for the usual one) and {column: values} of a selector."""
    # A path may hold a colon, and even an equals sign: what exists is meant as it is.
    if text and Path(text).expanduser().exists():
        return text, {}
    match = _CONDITIONS.fullmatch(text)
    if match is None:
        if not text or re.fullmatch(r"[a-z_]+=.*", text):
            raise Problem(f"{text or 'empty selector'}: write STORE:COLUMN=VALUE, or "
                          ":COLUMN=VALUE for the usual store, as in :arm=mtp1", code=2)  # fmt: skip
        return text, {}
    return match[1], conditions(match[2])


def conditions(text: str) -> dict[str, list[str]]:
    """{column: values} of COLUMN=VALUE,…. Raises Problem for another form or column."""
    where: dict[str, list[str]] = {}
    for pair in text.split(","):
        column, sign, value = pair.partition("=")
        if not sign:
            raise Problem(f"{pair or 'nothing'}: write COLUMN=VALUE, as in arm=mtp1", code=2)
        where.setdefault(catalog.dimension(column.strip()), []).append(value)
    return where
