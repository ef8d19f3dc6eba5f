"""What a page was made from: data files, notebook, parameters, versions; and what changed."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from tauscope import __version__, catalog
from tauscope.batch.params import Page

# Libraries that can change a number or a picture.
LIBRARIES = ("altair", "duckdb", "ipykernel", "numpy", "papermill", "polars", "scipy",
             "vl-convert-python")  # fmt: skip


def files(data: catalog.Catalog) -> list[dict[str, Any]]:
    """Every data file behind `data`: store, path in it, rows, bytes, SHA-256."""
    from pyarrow import parquet

    found = []
    for store in data.stores:
        runs = data.runs.filter(data.runs["store"] == str(store))
        names = {f"runs/{log}.parquet" for log in runs["log_id"]}
        for column in ("cycle_files", "request_files", "refused_files"):
            names.update(runs[column].explode().drop_nulls())
        for name in sorted(names):
            path = Path(store) / name
            # Opened once: the file of a log that grows is replaced under its name.
            with path.open("rb") as handle:
                digest = hashlib.file_digest(handle, "sha256").hexdigest()
                rows = parquet.read_metadata(handle).num_rows
                size = os.fstat(handle.fileno()).st_size
            found.append({"store": str(store), "path": name, "rows": rows,
                          "bytes": size, "sha256": digest})  # fmt: skip
    return found


def versions() -> dict[str, str]:
    """Versions of tauscope, Python and the libraries; `source` is a hash of tauscope's code."""
    found = {"tauscope": __version__, "source": _source(), "python": platform.python_version()}
    return found | {name: metadata.version(name) for name in LIBRARIES}


@cache
def _source() -> str:
    """Hash of the package's code, queries and templates: in a clone they change unversioned."""
    root = Path(catalog.__file__).parent
    kinds = {".py", ".sql", ".j2", ".css", ".js"}
    total = hashlib.blake2b(digest_size=8)
    for path in sorted(p for p in root.rglob("*") if p.suffix in kinds):
        if "cli" in path.parts[len(root.parts) :]:
            continue
        total.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def of_page(page: Page, values: Mapping[str, Any], data: list[dict[str, Any]]) -> dict[str, Any]:
    """What decides a page's content, to be kept beside it and compared next time."""
    return {
        "notebook": hashlib.sha256(page.source.path.read_bytes()).hexdigest(),
        "parameters": dict(values),
        "inputs": data,
        "versions": versions(),
    }


def changed(now: Mapping[str, Any], before: Mapping[str, Any] | None) -> str:
    """Why a page has to be made again, in words; empty when it need not be."""
    if before is None:
        return "first time"
    if before.get("error"):
        return "failed last time"
    reasons = []
    hashes = [{(f["store"], f["path"]): f["sha256"] for f in side.get("inputs", [])}
              for side in (now, before)]  # fmt: skip
    if hashes[0] != hashes[1]:
        differ = set(hashes[0].items()) ^ set(hashes[1].items())
        count = len({key for key, _ in differ})
        reasons.append(f"data changed ({count} {'file' if count == 1 else 'files'})")
    if now["notebook"] != before.get("notebook"):
        reasons.append("notebook changed")
    if now["parameters"] != before.get("parameters"):
        reasons.append(f"parameters changed ({_differ(now, before, 'parameters')})")
    if now["versions"] != before.get("versions"):
        reasons.append(f"versions changed ({_differ(now, before, 'versions')})")
    return ", ".join(reasons)


def _differ(now: Mapping[str, Any], before: Mapping[str, Any], part: str) -> str:
    new, old = now[part], before.get(part) or {}
    return ", ".join(_names(key for key in new | old if new.get(key) != old.get(key)))


def _names(names: Iterable[str]) -> list[str]:
    return ["tauscope's code" if name == "source" else name for name in names]
