"""What the Makefile may remove, and what it says when it can't go on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="no make on this machine")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files that the Makefile itself needs, in a folder with blanks in its name."""
    folder = tmp_path / "a clone"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "requirements.lock", "requirements-test.lock"):
        shutil.copy(ROOT / name, folder)
    return folder


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    # What was said to a make that runs this suite is not for this one.
    said = ("MAKE", "MFLAGS", "ARGS", "PYTHON")
    env = {k: v for k, v in os.environ.items() if not k.startswith(said)} | {"LC_ALL": "C"}
    return subprocess.run(
        ["make", "--no-print-directory", *words],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def installed(folder: Path, made_in: str) -> None:
    """Pretend that .venv was made, by make, in the folder `made_in`."""
    binaries = folder / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(sys.executable)
    (folder / ".venv" / ".made-in").write_text(made_in + "\n")
    for name in (".installed", ".installed-test"):
        (folder / ".venv" / name).touch()


def test_clean_removes_what_is_made_and_never_traces(clone: Path):
    kept = ["traces/store/runs/a.parquet", "traces/sample/runs/b.parquet", "reports/README.md"]
    gone = ["reports/latest/index.html", "reports/.keep/x", ".venv/bin/python", "build/x"]
    gone += ["analysis/tauscope/__pycache__/x.pyc", ".pytest_cache/x"]
    for name in kept + gone:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).touch()
    done = make(clone, "clean")
    assert done.returncode == 0, done.stderr
    assert [name for name in kept if (clone / name).exists()] == kept
    assert [name for name in gone if (clone / name).exists()] == []


def test_clean_of_a_fresh_clone_is_no_error(clone: Path):
    assert make(clone, "clean").returncode == 0


def test_without_a_python_it_says_what_to_do(clone: Path):
    done = make(clone, "PYTHON=", "report")
    assert done.returncode != 0
    assert done.stderr.startswith("Python 3.11 or newer: not found; install it, or name it")
    assert not (clone / ".venv").exists()


def test_what_is_installed_is_not_installed_again(clone: Path):
    installed(clone, str(clone.resolve()))
    done = make(clone, "-n", "report")
    assert "pip" not in done.stdout
    assert "rm -rf" not in done.stdout
    assert ".venv/bin/tauscope report" in done.stdout


@pytest.mark.parametrize("changed", ["requirements.lock", "pyproject.toml"])
def test_a_changed_lock_or_project_is_installed(clone: Path, changed: str):
    installed(clone, str(clone.resolve()))
    later = (clone / ".venv" / ".installed").stat().st_mtime + 10
    os.utime(clone / changed, (later, later))
    assert "--require-hashes" in make(clone, "-n", "report").stdout


def test_a_moved_clone_gets_a_new_environment(clone: Path):
    installed(clone, str(clone.parent / "elsewhere"))
    assert "rm -rf .venv" in make(clone, "-n", "report").stdout


def test_an_environment_whose_python_is_gone_is_made_anew(clone: Path):
    installed(clone, str(clone.resolve()))
    python = clone / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to(clone / "no such python")
    assert "rm -rf .venv" in make(clone, "-n", "report").stdout


def test_help_names_every_target(clone: Path):
    text = (clone / "Makefile").read_text()
    targets = text.split(".PHONY: ")[1].splitlines()[0].split()
    listed = [line.split()[1] for line in make(clone).stdout.splitlines() if "  make " in line]
    assert sorted(listed) == sorted(t for t in targets if t != "anew")


def test_ci_can_be_run():
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
