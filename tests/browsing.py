"""A headless browser that can reach this machine and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
SWITCHES = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)  # fmt: skip
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium on this machine; .ci/run installs one")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=found, args=list(SWITCHES))
        yield opened
        opened.close()


@dataclass
class Watched:
    """A page, and everything in it that went wrong or left it."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


def watched(browser: Any, *, dark: bool = False, size: dict[str, int] | None = None) -> Watched:
    """A new page whose console and requests are kept."""
    context = browser.new_context(
        viewport=size or DESK, color_scheme="dark" if dark else "light", reduced_motion="reduce"
    )
    found = Watched(context.new_page())
    found.page.on(
        "console",
        lambda m: found.said.append(m.text) if m.type in ("error", "warning") else None,
    )
    found.page.on("pageerror", lambda error: found.said.append(str(error)))
    found.page.on("request", lambda request: found.asked.append(request.url))
    return found


def opened(browser: Any, path: Path, **how: Any) -> Watched:
    """A page of a report, its charts drawn."""
    found = watched(browser, **how)
    found.page.goto(path.as_uri())
    found.page.evaluate("window.tauscope && tauscope.ready")
    return found
