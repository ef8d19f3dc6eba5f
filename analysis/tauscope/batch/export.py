"""The files beside a page: its tables as CSV and JSON, its charts as pictures."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tauscope.batch import render
from tauscope.batch.slugs import slug
from tauscope.figures.drawing_types import CHART

PNG_SCALE = 2


def data_files(notebook: Mapping[str, Any], folder: Path) -> list[str]:
    """Lay down every table and chart's rows as CSV and JSON; returns the file names."""
    names = []
    for table in [*render.tables(notebook), *_charts(notebook)]:
        stem = slug(str(table["name"]))
        if f"{stem}.csv" in names:
            continue
        (folder / f"{stem}.csv").write_text(_csv(table), encoding="utf-8", newline="")
        write_json(folder / f"{stem}.json", table)
        names += [f"{stem}.csv", f"{stem}.json"]
    return names


def pictures(notebook: Mapping[str, Any], folder: Path, kinds: Sequence[str]) -> list[str]:
    """Charts as PNG or SVG files on white; returns the file names."""
    import vl_convert

    names = []
    for spec in _specs(notebook):
        about = spec.get("usermeta", {}).get("tauscope", {})
        stem = slug(f"{about.get('name', 'chart')}-chart")
        plain = {key: value for key, value in spec.items() if key not in ("$schema", "usermeta")}
        plain["background"] = "white"
        plain["padding"] = 16
        version = vl_convert.get_vegalite_versions()[-1]
        if "svg" in kinds:
            drawn = vl_convert.vegalite_to_svg(plain, vl_version=version)
            (folder / f"{stem}.svg").write_text(drawn, encoding="utf-8")
            names.append(f"{stem}.svg")
        if "png" in kinds:
            data = vl_convert.vegalite_to_png(plain, vl_version=version, scale=PNG_SCALE)
            (folder / f"{stem}.png").write_bytes(data)
            names.append(f"{stem}.png")
    return names


def write_json(path: Path, value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def _specs(notebook: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    outputs = [out for cell in notebook["cells"] for out in cell.get("outputs", ())]
    return [out["data"][CHART] for out in outputs if CHART in out.get("data", {})]


def _charts(notebook: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    for spec in _specs(notebook):
        about = spec.get("usermeta", {}).get("tauscope", {})
        rows = render.chart_rows(spec)
        found.append({"name": f"{about.get('name', 'chart')}-chart",
                      "title": about.get("title", ""),
                      "columns": list(rows[0]) if rows else [], "rows": rows})  # fmt: skip
    return found


def _csv(table: Mapping[str, Any]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table["columns"])
    for row in table["rows"]:
        values = (row.get(name) for name in table["columns"])
        writer.writerow(
            json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
            for value in values
        )
    return out.getvalue()
