"""An experiment that is interrupted again and again ends with each cell in the store once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from experiments import cells, environment, write_plan

from tauscope.schema import WORKLOADS

ARMS = {"off": [], "draft": ["--draft"]}


def start(plan: Path, store: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from tauscope.cli import main; main()", "experiment"]
    return subprocess.Popen(
        [*command, str(plan), "--traces", str(store)], env=environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def wait(what: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    limit = time.monotonic() + 120
    while not what():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.005)


def committed(store: Path) -> int:
    return len(list((store / "runs").glob("*.parquet")))


def test_three_interruptions_leave_each_cell_once(tmp_path: Path, store: Path) -> None:
    plan = write_plan(tmp_path / "plan.toml", 4, ARMS, WORKLOADS)
    for least, how in ((5, signal.SIGINT), (17, signal.SIGKILL), (30, signal.SIGTERM)):
        process = start(plan, store)
        wait(lambda least=least: committed(store) >= least, process)
        # To the experiment alone: an engine that it left behind is part of the trouble.
        os.kill(process.pid, how)
        process.communicate(timeout=60)
        assert process.returncode != 0
        done = cells(store)
        assert least <= done.height < 40
        assert done["key"].n_unique() == done.height
    process = start(plan, store)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    done = cells(store)
    assert done["place"].to_list() == list(range(40))
    assert done["key"].n_unique() == 40
    assert set(done["state"]) == {"complete"}
    assert done["emitted"].to_list() == [8] * 40
    assert sum(done["cycles"]) == 20 * 8 + 12 * 4 + 8 * 8
    assert len(list((store / "experiments").glob("*/outputs/*.txt"))) == 40
    assert "20 of 20 outputs equal the off arm's" in out
    assert "no verdict on" in out and "fewer than 5 prompts ran in both arms" in out
    again = start(plan, store)
    assert again.communicate(timeout=60)[0] == out
    assert cells(store).equals(done)


def test_an_engine_that_was_left_behind_is_waited_for(tmp_path: Path, store: Path) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    arms = {"off": ["--hold", str(hold)], "draft": ["--draft"]}
    plan = write_plan(tmp_path / "plan.toml", 1, arms, ("code",))
    process = start(plan, store)
    wait(lambda: bool(list((store / "experiments").glob("*/running.ndjson"))), process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert committed(store) == 0
    process = start(plan, store)
    assert process.stderr is not None
    assert "still runs; waiting for its end" in process.stderr.readline()
    hold.unlink()
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert cells(store).height == 2


def test_an_interruption_ends_the_engine_too(tmp_path: Path, store: Path) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    arms = {"off": ["--hold", str(hold)], "draft": ["--draft"]}
    process = start(write_plan(tmp_path / "plan.toml", 1, arms, ("code",)), store)
    wait(lambda: bool(list((store / "experiments").glob("*/running.ndjson"))), process)
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    from tauscope.record import marker

    (journal,) = (store / "experiments").glob("*/running.log")
    assert not marker.is_held(journal)


def test_the_same_experiment_twice_at_once_is_refused(tmp_path: Path, store: Path) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    arms = {"off": ["--hold", str(hold)], "draft": ["--draft"]}
    plan = write_plan(tmp_path / "plan.toml", 1, arms, ("code",))
    first = start(plan, store)
    wait(lambda: bool(list((store / "experiments").glob("*/running.ndjson"))), first)
    second = start(plan, store)
    _, err = second.communicate(timeout=60)
    assert second.returncode == 1
    assert err.count("\n") == 1 and "is running already" in err
    hold.unlink()
    first.communicate(timeout=60)
    assert first.returncode == 0
