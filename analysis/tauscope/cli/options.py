"""Options that several commands share, said once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tauscope.errors import Problem

if TYPE_CHECKING:
    from tauscope.catalog import Catalog

Traces = Annotated[
    list[str] | None,
    typer.Option(
        "--traces", metavar="DIR", help="Store to read; repeat it to read several as one."
    ),
]
Store = Annotated[
    str | None, typer.Option("--traces", metavar="DIR", help="Store to write to; made if missing.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help="Only these rows: arm=mtp1, or SQL as in \"margin > 3 AND arm = 'mtp1'\"; repeatable.",
    ),
]
# More tokens than any request has; counts are sums of 64 bits.
MOST = 10**12


def named(label: str | None) -> str | None:
    """A label as it was given; one that shows nothing is wrong use."""
    if label is not None and not label.strip():
        raise typer.BadParameter("an empty label says nothing; leave it out")
    if label is not None and label.encode(errors="replace").decode() != label:
        raise typer.BadParameter("a label that is no UTF-8 can't be kept; write it in UTF-8")
    return label


def where_of(
    conditions: list[str] | None, data: Catalog, *, of_cycles: bool = False
) -> dict[str, Any]:
    """The `where` that conditions on the command line mean, each COLUMN=VALUE or SQL.

    A plain word behind the sign is a label, whatever columns there are; other text is SQL where
    it reads as SQL, else a label with blanks in it. Raises Problem for one that is neither, or
    that picks cycles where only whole requests make sense.
    """
    from tauscope import catalog, columns

    chosen: dict[str, Any] = {}
    for text in conditions or []:
        pair = re.fullmatch(r"(?s)(\w+)=(.*)", text)
        if pair and re.fullmatch(r"[^\s'\"()=<>]*", pair[2]):
            chosen.setdefault(columns.known(pair[1]), []).append(pair[2])
            continue
        if re.fullmatch(r"\w*", text):
            raise Problem(f"--where {text}: write it as COLUMN=VALUE, as in arm=mtp1", code=2)
        try:
            key = data.condition(text)
        except Problem:
            if not pair or not columns.is_known(pair[1]):
                raise
            chosen.setdefault(pair[1], []).append(pair[2])
            continue
        if key == catalog.CYCLE_SQL and not of_cycles:
            raise Problem(
                f"--where {text}: whole requests are asked about; name columns of runs and "
                "requests (tauscope metrics takes columns of cycles too)"
            )
        chosen[key] = f"({chosen[key]}\n) AND (\n{text}\n)" if key in chosen else text
    if catalog.CYCLE_SQL in chosen and catalog.SQL in chosen:
        chosen[catalog.CYCLE_SQL] = f"({chosen[catalog.CYCLE_SQL]}\n) AND (\n{chosen.pop('sql')}\n)"
    return chosen


Workload = Annotated[
    str | None,
    typer.Option(
        callback=named,
        metavar="NAME",
        help="What was generated: agent, code, technical, prose, chat, …",
    ),
]
Arm = Annotated[
    str | None,
    typer.Option(
        callback=named, metavar="NAME", help="What speculation did: off, mtp1, mtp2, shadow, …"
    ),
]
PromptId = Annotated[
    str | None,
    typer.Option(
        callback=named,
        metavar="NAME",
        help="Name of the prompt; the same name pairs runs of two arms.",
    ),
]
Tokens = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, max=MOST, help="Exact number of tokens that the one request generated."
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, max=MOST, help="A limit that was set (-n); never taken as a count."
    ),
]
Rules = Annotated[
    Path | None,
    typer.Option(metavar="FILE.toml", help="Label a server's requests by [[rule]] tables."),
]
