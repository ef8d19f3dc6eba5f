"""What several test files share: the real logs, an empty store, and no skips where none may be."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says more of the machine than of the code.
settings.register_profile("tauscope", deadline=None)
settings.load_profile("tauscope")

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT.parent / "shared" / "corpus"
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Folder of real ds4 logs; they are not part of the project."""
    if not CORPUS.is_dir():
        pytest.skip(f"no real logs at {CORPUS.relative_to(ROOT.parent)}; they are not published")
    return CORPUS


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Folder for a store, with blanks and Chinese in its name as people have them."""
    return tmp_path / "跑 分 store"


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """The command line as a user calls it: words in, (exit code, output, errors) out."""
    from tauscope import cli

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tauscope", *map(str, words)])
        capfd.readouterr()
        code: object = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code
        out, err = capfd.readouterr()
        return (code if isinstance(code, int) else 0), out, err

    return call


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped, but TAUSCOPE_NO_SKIPS is set: {reason}"


# Where everything that tests need can be installed, a skip hides something.
if os.environ.get("TAUSCOPE_NO_SKIPS"):

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport():
        report = yield
        _fail_if_skipped(report)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report():
        report = yield
        _fail_if_skipped(report)
        return report
