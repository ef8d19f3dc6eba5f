"""Options that several commands share, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tauscope.errors import Problem

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
        "--where", metavar="COLUMN=VALUE", help="Only these rows, as arm=mtp1; repeat to narrow."
    ),
]
# More tokens than any request has; counts are sums of 64 bits.
MOST = 10**12


def named(label: str | None) -> str | None:
    """A label as it was given; one that shows nothing is wrong use."""
    if label is not None and not label.strip():
        raise typer.BadParameter("an empty label says nothing; leave it out")
    return label


def where_of(pairs: list[str] | None) -> dict[str, list[str]]:
    """{column: values} of COLUMN=VALUE pairs. Raises Problem (wrong use) for another form."""
    chosen: dict[str, list[str]] = {}
    for pair in pairs or []:
        column, sign, value = pair.partition("=")
        if not sign:
            raise Problem(f"--where {pair}: write it as COLUMN=VALUE, as in arm=mtp1", code=2)
        chosen.setdefault(column.strip(), []).append(value)
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
