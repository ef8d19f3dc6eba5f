"""A full disk stops the committing, not the engine; what was journaled is kept."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from standin import HERE, engine, log_of

CYCLES = 40_000


@pytest.fixture(scope="module")
def namespace() -> list[str]:
    """Words that run a command where it may mount a small disk."""
    words = ["unshare", "--map-root-user", "--user", "--mount"]
    if not shutil.which("unshare"):
        pytest.skip("no unshare here: a full disk needs a mount namespace (Linux)")
    tried = subprocess.run([*words, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True)
    if tried.returncode:
        pytest.skip(f"user namespaces can't mount here: {tried.stderr.decode().strip()}")
    return words


def recorded(namespace: list[str], tmp_path: Path, when: str) -> dict[str, object]:
    log, folder = tmp_path / "stand in.log", tmp_path / "disk"
    log.write_bytes(log_of(CYCLES))
    folder.mkdir()
    words = [sys.executable, HERE / "full_disk.py", folder, engine(), log, CYCLES - 100, when]
    done = subprocess.run([*namespace, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_space_comes_back_after_the_end(namespace: list[str], tmp_path: Path) -> None:
    told = recorded(namespace, tmp_path, "kept")
    assert told["running"] is True
    assert told["code"] == 7
    # Once while it ran, once at the end: where the rest is and who commits it.
    assert len(told["said"]) == 2
    assert "the engine goes on and its journal is kept: free some room" in told["said"][0]
    assert "the next command on the store commits it" in told["said"][1]
    assert told["left"] == 1
    assert told["raw"] >= told["full"] > 1_000_000
    assert told["stored"] == told["truth"] > told["during"]
    assert told["same"] is True
    assert told["state"] == "recovered"


def test_space_comes_back_while_the_engine_runs(namespace: list[str], tmp_path: Path) -> None:
    told = recorded(namespace, tmp_path, "freed")
    assert told["running"] is True
    assert told["code"] == 7
    assert len(told["said"]) == 1
    assert told["left"] == 0
    assert told["raw"] > told["full"]
    assert told["stored"] > told["during"]
    assert told["same"] is True
    assert told["state"] == "complete"
