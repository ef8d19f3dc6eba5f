"""Commands that bring logs in, label them and show the lines behind a row."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tauscope.cli import output
from tauscope.cli.options import (
    Arm,
    Json,
    MaxTokens,
    PromptId,
    Rules,
    Store,
    Tokens,
    Traces,
    Workload,
)
from tauscope.errors import Problem

if TYPE_CHECKING:
    from tauscope.ingest.importer import Imported
    from tauscope.ingest.source import Log


def import_(
    logs: Annotated[list[str], typer.Argument(metavar="LOG…", help="Logs, globs, or - for stdin.")],
    workload: Workload = None,
    arm: Arm = None,
    prompt_id: PromptId = None,
    tokens: Tokens = None,
    max_tokens: MaxTokens = None,
    beside: Annotated[
        Path | None,
        typer.Option(
            metavar="LOG",
            help="What the run printed, held against its native trace; never counted twice.",
        ),
    ] = None,
    traces: Store = None,
    json: Json = False,
) -> None:
    """Import ds4 logs: dialects, runs and requests are found, each cycle becomes a row.

    The log itself is kept in the store as it was. The same log again changes nothing;
    with other labels it is relabelled; one that has grown is continued.

    \b
      tauscope import run.log --workload code --arm mtp1 --prompt-id p1 --tokens 256
      tauscope import 'logs/*.log.gz' --arm off
      ssh box cat server.log | tauscope import -
      tauscope import trace.ndjson --beside run.log
    """
    from tauscope import places
    from tauscope.ingest import importer, source

    root = places.to_write(traces)
    output.mended(root)
    made = _missing(root)
    done: list[Imported | Problem] = []
    found: list[source.Log] = []
    spooled: Path | None = None
    if "-" in logs:
        spooled = source.spool_stdin(root / "raw", f".stdin.{os.getpid()}.part")
    try:
        found = source.find([log for log in logs if log != "-"])
        if spooled is not None:
            found.append(source.Log("-", (spooled,)))
        labels = importer.Labels(workload, arm, prompt_id)
        with output.progress() as bar:
            task = bar.add_task("importing", total=sum(log.packed_bytes for log in found))
            results = importer.import_all(
                found,
                root,
                labels,
                tokens=tokens,
                max_tokens=max_tokens,
                beside=source.find([beside])[0] if beside else None,
                progress=lambda count: bar.advance(task, count),
            )
            done.extend(results)
    finally:
        if spooled is not None:
            spooled.unlink(missing_ok=True)
        if all(isinstance(item, Problem) for item in done):
            _unmake(root, made, found)
    problems = [item for item in done if isinstance(item, Problem)]
    imported = [item.summary() for item in done if not isinstance(item, Problem)]
    if json:
        output.emit_json(
            {"store": str(root), "logs": imported, "failed": [str(p) for p in problems]}
        )
    else:
        for summary in imported:
            output.show(*_told(summary, importer.STATUSES))
    for item in imported:
        for line in item["notes"]:
            output.note(line)
    for problem in problems:
        output.note(str(problem))
    if problems:
        raise typer.Exit(1)


def _missing(root: Path) -> list[Path]:
    """Folders that an import into `root` may make, the innermost first."""
    rooms = [root / room for room in ("cycles", "requests", "runs", "raw")]
    return [path for path in (*rooms, root, *root.parents) if not path.exists()]


def _unmake(root: Path, folders: list[Path], logs: list[Log]) -> None:
    """Take away a new store that a failed import left without a run.

    Another import may be filling it by now: only what is of `logs` goes, and empty folders.
    """
    from tauscope import store

    if root not in folders or not root.exists():
        return
    store.settle()  # a log that failed may still be at its last part
    for log in logs:
        whole = hashlib.sha256()
        with contextlib.suppress(OSError, Problem):
            for block in log.blocks():
                whole.update(block)
            for path in root.glob(f"*/{whole.hexdigest()[:12]}.*"):
                path.unlink()
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _told(summary: dict[str, Any], statuses: dict[str, str]) -> list[Any]:
    """The account of one imported log: a table of counts, then what needs a look."""
    made = summary["tokens_generated"]
    accounted = summary["tokens_accounted"]
    cycles = ", ".join(f"{count} {name}" for name, count in sorted(summary["outcomes"].items()))
    rows = [
        ("status", f"{summary['status']}: {statuses[summary['status']]}"),
        ("dialects", ", ".join(summary["dialects"]) or "none (speed or requests only)"),
        ("runs", ", ".join(summary["runs"])),
        ("requests", str(summary["requests"])),
        ("cycles", f"{summary['cycles']}" + (f": {cycles}" if cycles else "")),
        (
            "tokens accounted for",
            f"{_known(accounted)} of {_known(made)} generated"
            if summary["cycles"]
            else f"no cycles were logged (an off arm logs none); {_known(made)} generated",
        ),
        ("unlogged cycles recovered", str(summary["unlogged_cycles"])),
        ("lines that fit no shape", str(summary["unfit_lines"])),
        ("unknown kinds", ", ".join(summary["unknown_kinds"]) or "none"),
        ("rows refused", str(summary["refused_rows"])),
        ("lines ignored", f"{summary['ignored_lines']} of {summary['lines']}"),
    ]
    if summary["parts"]:
        pieces = f"{len(summary['parts'])} read as one, oldest first: {', '.join(summary['parts'])}"
        rows.insert(1, ("parts", pieces))
    parts: list[Any] = [output.table(output.short(summary["source"]), ["", ""], rows)]
    for example in summary["unfit_examples"]:
        parts.append(
            f"  line {example['line']} fits no shape: {output.short(example['text'], 120)}"
        )
    parts += [
        f"  the log beside the trace: {output.short(said, 120)}" for said in summary["log_check"]
    ]
    if summary["refused_rows"]:
        parts.append("  refused rows: tauscope sql 'SELECT line, reason FROM refused'")
    return parts


def _known(count: int | None) -> str:
    return "an unknown number" if count is None else str(count)


def label(
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN…]", help="Runs, logs or RUN:REQUEST; none means all."),
    ] = None,
    workload: Workload = None,
    arm: Arm = None,
    prompt_id: PromptId = None,
    rules: Rules = None,
    traces: Store = None,
    json: Json = False,
) -> None:
    """Change the workload, arm or prompt of runs or requests that are in the store.

    \b
      tauscope label 3f2a9c41d07b-0 --workload agent --arm mtp1
      tauscope label 3f2a9c41d07b-0:4 --workload chat
      tauscope label --rules rules.toml

    A rules file holds tables such as

    \b
      [[rule]]
      flags = ["TOOLS"]
      workload = "agent"

    The first rule that fits labels a request; one that none fits is `unlabelled`.
    """
    from tauscope import labels, places
    from tauscope.ingest.importer import Labels

    wanted = Labels(workload, arm, prompt_id)
    if not wanted.given() and rules is None:
        raise Problem(
            "label: nothing to change; give --workload, --arm, --prompt-id or --rules", code=2
        )
    root = places.to_write(traces)
    if not places.is_store(root):
        raise Problem(f"{root}: no store here yet; make one with tauscope import LOG")
    output.mended(root)
    loaded = labels.load_rules(rules) if rules else None
    rows = labels.label(root, targets or [], wanted, loaded)
    changed = rows.filter(rows["changed"]).drop("changed")
    if json:
        output.emit_json(changed)
        return
    if changed.is_empty():
        output.show("nothing changed: the labels were so already")
        return
    output.show_frame(changed, "relabelled")


def show(
    row: Annotated[str, typer.Argument(metavar="RUN:CYCLE", help="As in 3f2a9c41d07b-0:17.")],
    traces: Traces = None,
    json: Json = False,
) -> None:
    """Print the raw lines of the log behind one cycle.

    tauscope show 3f2a9c41d07b-0:17
    """
    from tauscope import rawlines

    data = output.opened(traces)
    found = rawlines.behind(data, row)
    if json:
        output.emit_json(found)
        return
    for entry in found.iter_rows(named=True):
        output.show(f"{entry['line']}: {output.clean(entry['text'])}")
