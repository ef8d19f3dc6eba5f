"""Pages in a real browser without a network: every chart drawn, nothing run, nothing fetched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browsing import DESK, PHONE, browser, opened  # noqa: F401
from conftest import Command
from notebook_runs import executed
from report_stores import NOTEBOOKS, SCENARIOS, build, real_store

from tauscope import catalog
from tauscope.batch import export, index, inputs, render

LARGEST = 3_000_000
# Charts that a store must show; in the others a chart may give way to words.
CHARTS = {
    ("sample", "workloads"): {"speedup", "tau", "draft_accuracy", "committed_acceptance",
                              "fold_rate", "margins", "turns"},
    ("sample", "ledger"): {"outcomes", "stages"},
    ("sample", "timing"): {"waterfall", "breakeven", "positions", "course"},
    ("sample", "compare"): {"moved"},
    ("sample", "routing"): {"routes"},
    ("hostile", "timing"): {"waterfall", "breakeven", "positions", "course"},
    ("hostile", "workloads"): {"speedup", "tau", "fold_rate", "margins", "turns"},
    ("hostile", "ledger"): {"outcomes", "stages"},
    ("old", "workloads"): {"speedup", "tau", "committed_acceptance", "fold_rate"},
    ("one_arm", "workloads"): {"tau", "committed_acceptance", "fold_rate"},
}  # fmt: skip


def lay_down(name: str, root: Path, out: Path) -> None:
    """The pages and the index of one store, through the batch's own rendering."""
    out.mkdir(parents=True)
    pages = []
    for notebook in NOTEBOOKS:
        ran = executed(notebook, traces=[str(root)])
        (out / notebook).mkdir()
        files = export.data_files(ran, out / notebook)
        title, question = render.heading(ran)
        text = render.page(ran, made="now", about="", name=notebook, folder=notebook,
                           parameters="", files=files)  # fmt: skip
        (out / f"{notebook}.html").write_text(text, encoding="utf-8")
        pages.append({"slug": notebook, "file": f"{notebook}.html", "title": title, "about": "",
                      "question": question, "seconds": 1.0, "why": "first time", "made": "now",
                      "error": ""})  # fmt: skip
    data = catalog.Catalog([root])
    text = index.html(index.collect(data), pages, made="now", origin=data.origin,
                      stores=[str(root)], seconds=1.0, files=inputs.files(data))  # fmt: skip
    (out / "index.html").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("reports")
    found = {}
    for name in SCENARIOS:
        found[name] = root / name / "pages"
        lay_down(name, build(name, root / name / "store"), found[name])
    return found


def chart_names(page: Any) -> list[str]:
    return page.evaluate("[...document.querySelectorAll('.vega')].map(v => v.dataset.chart)")


def marks(page: Any, name: str) -> int:
    spec = json.loads(page.locator(f"#spec-{name}").text_content())
    kind = spec["usermeta"]["tauscope"]["marks"]
    return page.locator(f"#chart-{name} svg g.{kind} > path").count()


