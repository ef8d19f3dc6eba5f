"""What is installed is what is declared: pyproject.toml, the locks, environment.yml, the wheel."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import tauscope

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RUNTIME = PROJECT["project"]["dependencies"]
TEST = PROJECT["project"]["optional-dependencies"]["test"]
BUILD = PROJECT["build-system"]["requires"]
LOCKS = ("requirements.lock", "requirements-test.lock")
CONDA_NAMES = {"python-duckdb": "duckdb", "great_tables": "great-tables"}


def pins(lock: str) -> list[Requirement]:
    text = (ROOT / lock).read_text(encoding="utf-8")
    return [
        Requirement(line.removesuffix(" \\"))
        for line in text.splitlines()
        if not line.startswith(" ")
    ]


def ranges(lines: list[str]) -> dict[str, str]:
    found = [Requirement(line) for line in lines]
    return {canonicalize_name(r.name): str(r.specifier) for r in found}


def tracked() -> list[Path]:
    """Files under version control; a copy without it has nothing to check."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so what is committed can't be listed")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout.decode()
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def test_conda_has_the_same_packages_and_ranges():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    plain = [d for d in environment["dependencies"] if isinstance(d, str) and d != "pip"]
    nested = [d for d in environment["dependencies"] if isinstance(d, dict)]
    conda = {}
    for line in plain:
        name = re.match(r"[\w.-]+", line)[0]
        conda.update(ranges([CONDA_NAMES.get(name, name) + line.removeprefix(name)]))
    wanted = ranges([*RUNTIME, "python" + PROJECT["project"]["requires-python"]])
    assert conda == wanted
    assert nested == [{"pip": ["-e ."]}]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_is_pins_with_hashes_and_nothing_else(lock):
    lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
    pin = re.compile(r"[a-z0-9][a-z0-9.-]*==[^ ;]+( ; [^\\]+)? \\")
    digest = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")
    for number, line in enumerate(lines, 1):
        assert pin.fullmatch(line) or digest.fullmatch(line), f"{lock}:{number}: {line}"
    for line, following in zip(lines, [*lines[1:], "end=="], strict=True):
        if line.endswith("\\"):
            assert digest.fullmatch(following), f"{lock}: no hash after {line}"
        else:
            assert not following.startswith(" "), f"{lock}: a hash of nothing: {following}"


@pytest.mark.parametrize("system", ["linux", "darwin"])
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_the_locks_hold_one_fitting_version_of_all_that_is_declared(python, system):
    environment = default_environment() | {
        "python_version": python,
        "python_full_version": f"{python}.7",
        "sys_platform": system,
        "platform_system": system.title(),
        "os_name": "posix",
    }
    for locks, declared in ((LOCKS[:1], RUNTIME + BUILD), (LOCKS, TEST)):
        pinned: dict[str, str] = {}
        for pin in (pin for lock in locks for pin in pins(lock)):
            if pin.marker is None or pin.marker.evaluate(environment):
                assert pin.name not in pinned, f"{pin.name} is pinned twice"
                pinned[pin.name] = str(pin.specifier).removeprefix("==")
        for wanted in map(Requirement, declared):
            version = pinned.get(canonicalize_name(wanted.name))
            assert version is not None, f"{wanted} is in no lock"
            assert wanted.specifier.contains(version), f"{wanted} is locked at {version}"


def test_the_runtime_lock_has_no_test_package():
    runtime, test = ({pin.name for pin in pins(lock)} for lock in LOCKS)
    assert not runtime & test
    assert not runtime & set(ranges(TEST))


def test_one_version_everywhere():
    assert tauscope.__version__ == PROJECT["project"]["version"] == metadata.version("tauscope")


def test_help_loads_nothing_heavy():
    heavy = "altair duckdb great_tables IPython jupyter_client nbconvert nbformat numpy papermill"
    heavy += " polars pyarrow rich scipy vl_convert zstandard"
    program = f"""
import sys
sys.argv = ["tauscope", "--help"]
from tauscope.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("LOADED", *sorted(set({heavy.split()}) & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert "Usage: tauscope" in done.stdout
    assert done.stdout.splitlines()[-1] == "LOADED"


def test_no_committed_file_names_this_machine_or_an_index():
    own = [str(ROOT), str(Path.home()), sys.prefix]
    paths = "|".join(re.escape(path) for path in own if len(path) > 1)
    pattern = re.compile(rf"({paths})(?![\w-])|pythonhosted|//pypi|index-url|find-links".encode())
    found = [
        f"{path.relative_to(ROOT)}: {match[0].decode()}"
        for path in tracked()
        if path != Path(__file__).resolve()
        for match in [pattern.search(path.read_bytes())]
        if match
    ]
    assert not found


@pytest.mark.parametrize(
    ("path", "ignored"),
    [
        ("reports/latest", True),
        ("reports/2026-11-30/index.html", True),
        ("reports/README.md", False),
        ("traces/store/runs/a.parquet", True),
        ("traces/sample/runs/a.parquet", False),
        ("traces/sample/raw/a.log.zst", False),
        ("traces/recorded/cycles/a.parquet", False),
        ("traces/example.log", False),
        ("requirements.lock", False),
        (".venv/bin/python", True),
    ],
)
def test_what_is_generated_or_private_stays_out_of_git(path, ignored):
    tracked()
    asked = subprocess.run(["git", "check-ignore", "-q", "--no-index", path], cwd=ROOT)
    assert asked.returncode == (0 if ignored else 1)
