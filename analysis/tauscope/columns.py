"""Which columns one may group and pick by, and where each is found."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from tauscope import catalog, schema
from tauscope.errors import Problem

# Names that a row of metrics has for something else.
_TAKEN = {"emitted", "overlapped", "generated_tokens", "baseline_drafts", "hidden_cycles",
          "decode_ms", "prefill_ms", "output_hash", "prompt_tokens", "cycle_files",
          "request_files", "refused_files"}  # fmt: skip


@cache
def _of(table: schema.Table) -> frozenset[str]:
    """Columns of one value each: lists and structs make no groups."""
    plain = (c.name for c in table.columns if not c.type.endswith(("[]", ")")))
    return frozenset(plain) - _TAKEN


@cache
def _wide() -> frozenset[str]:
    return _of(schema.RUNS) | _of(schema.REQUESTS) | frozenset(catalog.DIMENSIONS)


def is_known(name: str) -> bool:
    """Is `name` a column to group or pick by?"""
    return name in _wide() or name in _of(schema.CYCLES)


def known(name: str) -> str:
    """`name` when it is a column of runs, requests or cycles to group or pick by.

    Raises Problem that lists the usual ones.
    """
    if not is_known(name):
        raise Problem(
            f"{name}: not a column to group or pick by; use one of "
            f"{', '.join(catalog.DIMENSIONS)}, or another of runs, requests or cycles "
            "(tauscope schema)"
        )
    return name


def of_cycles(name: str) -> bool:
    """Is it a cycle's own? What a run says of all of its cycles (a threshold) gives way."""
    return name in _of(schema.CYCLES) and name not in catalog.DIMENSIONS


def cycles(names: Iterable[str]) -> str:
    """The view of cycles that has all of these columns: the narrow one where it will do."""
    narrow = _of(schema.CYCLES) | frozenset(catalog.DIMENSIONS) | {catalog.SQL}
    return "cycles" if set(names) <= narrow else "cycles_asked_rows"
