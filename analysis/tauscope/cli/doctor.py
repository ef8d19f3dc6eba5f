"""The command that examines an experiment before anyone believes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tauscope.cli import output
from tauscope.cli.options import Json
from tauscope.errors import Problem

if TYPE_CHECKING:
    from tauscope.catalog import Catalog
    from tauscope.doctor import Finding

# What a terminal shows of a finding; the query and --json give all of it.
SHOWN, KEPT = 5, 1000


def doctor(
    target: Annotated[
        str | None,
        typer.Argument(metavar="[STORE|LOG]", help="What to examine; the usual store if absent."),
    ] = None,
    json: Json = False,
) -> None:
    """Look for what makes a comparison void: 0 nothing found, 1 findings, 3 nothing to examine.

    \b
      tauscope doctor
      tauscope doctor traces/sample
      tauscope doctor run.log          (examined as it is, kept nowhere)

    Speculation not applied, a baseline that drafts, prompts unpaired, repeated or repetitive,
    too few bets, dark cycles, prefill in the speed, drift, mixed-up runs, impossible counters,
    outputs that differ, unknown kinds. Each finding shows its rows and what to do.
    """
    import shlex
    import tempfile

    from tauscope import catalog, places
    from tauscope import doctor as examining

    desk_of = tempfile.TemporaryDirectory(prefix="tauscope-doctor-")
    with output.cant_tell(), desk_of as desk:
        if target is not None and Path(target).is_file():
            data = _imported(target, Path(desk))
            target = None  # its store is gone when the query could be asked again
        elif target is None:
            data = output.opened(None)
        else:
            stores, _ = places.to_read([target])
            data = catalog.Catalog(stores, target)
        if data.runs.is_empty() and not data.damaged:
            raise Problem(f"{data.origin}: nothing to examine; import a log first", 3)
        found = examining.examine(data)
        examined = data.runs.height
    if json:
        output.emit_json([_told(finding) for finding in found])
    else:
        stores = "".join(f" --traces {shlex.quote(str(path))}" for path in data.stores)
        for finding in found:
            _show(finding, "" if target is None else stores)
        findings = output.count(len(found), "finding") if found else "no findings"
        output.show(f"{output.count(examined, 'run')} examined: {findings}")
    raise typer.Exit(1 if found else 0)


def _imported(log: str, desk: Path) -> Catalog:
    from tauscope import catalog
    from tauscope.ingest import importer, source

    for result in importer.import_all(source.find([log]), desk, importer.Labels()):
        if isinstance(result, Problem):
            raise result
    return catalog.Catalog([desk], log)


def _told(finding: Finding) -> dict:
    rule = finding.rule
    return {"name": rule.name, "title": rule.title, "means": rule.means, "do": rule.remedy,
            "rows": finding.rows.height, "shown": finding.rows.head(KEPT).to_dicts(),
            "query": rule.query}  # fmt: skip


def _show(finding: Finding, stores: str) -> None:
    rule, rows = finding.rule, finding.rows
    output.show(f"{rule.title}: {rule.means}")
    output.show_frame(rows.head(SHOWN))
    if rule.query:
        more = f"{rows.height} rows: " if rows.height > SHOWN else "these rows: "
        output.show(f"  {more}tauscope sql -{stores} < {_where(rule.name)}")
    output.show(f"  what to do: {rule.remedy}", "")


def _where(name: str) -> str:
    """The query's file, as one would type it from here."""
    import shlex
    from importlib import resources

    path = Path(str(resources.files("tauscope.doctor") / f"{name}.sql"))
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
