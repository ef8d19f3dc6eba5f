"""The batch: from notebooks and stores to a dated report, remaking only what changed."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from time import monotonic, time
from typing import Any

from tauscope import catalog, places
from tauscope.batch import export, index, inputs, kernels, params, render
from tauscope.batch.params import Page
from tauscope.batch.slugs import slug
from tauscope.errors import Problem
from tauscope.figures import words

LATEST = "latest"
_DATED = re.compile(r"\d{4}-\d\d-\d\d-\d{6}(-\d+)?")
_BUILDING = ".building-"
_STALE_S = 24 * 3600
# The page's own columns that --each may split by.
EACH = ("workload", "machine", "model", "experiment", "arm")


@dataclass(slots=True)
class Report:
    """A finished report: its folder, the records of its pages, and the answer in words."""

    folder: Path
    pages: list[dict[str, Any]]
    answer: str
    unchanged: bool = False
    removed: list[str] = field(default_factory=list)

    @property
    def index(self) -> Path:
        """The newest report's first page, by the name that stays when another is made."""
        return self.folder.parent / "latest" / "index.html"

    @property
    def failed(self) -> list[dict[str, Any]]:
        return [page for page in self.pages if page["error"]]


def make(
    *,
    traces: Sequence[str | Path] | None = None,
    out: str | Path | None = None,
    notebooks: Sequence[str] = (),
    each: str | None = None,
    parameters: Sequence[str] = (),
    keep: int | None = None,
    pictures: Sequence[str] = (),
    tell: Callable[[str, Mapping[str, Any]], None] = lambda event, about: None,
    cell_timeout_s: float = kernels.CELL_TIMEOUT_S,
) -> Report:
    """Make a report of `traces` in a dated folder of `out`, and point `latest` to it.

    `tell(event, about)` hears of `start` (pages, kept, workers) and `page` (its record).
    Raises Problem before anything runs for wrong input; a page that fails is in the
    report's `failed` and stops no other.
    """
    began = monotonic()
    sources = params.find(notebooks)
    typed = params.checked(sources, params.given(parameters))
    stores, origin = places.to_read(traces)
    data = catalog.Catalog(stores, origin)
    pages = _pages(sources, typed, each, data)
    home = _home(out)
    previous = _newest(home)
    files = inputs.files(data)
    records = [_record(page, data, files, pictures, previous) for page in pages]
    due = [(page, record) for page, record in zip(pages, records, strict=True) if record["why"]]
    same = {page.slug for page in pages} == _slugs(previous)
    if previous is not None and not due and same:
        old = json.loads((previous / "report.json").read_text(encoding="utf-8"))
        removed = _prune(home, keep)
        return Report(previous, old["pages"], old["answer"], unchanged=True, removed=removed)
    building = home / f"{_BUILDING}{os.getpid()}-{int(time())}"
    building.mkdir()
    try:
        tell("start", {"pages": len(due), "kept": len(pages) - len(due),
                       "workers": kernels.workers(len(due))})  # fmt: skip
        with ThreadPoolExecutor(1) as aside:
            said = aside.submit(index.collect, data)
            _run(due, records, building, pictures, tell, cell_timeout_s, aside)
            found = said.result()
        for record in records:
            if not record["why"]:
                _carry(record, previous, building)
        shutil.rmtree(building / ".work", ignore_errors=True)
        _finish(building, found, records, data, files, monotonic() - began)
        folder = _publish(building, home)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return Report(folder, [_brief(r) for r in records], found["answer"], removed=_prune(home, keep))


def _pages(
    sources: Sequence[params.Source], typed: Mapping[str, Mapping[str, Any]], each: str | None,
    data: catalog.Catalog,
) -> list[Page]:  # fmt: skip
    """The pages to make. With `each`, one more of every notebook that takes it for each value."""
    pages = [Page(source.name, source, dict(typed[source.name])) for source in sources]
    if each is not None:
        able = [source for source in sources if each in source.parameters]
        if each not in EACH or not able:
            have = sorted({n for s in sources for n in s.parameters if n in EACH})
            raise Problem(f"--each {each}: no chosen notebook can be made for one {each}; "
                          f"use one of {', '.join(have) or 'none'}")  # fmt: skip
        column = catalog.dimension(each)
        text = f"SELECT DISTINCT {column} AS v FROM requests WHERE {column} IS NOT NULL ORDER BY v"
        values = data.query(text)["v"].to_list()
        pages += [
            Page(f"{source.name}--{each}-{slug(value)}", source,
                 {**typed[source.name], each: value}, each)
            for source in able for value in values if value != ""
        ]  # fmt: skip
    names = [page.slug for page in pages]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise Problem(f"{twice}: two notebooks of one name; rename one of the files")
    return pages


