"""The command that makes traces from a stated model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tauscope.cli import output
from tauscope.cli.options import Json, Store


def simulate(
    model: Annotated[Path, typer.Argument(metavar="MODEL.toml", help="The stated model.")],
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Another seed than the model's own.")
    ] = None,
    traces: Store = None,
    json: Json = False,
) -> None:
    """Make traces whose truth is known, from a model of texts, costs and gates.

    \b
      tauscope simulate traces/sample/model.toml --traces /tmp/sample

    Simulated runs are marked in the store and in everything drawn from it.
    """
    from tauscope import places
    from tauscope import simulate as simulator

    root = places.to_write(traces)
    written = simulator.write(simulator.load_model(model), root, seed=seed)
    if json:
        output.emit_json(written)
    else:
        output.show_frame(written, "simulated")
