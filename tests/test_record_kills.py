"""Killed anywhere, nothing that was journaled is lost and nothing is there twice."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
from pathlib import Path

import pytest
from standin import (
    alive,
    cycle_lines,
    engine,
    journal,
    journal_size,
    log_of,
    recorder,
    tauscope,
    wait_for,
)

from tauscope import catalog
from tauscope.record import marker
from tauscope.record.journal import kept_blocks
from tauscope.record.recover import mend

CYCLES = 4000
RUNS = 200 if os.environ.get("TAUSCOPE_SOAK") else 20


def only_marker(store: Path) -> marker.Marker | None:
    found = marker.pending(store)
    return marker.load(found[0]) if found else None


def started(store: Path) -> marker.Marker:
    """The marker of the one recording, once it names the engine."""
    return wait_for(lambda: (m := only_marker(store)) and m.engine_pid and m)


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def stored(store: Path) -> list[int]:
    data = catalog.Catalog([store])
    assert data.damaged == []
    return data.query("SELECT line FROM cycles ORDER BY line")["line"].to_list()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_kills_at_seeded_offsets(tmp_path: Path) -> None:
    log = tmp_path / "stand in.log"
    log.write_bytes(log_of(CYCLES))
    for seed in range(RUNS):
        killed_once(seed, log, tmp_path / f"跑 {seed}")


def killed_once(seed: int, log: Path, store: Path) -> None:
    """One recording, killed at one place; what is left is what the journal has."""
    rng = random.Random(seed)
    size = log.stat().st_size
    who = ("recorder", "engine", "both")[seed % 3]
    # Small rolls and much merging: a kill finds the recorder in the middle of each.
    process = recorder(
        store, engine(), "--log", log, "--rate", rng.choice([6000, 20_000, 0]),
        commit_s=rng.choice([0.005, 0.05, 0.3]), roll_bytes=rng.choice([4096, 65536]),
        fan_in=rng.choice([2, 4]),
    )  # fmt: skip
    known = started(store)
    at = rng.randrange(size)
    wait_for(lambda: journal_size(store) >= at or process.poll() is not None)
    if who in ("recorder", "both"):
        kill(process.pid)
    if who in ("engine", "both"):
        kill(known.engine_pid)
    process.wait()
    if who == "recorder" and rng.random() < 0.5:
        stored(store)  # a command in between, perhaps while the engine still writes
    wait_for(lambda: not alive(known.engine_pid))
    name = f"raw/{known.log_id}.log.zst"
    journaled = b"".join(kept_blocks(store, name))
    assert log.read_bytes().startswith(journaled), f"seed {seed}: the journal is not the log"
    if who == "recorder":
        assert len(journaled) == size, f"seed {seed}: the engine's end is missing"
    lines = stored(store)
    assert lines == cycle_lines(journaled), f"seed {seed}: {who} killed at {at} of {size}"
    assert b"".join(kept_blocks(store, name)) == journaled
    assert marker.pending(store) == []
    assert stored(store) == lines


def test_the_next_command_says_what_it_recovered_and_then_answers(
    store: Path, tmp_path: Path, command
) -> None:
    gate, log = tmp_path / "gate", tmp_path / "stand in.log"
    log.write_bytes(log_of(500))
    process = recorder(store, engine(), "--log", log, "--gate", 402, gate)
    known = started(store)
    size = len(b"".join(log.read_bytes().splitlines(keepends=True)[:402]))
    wait_for(lambda: journal_size(store) == size)
    kill(process.pid)
    process.wait()

    ask = ("sql", "SELECT COUNT(*) AS n FROM cycles", "--traces", store, "--json")
    code, out, err = command(*ask)
    assert code == 0
    assert '"n": 400' in out
    assert f"(process {known.engine_pid}) still runs and writes; 400 cycles are committed" in err
    assert catalog.Catalog([store]).runs["state"].to_list() == ["recording"]
    code, out, err = command(*ask)
    assert '"n": 400' in out
    assert "nothing new since the last command" in err

    gate.touch()
    wait_for(lambda: not alive(known.engine_pid))
    code, out, err = command("metrics", "--traces", store, "--json")
    assert code == 0
    assert '"cycles": 500' in out
    assert f"{known.log_id}: its recording was cut short; recovered 500 cycles" in err
    code, out, err = command(*ask)
    assert '"n": 500' in out
    assert err == ""
    assert catalog.Catalog([store]).runs["state"].to_list() == ["recovered"]


def test_times_survive_a_recovery(store: Path, tmp_path: Path) -> None:
    gate, log = tmp_path / "gate", tmp_path / "stand in.log"
    log.write_bytes(log_of(500))
    process = recorder(store, engine(), "--log", log, "--gate", 402, gate)
    known = started(store)
    wait_for(lambda: (store / "runs").is_dir() and len(stored(store)) == 400)
    ask = "SELECT line, t_ms FROM cycles WHERE t_ms IS NOT NULL ORDER BY line"
    before = catalog.Catalog([store]).query(ask)
    kill(process.pid)
    kill(known.engine_pid)
    process.wait()
    wait_for(lambda: not alive(known.engine_pid))
    assert before.height == 400
    assert catalog.Catalog([store]).query(ask).equals(before)
    assert catalog.Catalog([store]).runs["state"].to_list() == ["recovered"]


def test_a_kill_before_the_first_line_leaves_nothing(store: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    empty = tmp_path / "empty"
    empty.write_bytes(b"x\n")
    process = recorder(store, engine(), "--until-signal", "--signals", gate)
    known = started(store)
    kill(process.pid)
    process.wait()
    # The engine lives and has said nothing: its journal must stay.
    (said,) = mend([store])
    assert "still runs" in said
    assert journal(store) is not None
    kill(known.engine_pid)
    wait_for(lambda: not alive(known.engine_pid))
    assert mend([store]) == []
    assert marker.pending(store) == []
    assert journal(store) is None


def test_only_a_broken_recording_is_left_out(store: Path, tmp_path: Path) -> None:
    log = tmp_path / "stand in.log"
    log.write_bytes(log_of(50))
    process = recorder(store, engine(), "--log", log)
    assert process.wait(120) == 0
    marker.path_of(store, "0123456789ab").write_bytes(b"{torn")
    (said,) = mend([store])
    assert "can't be read" in said
    assert len(stored(store)) == 50


def test_two_commands_recover_one_recording_once(store: Path, tmp_path: Path) -> None:
    log = tmp_path / "stand in.log"
    log.write_bytes(log_of(2000))
    process = recorder(store, engine(), "--log", log, "--gate", 1800, tmp_path / "gate")
    known = started(store)
    size = len(b"".join(log.read_bytes().splitlines(keepends=True)[:1800]))
    wait_for(lambda: journal_size(store) == size)
    kill(process.pid)
    kill(known.engine_pid)
    process.wait()
    wait_for(lambda: not alive(known.engine_pid))
    ask = ("sql", "SELECT COUNT(*) AS n FROM cycles", "--traces", store, "--json")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    both = [tauscope(*ask, **pipes) for _ in range(2)]
    answers = [process.communicate(timeout=120) for process in both]
    assert [b'"n": 1798' in out for out, _ in answers] == [True, True]
    assert sum(b"recovered 1798 cycles" in err for _, err in answers) == 1


def test_a_child_that_outlives_the_engine_is_not_waited_for(store: Path, tmp_path: Path) -> None:
    gate, log = tmp_path / "gate", tmp_path / "stand in.log"
    log.write_bytes(log_of(500))
    script = '"$0" --log "$1" --gate 302 "$2" & exit 6'
    # The child's standard error is the journal; ours is a pipe that ends with the recorder.
    process = recorder(store, "sh", "-c", script, engine(), log, gate, stderr=subprocess.PIPE)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 6
    assert b"is still written to" in err
    assert journal(store) is not None
    gate.touch()
    wait_for(lambda: stored(store) == cycle_lines(log.read_bytes()))
    assert marker.pending(store) == []


def test_a_store_that_cannot_be_written_is_read_as_it_was(store: Path, tmp_path: Path) -> None:
    log = tmp_path / "stand in.log"
    log.write_bytes(log_of(50))
    process = recorder(store, engine(), "--log", log)
    assert process.wait(120) == 0
    marker.path_of(store, "0123456789ab").write_bytes(b"{}")
    # Even root can't open a folder for writing: as unwritable as a store gets in a test.
    (store / marker.ROOM / ".mend").unlink(missing_ok=True)
    (store / marker.ROOM / ".mend").mkdir()
    (said,) = catalog.Catalog([store]).recovered
    assert "can't be written" in said
    assert len(stored(store)) == 50
