"""What lies beside a page, and what a page is made of."""

from __future__ import annotations

import csv
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from notebook_runs import executed
from report_stores import HOSTILE, build

from tauscope.batch import export, render

FETCHING = re.compile(
    r"<(?:script|link|img|iframe|object|embed|source)\b[^>]*\b(?:src|href)\s*=\s*[\"'](?!data:)"
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    store = build("hostile", tmp_path_factory.mktemp("files") / "store")
    return executed("workloads", traces=[str(store)])


@pytest.fixture(scope="module")
def html(hostile: dict[str, Any]) -> str:
    return page(hostile)


def page(notebook: dict[str, Any]) -> str:
    return render.page(notebook, made="now", about="", name="workloads", folder="workloads",
                       parameters="", files=["a.csv"])  # fmt: skip


def elements(html: str) -> str:
    """The page without the text of its own scripts."""
    return re.sub(r"(<script>).*?(</script>)", r"\1\2", html, flags=re.DOTALL)


def test_tables_are_laid_down_twice_and_alike(hostile: dict[str, Any], tmp_path: Path) -> None:
    names = export.data_files(hostile, tmp_path)
    stems = {name.rpartition(".")[0] for name in names}
    assert {"speedup", "workloads", "turns", "source", "margins-chart"} <= stems
    for stem in stems:
        table = json.loads((tmp_path / f"{stem}.json").read_text(encoding="utf-8"))
        with (tmp_path / f"{stem}.csv").open(encoding="utf-8", newline="") as handle:
            rows = list(csv.DictReader(handle))
        assert len(rows) == len(table["rows"]), stem
        for read, row in zip(rows, table["rows"], strict=True):
            for name, value in row.items():
                if isinstance(value, str):
                    assert read[name] == value
                elif value is None:
                    assert read[name] == ""


def test_labels_are_whole_in_the_files(hostile: dict[str, Any], tmp_path: Path) -> None:
    export.data_files(hostile, tmp_path)
    rows = json.loads((tmp_path / "workloads.json").read_text(encoding="utf-8"))["rows"]
    assert {row["workload"] for row in rows} == set(HOSTILE)
    assert all(row["sql"].startswith("SELECT * FROM cycles WHERE ") for row in rows)


def test_no_number_is_nan(hostile: dict[str, Any], tmp_path: Path) -> None:
    for name in export.data_files(hostile, tmp_path):
        assert not re.search(r"\bNaN\b|\bInfinity\b", (tmp_path / name).read_text("utf-8"))


def test_charts_become_pictures(hostile: dict[str, Any], tmp_path: Path) -> None:
    names = export.pictures(hostile, tmp_path, ("png", "svg"))
    assert {"speedup-chart.png", "speedup-chart.svg", "margins-chart.png"} <= set(names)
    assert (tmp_path / "speedup-chart.png").read_bytes().startswith(b"\x89PNG")
    drawn = (tmp_path / "speedup-chart.svg").read_text(encoding="utf-8")
    assert "中文聊天" in drawn
    assert "simulated" in drawn
    assert "<script" not in drawn


def test_a_page_holds_all_it_needs(html: str) -> None:
    assert FETCHING.search(elements(html)) is None
    assert html.count("window.vegaEmbed=") == 1
    assert "default-src 'none'" in unescape(html)
    assert len(html.encode()) < 3_000_000


def test_a_page_shows_no_code(html: str) -> None:
    assert "notebook.open_traces" not in html
    assert "# folders of stores" not in html


def test_a_page_can_be_read_aloud(html: str) -> None:
    assert html.count("<h1") == 1
    charts = re.findall(r'<figure class="chart".*?</figure>', html, re.DOTALL)
    assert len(charts) >= 6
    for chart in charts:
        assert re.search(r"<figcaption[^>]*>[^<]{20,}", chart)
        spec = json.loads(re.search(r'type="application/json"[^>]*>(.*?)</script>', chart)[1])
        assert spec["description"].endswith(".")
    assert html.count("<th ") == html.count('scope="')


def test_labels_stay_text(html: str) -> None:
    scripts = re.findall(r"<script[^>]*>", html)
    assert all('type="application/json"' in tag or tag == "<script>" for tag in scripts)
    assert scripts.count("<script>") == 2
    assert "<img" not in elements(html)
    assert "49" not in re.findall(r"\{\{ 7 \* 7 \}\}|(?<=>)49(?=<)", html)


def test_simulated_data_are_marked_everywhere(hostile: dict[str, Any], html: str) -> None:
    assert '<span class="flag">simulated data</span>' in html
    specs = [out["data"][export.CHART] for cell in hostile["cells"]
             for out in cell.get("outputs", ()) if export.CHART in out["data"]]  # fmt: skip
    assert specs
    assert all(spec["title"].endswith("· simulated") for spec in specs)


def test_output_of_other_kinds_is_shown_as_text() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# T\n", "\n", "Is it?"]},
        {"cell_type": "code", "source": "", "outputs": [
            {"output_type": "stream", "name": "stdout", "text": ["\x1b[31m<b>red</b>\x1b[0m"]},
            {"output_type": "stream", "name": "stderr", "text": "unheard"},
            {"output_type": "display_data", "data": {"image/png": "aGk=", "text/plain": "a dot"}},
            {"output_type": "execute_result", "data": {"text/plain": "shape: (1, 1)"}},
        ]},
    ]  # fmt: skip
    html = page({"cells": cells})
    assert "<pre>&lt;b&gt;red&lt;/b&gt;</pre>" in html
    assert "unheard" not in html
    assert 'src="data:image/png;base64,aGk=" alt="a dot"' in html
    assert "<pre>shape: (1, 1)</pre>" in html
    assert "window.vegaEmbed=" not in html