@pytest.mark.parametrize("notebook", NOTEBOOKS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_chart_has_a_mark_a_row(
    scenario: str, notebook: str, reports: dict[str, Path], browser: Any,  # noqa: F811
) -> None:  # fmt: skip
    watch = opened(browser, reports[scenario] / f"{notebook}.html")
    page = watch.page
    names = chart_names(page)
    assert set(names) >= CHARTS.get((scenario, notebook), set())
    for name in names:
        rows = page.locator(f"#chart-{name} tr[data-row]").count()
        assert rows > 0
        assert marks(page, name) == rows, name
    assert page.evaluate("tauscope.errors") == []
    assert watch.said == []
    assert [url for url in watch.asked if not url.startswith(("file:", "data:"))] == []
    assert page.evaluate("window.hit") is None
    page.context.close()


@pytest.mark.parametrize("scenario", ("sample", "hostile"))
def test_tooltips_answer_the_mouse(
    scenario: str, reports: dict[str, Path], browser: Any,  # noqa: F811
) -> None:  # fmt: skip
    for notebook in ("workloads", "ledger"):
        page = opened(browser, reports[scenario] / f"{notebook}.html").page
        for name in chart_names(page):
            spec = json.loads(page.locator(f"#spec-{name}").text_content())
            about = spec["usermeta"]["tauscope"]
            mark = page.locator(f"#chart-{name} svg g.{about['marks']} > path").first
            mark.hover(force=True)
            tip = page.locator("#vg-tooltip-element.visible")
            tip.wait_for()
            assert tip.locator("tr").count() == len(about["columns"]), name
            assert page.evaluate("window.hit") is None
            page.mouse.move(2, 2)
        page.context.close()


@pytest.mark.parametrize("scenario", ("sample", "hostile", "empty"))
def test_pages_fit_a_phone_and_a_desk_in_light_and_dark(
    scenario: str, reports: dict[str, Path], browser: Any, tmp_path: Path,  # noqa: F811
) -> None:  # fmt: skip
    for name in ("index",) if scenario == "empty" else (*NOTEBOOKS, "index"):
        for how in ({}, {"dark": True}, {"size": PHONE}):
            page = opened(browser, reports[scenario] / f"{name}.html", **how).page
            wide = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert wide <= 0, (name, how)
            picture = page.screenshot(path=tmp_path / "shot.png", full_page=True)
            assert len(picture) > 5_000
            page.context.close()


def test_ink_shows_on_dark_paper(reports: dict[str, Path], browser: Any) -> None:  # noqa: F811
    page = opened(browser, reports["sample"] / "workloads.html", dark=True).page
    colours = page.evaluate(
        "['.role-axis-label text', '.role-title-text text'].map(s => getComputedStyle("
        "document.querySelector('#chart-speedup svg ' + s)).fill)"
    )
    for colour in colours:
        red, green, blue = (int(part) for part in colour[4:-1].split(","))
        assert min(red, green, blue) > 140, colours
    page.context.close()


def test_printed_charts_are_whole(reports: dict[str, Path], browser: Any) -> None:  # noqa: F811
    page = opened(browser, reports["sample"] / "workloads.html").page
    page.emulate_media(media="print")
    styles = page.evaluate(
        "[...document.querySelectorAll('figure.chart')].map(f => getComputedStyle(f).breakInside)"
    )
    assert set(styles) == {"avoid"}
    page.set_viewport_size({"width": 640, "height": 900})
    cut = page.evaluate(
        "[...document.querySelectorAll('.vega svg')].filter("
        "s => s.getBoundingClientRect().right > innerWidth).length"
    )
    assert cut == 0
    page.context.close()


def test_a_figure_tells_what_it_divides_and_its_query(
    reports: dict[str, Path], browser: Any,  # noqa: F811
) -> None:  # fmt: skip
    page = opened(browser, reports["sample"] / "workloads.html").page
    figure = page.locator("#table-workloads tbody tr").nth(1).locator(".fig").nth(4)
    figure.click()
    story = page.locator("#story")
    assert "Σ accepted / Σ verified" in story.locator("[data-part=about]").text_content()
    sql = story.locator("[data-part=sql]").text_content()
    assert sql.startswith("SELECT * FROM cycles WHERE workload = ")
    assert "verified > 0" in sql
    page.context.close()


def test_the_index_sorts_and_filters(reports: dict[str, Path], browser: Any) -> None:  # noqa: F811
    page = opened(browser, reports["sample"] / "index.html").page
    names = page.locator("#answers .name bdi").all_text_contents()
    assert names[:10:2] == ["agent", "code", "technical", "prose", "chat"]
    page.fill("#find-answers", "off chat")
    assert page.locator("#answers > li:visible").count() == 1
    cells = "#runs-table tbody tr td:nth-child(6)"
    page.locator("#runs-table th button.sort", has_text="cycles").click()
    ordered = [int(t.replace(",", "")) for t in page.locator(cells).all_text_contents()]
    assert ordered == sorted(ordered)
    page.locator("#runs-table th button.sort", has_text="cycles").click()
    back = [int(t.replace(",", "")) for t in page.locator(cells).all_text_contents()]
    assert back == sorted(ordered, reverse=True)
    page.context.close()


def test_the_index_runs_nothing_from_a_label(
    reports: dict[str, Path], browser: Any,  # noqa: F811
) -> None:  # fmt: skip
    watch = opened(browser, reports["hostile"] / "index.html")
    assert watch.page.evaluate("window.hit") is None
    assert watch.said == []
    text = watch.page.locator("#answers").text_content()
    assert "<script>window.hit=1</script>" in text
    assert "中文聊天 é" in text
    assert "10,000 characters" in text
    watch.page.context.close()


def test_pages_stay_small(reports: dict[str, Path]) -> None:
    sizes = {path: path.stat().st_size for root in reports.values() for path in root.glob("*.html")}
    assert max(sizes.values()) < LARGEST, sizes


def test_real_logs_are_drawn(
    corpus: Path, command: Command, tmp_path: Path, browser: Any,  # noqa: F811
) -> None:  # fmt: skip
    lay_down("real", real_store(corpus, command, tmp_path / "real"), tmp_path / "pages")
    for notebook in ("workloads", "ledger"):
        watch = opened(browser, tmp_path / "pages" / f"{notebook}.html")
        names = chart_names(watch.page)
        assert names
        for name in names:
            rows = watch.page.locator(f"#chart-{name} tr[data-row]").count()
            assert marks(watch.page, name) == rows > 0, name
        assert "simulated" not in watch.page.locator("body > header").text_content()
        assert watch.said == []
        watch.page.context.close()


def test_a_phone_shows_the_reason_below_its_row(
    reports: dict[str, Path], browser: Any,  # noqa: F811
) -> None:  # fmt: skip
    page = opened(browser, reports["sample"] / "workloads.html", size=PHONE).page
    row = page.locator("#table-speedup tbody tr").first
    whole = row.evaluate("r => r.getBoundingClientRect().right <= innerWidth")
    assert whole
    why, speed = row.locator("td").last, row.locator("td").nth(1)
    assert why.bounding_box()["y"] > speed.bounding_box()["y"]
    assert why.get_attribute("data-head") == "why"
    page.context.close()


def test_row_names_cut_short_on_a_chart_stay_apart(
    reports: dict[str, Path], browser: Any,  # noqa: F811
) -> None:  # fmt: skip
    for size in (DESK, PHONE):
        page = opened(browser, reports["hostile"] / "ledger.html", size=size).page
        axis = page.locator("#chart-stages svg .role-axis-label").last
        # Of two labels of 10,000 characters only the hash, in the middle, tells them apart.
        names = [n for n in axis.locator("text").all_text_contents() if not n.startswith("xx")]
        assert len(set(names)) == len(names) > 5
        page.context.close()
