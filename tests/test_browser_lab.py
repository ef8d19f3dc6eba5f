"""Notebooks by hand: in JupyterLab, in a real browser, without a network."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from browsing import browser, watched  # noqa: F401
from test_lab import Lab, lab  # noqa: F401

from tauscope import catalog, speedup

Error = pytest.importorskip("playwright.sync_api").Error
ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
# Charts that a notebook draws from the bundled sample; the others have at least one.
CHARTS = {"workloads": 7, "ledger": 2, "rosetta": 0}
PATIENCE_MS = 120_000


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[str]:
    """A folder below notebooks/ with a copy of one, which runs there as its own folder."""
    folder = ROOT / "notebooks" / "elsewhere-of-a-test"
    folder.mkdir(exist_ok=True)
    shutil.copy(ROOT / "notebooks" / "workloads.ipynb", folder)
    yield folder.name
    shutil.rmtree(folder)


def opened(browser: Any, lab: Lab, path: str) -> Any:  # noqa: F811
    """A notebook open in a lab of its own workspace, its kernel ready."""
    found = watched(browser)
    name = re.sub(r"\W", "-", path)
    page = found.page
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{lab.url}lab/workspaces/{name}/tree/{path}?reset&token={lab.token}")
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    return found


def run_all(page: Any) -> None:
    """Run → Run All Cells, and wait until every cell has run (anew, where it had before)."""
    counts = "[...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map("
    counts += "p => Number((/^\\[(\\d+)\\]/.exec(p.textContent) || [0, 0])[1]))"
    before = max(page.evaluate(counts))
    page.locator(".lm-MenuBar-itemLabel", has_text=re.compile("^Run$")).click()
    page.locator(".lm-Menu-itemLabel", has_text=re.compile("^Run All Cells$")).click()
    page.wait_for_function(
        f"before => {{ const all = {counts};"
        " return all.length > 1 && Math.min(...all) > before; }",
        arg=before,
    )
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    errors = page.locator("[data-mime-type='application/vnd.jupyter.error']")
    assert errors.count() == 0, errors.all_text_contents()
    stderr = page.locator("[data-mime-type='application/vnd.jupyter.stderr']")
    assert stderr.count() == 0, stderr.all_text_contents()


def charts_drawn(page: Any, wanted: int | None) -> None:
    """Every chart is drawn, and there are as many as wanted."""
    charts = page.locator(".jp-RenderedVegaCommon5")
    drawn = page.locator(".jp-RenderedVegaCommon5 svg.marks")
    if wanted != 0:
        charts.first.wait_for(state="attached")
    found = charts.count()
    assert found == wanted or (wanted is None and found > 0)
    for number in range(found):
        drawn.nth(number).wait_for(state="attached")
    assert drawn.count() == found


def tooltip_shows(page: Any) -> None:
    mark = page.locator("svg g.speedup_marks > path").first
    tip = page.locator("#vg-tooltip-element.visible")
    for _ in range(30):
        # Cells below may still be growing, which moves the mark from under the mouse.
        mark.scroll_into_view_if_needed()
        mark.hover(force=True)
        with contextlib.suppress(Error):
            tip.wait_for(timeout=2000)
            break
    assert "95 % interval" in tip.text_content()
    page.mouse.move(2, 2)


def left_the_machine(asked: list[str]) -> list[str]:
    here = ("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:")
    return [url for url in asked if not url.startswith(here)]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_opens_runs_and_draws(name: str, lab: Lab, browser: Any) -> None:  # noqa: F811
    watch = opened(browser, lab, f"{name}.ipynb")
    assert watch.page.locator(".Toastify__toast:visible, .jp-Dialog").count() == 0
    run_all(watch.page)
    charts_drawn(watch.page, CHARTS.get(name))
    if name == "workloads":
        tooltip_shows(watch.page)
    assert left_the_machine(watch.asked) == []
    watch.page.context.close()


@pytest.mark.timeout(900)
def test_it_runs_elsewhere_and_again_with_another_parameter(
    elsewhere: str, lab: Lab, browser: Any,  # noqa: F811
) -> None:  # fmt: skip
    watch = opened(browser, lab, f"{elsewhere}/workloads.ipynb")
    page = watch.page
    run_all(page)
    charts_drawn(page, 7)
    everything = page.locator("svg g.speedup_marks > path").count()
    editor = page.locator(".jp-CodeCell .cm-content").first
    editor.scroll_into_view_if_needed()
    editor.locator(".cm-line", has_text="workload: str").click()
    page.keyboard.press("Home")
    page.keyboard.press("Shift+End")
    page.keyboard.insert_text('workload: str = "code"  # one of them')
    run_all(page)
    known = speedup.table(catalog.connect()).filter(pl.col("speedup").is_not_null())
    of_code = known.filter(pl.col("workload") == "code").height
    assert everything == known.height > of_code > 0
    page.wait_for_function(
        "wanted => document.querySelectorAll('svg g.speedup_marks > path').length === wanted",
        arg=of_code,
    )
    tooltip_shows(page)
    page.context.close()
