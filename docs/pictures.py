"""The README's picture, from a real report of the bundled sample: python docs/pictures.py

Needs Chromium; nothing is fetched. The picture is written as docs/picture.png.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SIZE = {"width": 1080, "height": 760}


def main() -> int:
    from playwright.sync_api import sync_playwright

    from tauscope.batch import report

    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        print("chromium: not found; install it, then make pictures again", file=sys.stderr)
        return 1
    target = Path(__file__).with_name("picture.png")
    with tempfile.TemporaryDirectory() as out, sync_playwright() as running:
        made = report.make(traces=[ROOT / "traces" / "sample"], out=out, notebooks=["workloads"])
        if made.failed:
            print(f"report: {made.failed[0]['error']}", file=sys.stderr)
            return 1
        browser = running.chromium.launch(
            executable_path=found,
            args=["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"],
        )
        page = browser.new_page(viewport=SIZE, device_scale_factor=1.5)
        page.goto(made.index.as_uri())
        # The answer and its verdicts, down to the last of them.
        box = page.locator("#answers").bounding_box()
        clip = {"x": 0, "y": 0, "width": SIZE["width"], "height": box["y"] + box["height"] + 16}
        page.screenshot(path=target, full_page=True, clip=clip)
        browser.close()
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