def _record(
    page: Page, data: catalog.Catalog, files: list[dict[str, Any]], pictures: Sequence[str],
    previous: Path | None,
) -> dict[str, Any]:  # fmt: skip
    """All that is known of a page before it is made, and why it has to be."""
    values = dict(page.values)
    told = {params.TRACES: [str(store) for store in data.stores], params.CHOSEN_BY: data.origin}
    values |= {name: value for name, value in told.items() if name in page.source.parameters}
    now = inputs.of_page(page, values, files)
    before = _before(previous, page.slug)
    why = inputs.changed(now, before)
    if not why and set(pictures) - set((before or {}).get("pictures", ())):
        why = "pictures asked for"
    chosen = page.values.get(page.each) if page.each else None
    return {
        "slug": page.slug, "name": page.source.name, "file": f"{page.slug}.html",
        "about": f"{page.each}: {words.label(chosen)}" if page.each else "",
        "why": why, "seconds": 0.0, "error": "", "title": page.source.name, "question": "",
        "made": "", "files": [], "pictures": sorted(set(pictures)), **now,
    }  # fmt: skip


def _run(
    due: Sequence[tuple[Page, dict[str, Any]]], records: list[dict[str, Any]], building: Path,
    pictures: Sequence[str], tell: Callable[[str, Mapping[str, Any]], None],
    cell_timeout_s: float, aside: ThreadPoolExecutor,
) -> None:  # fmt: skip
    work = building / ".work"
    work.mkdir()
    by_slug = {record["slug"]: record for record in records}
    if due:
        aside.submit(render.bundle)

    def done(result: kernels.Done) -> None:
        record = by_slug[result.page.slug]
        record["seconds"] = round(result.seconds, 2)
        record["made"] = _now()
        if result.error:
            _fail(record, result, building)
        else:
            _write(record, result.notebook, building, pictures)
        tell("page", record)

    kernels.run([(page, record["parameters"]) for page, record in due], work, done, cell_timeout_s)


def _write(record: dict[str, Any], path: Path, building: Path, pictures: Sequence[str]) -> None:
    """The page and the files beside it."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    folder = building / record["slug"]
    folder.mkdir()
    record["files"] = export.data_files(notebook, folder)
    if pictures:
        record["files"] += export.pictures(notebook, folder, pictures)
    title, question = render.heading(notebook)
    record["title"], record["question"] = title or record["name"], question
    shown = {k: v for k, v in record["parameters"].items() if k not in params.GIVEN}
    text = render.page(
        notebook, made=record["made"], about=record["about"], name=record["name"],
        folder=record["slug"], files=record["files"],
        parameters=words.listed([f"{k} = {words.label(str(v))}" for k, v in shown.items()]),
    )  # fmt: skip
    (building / record["file"]).write_text(text, encoding="utf-8")
    export.write_json(folder / "page.json", record)


def _fail(record: dict[str, Any], result: kernels.Done, building: Path) -> None:
    """Keep what is left of a page that failed, with its traceback."""
    folder = building / "failed"
    folder.mkdir(exist_ok=True)
    record["error"] = result.error
    if result.notebook.exists():
        shutil.copyfile(result.notebook, folder / f"{record['slug']}.ipynb")
    else:
        shutil.copyfile(result.page.source.path, folder / f"{record['slug']}.ipynb")
    plain = re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", result.trace or result.error)
    (folder / f"{record['slug']}.txt").write_text(plain + "\n", encoding="utf-8", errors="replace")
    export.write_json(folder / f"{record['slug']}.json", record)


def _carry(record: dict[str, Any], previous: Path | None, building: Path) -> None:
    """Take a page that need not be made again from the report before."""
    assert previous is not None
    shutil.copyfile(previous / record["file"], building / record["file"])
    shutil.copytree(previous / record["slug"], building / record["slug"])
    before = json.loads((previous / record["slug"] / "page.json").read_text(encoding="utf-8"))
    for name in ("title", "question", "made", "seconds", "files", "pictures"):
        record[name] = before[name]


def _finish(
    building: Path, found: Mapping[str, Any], records: list[dict[str, Any]],
    data: catalog.Catalog, files: list[dict[str, Any]], seconds: float,
) -> None:  # fmt: skip
    made = _now()
    stores = [str(store) for store in data.stores]
    text = index.html(found, records, made=made, origin=data.origin, stores=stores,
                      seconds=seconds, files=files)  # fmt: skip
    (building / "index.html").write_text(text, encoding="utf-8")
    summary = {
        "made": made, "seconds": round(seconds, 2), "stores": stores, "origin": data.origin,
        **found, "pages": [_brief(record) for record in records], "inputs": files,
        "versions": inputs.versions(),
    }  # fmt: skip
    export.write_json(building / "report.json", summary)


def _brief(record: Mapping[str, Any]) -> dict[str, Any]:
    """A page's record without what page.json says at length."""
    left_out = ("inputs", "versions", "notebook")
    return {key: value for key, value in record.items() if key not in left_out}


