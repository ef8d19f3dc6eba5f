"""Commands that record a running engine and show how it is going."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tauscope.cli import output
from tauscope.cli.options import (
    Arm,
    MaxTokens,
    PromptId,
    Rules,
    Store,
    Tokens,
    Traces,
    Workload,
)

if TYPE_CHECKING:
    from tauscope.record.recorder import Recorded


def record(
    command: Annotated[
        list[str], typer.Argument(metavar="ENGINE…", help="The engine and its arguments.")
    ],
    workload: Workload = None,
    arm: Arm = None,
    prompt_id: PromptId = None,
    tokens: Tokens = None,
    max_tokens: MaxTokens = None,
    rules: Rules = None,
    keep_output: Annotated[
        bool,
        typer.Option(
            "--keep-output",
            help="Keep the engine's standard output in the store, not its hash only.",
        ),
    ] = False,
    traces: Store = None,
) -> None:
    """Run an engine and record every cycle that it logs, while it runs.

    Its logging is switched on, its standard error goes through a file of the store and
    comes out here untouched; standard input, signals and the exit code are the engine's
    own. Nothing here can hold up or end the engine, and what it logged survives both.

    \b
      tauscope record --workload code --arm off --prompt-id p1 -- ./ds4 -p "…" --temp 0
      tauscope record --workload code --arm mtp2 --prompt-id p1 -- \\
          ./ds4 -p "…" --temp 0 --mtp FILE --mtp-draft 2
      tauscope record --rules rules.toml -- ./ds4-server --mtp FILE --mtp-draft 2

    ds4 speculates only with a drafter's file, a draft depth above 1 (its default, 1, bets on
    nothing) and at temperature 0; a server, in requests at temperature 0. An off arm has no
    --mtp: a loaded drafter drafts even when it is switched off.

    The output is hashed when the command line names the prompt, or when standard output
    is no terminal. `tauscope watch` shows a recording from another terminal.
    """
    from tauscope import labels, places
    from tauscope.record import recorder

    root = places.to_write(traces)
    loaded = labels.load_rules(rules) if rules else None
    wish = recorder.Wish(
        command=command, workload=workload, arm=arm, prompt_id=prompt_id, tokens=tokens,
        max_tokens=max_tokens, rules=loaded, keep_output=keep_output, modest=True,
    )  # fmt: skip
    root.mkdir(parents=True, exist_ok=True)
    output.mended(root)
    done = recorder.record(root, wish)
    _tell(done, root)
    raise typer.Exit(done.code)


def _tell(done: Recorded, root: Path) -> None:
    for line in done.notes:
        _say(line)
    if done.log_id is not None and done.totals.run_ids:
        runs = ", ".join(done.totals.run_ids[:3]) + (" …" if len(done.totals.run_ids) > 3 else "")
        _say(
            f"tauscope: recorded {runs}: {output.count(done.totals.cycles, 'cycle')}, "
            f"{output.count(done.totals.requests, 'request')} in {root}"
        )
    if done.output is not None:
        _say(f"tauscope: output kept in {done.output}")


def _say(line: str) -> None:
    """A line on standard error, where anyone still reads it: the exit code is the engine's."""
    with contextlib.suppress(OSError):
        os.write(2, (output.clean(line) + "\n").encode("utf-8", "replace"))


def watch(
    what: Annotated[
        str | None,
        typer.Argument(metavar="[LOG|STORE]", help="A log that grows, or a store; else the usual."),
    ] = None,
    traces: Traces = None,
) -> None:
    """Show a growing log or a store full-screen: speed, τ, acceptance, folds, verdicts.

    \b
      tauscope watch server.log
      tauscope watch

    Ctrl-C ends it.
    """
    from tauscope.record import watch as watching

    if what is not None and not Path(what).is_dir():
        watching.log(Path(what))
        return
    watching.store([what] if what is not None else traces)
