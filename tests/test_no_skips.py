"""With TAUSCOPE_NO_SKIPS=1, as in .ci/run, a skipped test is a failed one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

TESTS = """
import pytest

@pytest.fixture
def page():
    pytest.skip("no browser")

def test_skipped_inside():
    pytest.skip("no browser")

@pytest.mark.skip(reason="no browser")
def test_skipped_by_a_mark():
    pass

def test_skipped_by_a_fixture(page):
    pass

@pytest.mark.xfail
def test_failing_as_expected():
    assert False

def test_passing():
    pass
"""
MODULE = "import pytest\npytest.skip('no browser', allow_module_level=True)\n"


def outcome(folder: Path, program: str, strict: bool) -> tuple[int, str]:
    """Exit code and output of a suite of one file under this suite's conftest.py."""
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    (folder / "test_one.py").write_text(program)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "TAUSCOPE"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider", "--rootdir", folder, "."],
        cwd=folder,
        env=env | {"TAUSCOPE_NO_SKIPS": "1" if strict else "", "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_skip_fails_where_none_is_allowed(tmp_path: Path):
    code, text = outcome(tmp_path, TESTS, strict=True)
    assert code == 1, text
    assert "skipped, but TAUSCOPE_NO_SKIPS is set: Skipped: no browser" in text
    failed = {line.split("::")[1].split()[0] for line in text.splitlines() if "::" in line}
    skipped = {"test_skipped_inside", "test_skipped_by_a_mark"}
    assert failed == skipped | {"test_skipped_by_a_fixture", "test_failing_as_expected"}
    assert "1 passed, 1 xfailed" in text


def test_a_skipped_module_fails_where_none_is_allowed(tmp_path: Path):
    code, text = outcome(tmp_path, MODULE, strict=True)
    assert code not in (0, 5), text
    assert "skipped, but TAUSCOPE_NO_SKIPS is set: Skipped: no browser" in text


def test_a_stranger_gets_the_reason(tmp_path: Path):
    code, text = outcome(tmp_path, TESTS, strict=False)
    assert code == 0, text
    assert "1 passed, 3 skipped, 1 xfailed" in text
    assert "no browser" in text