def _home(out: str | Path | None) -> Path:
    """The folder of all reports, made if need be; leftovers of a killed report go.

    Raises Problem when it can't be written.
    """
    root = places.clone()
    home = Path(out).expanduser() if out is not None else (root or Path.cwd()) / "reports"
    home = home.absolute()
    link = home / LATEST
    try:
        home.mkdir(parents=True, exist_ok=True)
        for path in home.glob(f"{_BUILDING}*"):
            if time() - path.stat().st_mtime > _STALE_S:
                shutil.rmtree(path, ignore_errors=True)
    except OSError as error:
        raise Problem(f"{home}: can't be written ({error.strerror}); "
                      "name another folder with --out") from error  # fmt: skip
    if link.exists() and not link.is_symlink():
        raise Problem(f"{link}: is in the way (not a link that a report made); move it elsewhere")
    return home


def _dated(home: Path) -> list[Path]:
    """Finished reports, oldest first. Only what a report made counts."""
    found = [p for p in home.iterdir() if _DATED.fullmatch(p.name) and not p.is_symlink()
             and (p / "report.json").is_file()]  # fmt: skip
    return sorted(found, key=lambda p: (p.name[:17], int(p.name[18:] or 0)))


def _newest(home: Path) -> Path | None:
    dated = _dated(home)
    return dated[-1] if dated else None


def _slugs(previous: Path | None) -> set[str]:
    if previous is None:
        return set()
    try:
        old = json.loads((previous / "report.json").read_text(encoding="utf-8"))
        return {page["slug"] for page in old["pages"]}
    except (OSError, ValueError, KeyError):
        return set()


def _before(previous: Path | None, name: str) -> dict[str, Any] | None:
    """The record of a page in the report before; None when there is none to go by."""
    if previous is None:
        return None
    for path in (previous / name / "page.json", previous / "failed" / f"{name}.json"):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if record.get("error") or (previous / f"{name}.html").is_file():
            return record
    return None


def _publish(building: Path, home: Path) -> Path:
    """Give the report its dated name and point `latest` to it, each in one step."""
    stamp = datetime.now().strftime("%Y-%m-%d-%H%M%S")
    number = 1
    while True:
        folder = home / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            if not folder.exists():
                building.rename(folder)
                break
        except OSError:
            if not folder.exists():
                raise
        number += 1
    link = home / f".{LATEST}-{os.getpid()}"
    link.unlink(missing_ok=True)
    link.symlink_to(folder.name, target_is_directory=True)
    os.replace(link, home / LATEST)
    return folder


def _prune(home: Path, keep: int | None) -> list[str]:
    """Remove all but the `keep` newest reports; nothing else in the folder is touched."""
    if keep is None:
        return []
    old = _dated(home)[: -max(1, keep)]
    for folder in old:
        shutil.rmtree(folder)
    return [folder.name for folder in old]


def _now() -> str:
    return datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
