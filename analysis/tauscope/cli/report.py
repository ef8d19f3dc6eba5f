"""The command that makes reports."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from tauscope.cli import output
from tauscope.cli.options import Json, Traces


def report(
    traces: Traces = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder of the reports; else reports/ of the clone."),
    ] = None,
    notebook: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this notebook, or a file.ipynb; repeatable."),
    ] = None,
    each: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="One more page for each value: workload, machine, …"),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="A notebook's parameter."),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Remove all but the N newest reports."),
    ] = None,
    png: Annotated[bool, typer.Option("--png", help="Charts as PNG files too.")] = False,
    svg: Annotated[bool, typer.Option("--svg", help="Charts as SVG files too.")] = False,
    json: Json = False,
) -> None:
    """Run the notebooks over the traces and make pages that need no network; print the index.

    \b
      tauscope report
      tauscope report --each workload --png
      tauscope report --notebook workloads -p workload=code --keep 5
    """
    from tauscope.batch.report import make

    pictures = [kind for kind, wanted in (("png", png), ("svg", svg)) if wanted]
    with _Progress() as progress:
        made = make(
            traces=traces, out=out, notebooks=notebook or (), each=each,
            parameters=parameter or (), keep=keep, pictures=pictures, tell=progress.tell,
        )  # fmt: skip
    if json:
        output.emit_json(
            {"index": str(made.index), "answer": made.answer, "unchanged": made.unchanged,
             "removed": made.removed, "pages": made.pages}
        )  # fmt: skip
    else:
        if made.unchanged:
            sys.stderr.write("nothing changed since this report was made\n")
        sys.stdout.write(f"{made.index}\n")
    if made.failed:
        names = ", ".join(page["slug"] for page in made.failed)
        sys.stderr.write(output.clean(f"failed: {names}; see {made.folder / 'failed'}") + "\n")
        raise typer.Exit(1)


class _Progress:
    """Pages done and time left: a bar on a terminal, a line a page elsewhere."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._total = self._workers = 1
        self._seconds: list[float] = []

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tell(self, event: str, about: Mapping[str, Any]) -> None:
        if event == "start":
            self._total, self._workers = about["pages"], about["workers"]
            kept = f", {about['kept']} kept" if about["kept"] else ""
            sys.stderr.write(f"{self._total} pages to make{kept}, {self._workers} at a time\n")
            self._begin()
            return
        self._seconds.append(about["seconds"])
        left = (self._total - len(self._seconds)) / self._workers
        eta = f"about {left * sum(self._seconds) / len(self._seconds):.0f} s left"
        ended = f"failed ({about['error']})" if about["error"] else f"{about['seconds']:.1f} s"
        line = output.clean(f"{about['slug']}: {ended}; {about['why']}")
        if self._bar is not None:
            self._bar.console.print(line, markup=False, highlight=False)
            self._bar.update(self._task, advance=1, left=eta)
        else:
            sys.stderr.write(f"{line}; {eta}\n")

    def _begin(self) -> None:
        if not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._bar = Progress(
            TextColumn("pages"), BarColumn(), MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"), console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self._task = self._bar.add_task("pages", total=self._total, left="")
        self._bar.start()
