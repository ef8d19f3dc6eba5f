"""A recording is there to be asked while the engine runs, and is never seen twice or half."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from standin import (
    cycle_lines,
    engine,
    journal_size,
    log_of,
    recorder,
    rows,
    tauscope,
    wait_for,
)

from tauscope import catalog
from tauscope import store as stores
from tauscope.errors import Problem
from tauscope.ingest.importer import Labels, import_log
from tauscope.ingest.source import Log
from tauscope.labels import label
from tauscope.rawlines import behind
from tauscope.record import marker


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "stand in.log"
    path.write_bytes(log_of(3000))
    return path


def counted(store: Path) -> int:
    if not (store / "runs").is_dir():
        return 0
    return catalog.Catalog([store]).query("SELECT COUNT(*) AS n FROM cycles")["n"][0]


def test_a_thousand_rows_before_the_engine_ends(store: Path, log: Path, tmp_path: Path) -> None:
    """With the recorder's own times, as users run it: nothing is hurried here."""
    gate = tmp_path / "gate"
    process = tauscope(
        "record", "--traces", store, "--workload", "code", "--arm", "mtp2", "--",
        engine(), "--log", log, "--gate", 1500, gate,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert wait_for(lambda: counted(store)) >= 1000
    data = catalog.Catalog([store])
    states = data.query("SELECT DISTINCT state, workload, arm FROM runs")
    assert states.rows() == [("recording", "code", "mtp2")]
    # The engine waits before line 1501, so it hasn't ended: lines 3 to 1500 are cycles.
    assert wait_for(lambda: counted(store) >= 1498)
    assert process.poll() is None
    (run,) = data.runs["run_id"]
    assert behind(data, f"{run}:7").rows() == [(10, log.read_text().splitlines()[9])]
    gate.touch()
    assert process.wait(120) == 0
    assert rows(store)["cycles"]["line"].to_list() == cycle_lines(log.read_bytes())
    assert catalog.Catalog([store]).runs["state"].to_list() == ["complete"]
    assert marker.pending(store) == []


def test_labels_and_imports_wait_for_the_end(store: Path, log: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    process = recorder(store, engine(), "--log", log, "--gate", 100, gate)
    wait_for(lambda: counted(store))
    (run,) = catalog.Catalog([store]).runs["run_id"]
    with pytest.raises(Problem, match="is still being recorded"):
        label(store, [run], Labels(workload="chat"))
    with pytest.raises(Problem, match="is still being recorded"):
        import_log(Log("stand in.log", (log,)), store)
    gate.touch()
    assert process.wait(120) == 0
    label(store, [run], Labels(workload="chat"))
    assert catalog.Catalog([store]).runs["workload"].to_list() == ["chat"]


def test_readers_see_each_cycle_once_while_parts_merge(store: Path, log: Path) -> None:
    """Every answer is the first so many cycles of the log, and answers only grow."""
    process = recorder(store, engine(), "--log", log, "--rate", 1500, commit_s=0.02, fan_in=2,
                       roll_bytes=20_000)  # fmt: skip
    truth = cycle_lines(log.read_bytes())
    seen = 0
    wait_for(lambda: (store / "runs").is_dir())
    while process.poll() is None:
        lines = catalog.Catalog([store]).query("SELECT line FROM cycles ORDER BY line")["line"]
        assert lines.to_list() == truth[: len(lines)]
        assert len(lines) >= seen
        seen = len(lines)
    assert counted(store) == 3000


def test_two_recorders_on_one_store(store: Path, log: Path) -> None:
    both = [recorder(store, engine(), "--log", log, "--rate", 3000) for _ in range(2)]
    assert [process.wait(120) for process in both] == [0, 0]
    lines = catalog.Catalog([store]).query(
        "SELECT log_id, list(line ORDER BY line) AS lines FROM cycles GROUP BY log_id"
    )
    truth = cycle_lines(log.read_bytes())
    assert lines["lines"].to_list() == [truth, truth]


def test_old_parts_are_named_by_no_run_and_go_when_they_are_old(store: Path, log: Path) -> None:
    process = recorder(store, engine(), "--log", log, "--rate", 6000, fan_in=2)
    assert process.wait(120) == 0
    named = {Path(name).name for name in stores.read([store]).files("cycle_files")}
    assert len(named) == 1
    stores.collect_orphans(store, age_s=-1)
    assert {path.name for path in (store / "cycles").iterdir()} == named
    assert counted(store) == 3000


def test_a_rolled_journal_loses_no_byte_and_shows_its_lines(store: Path, log: Path) -> None:
    """The journal is packed and hollowed out while the engine holds it open."""
    gate = log.with_name("gate")
    process = recorder(store, engine(), "--log", log, "--rate", 8000, "--gate", 3000, gate,
                       roll_bytes=8192)  # fmt: skip
    size = sum(map(len, log.read_bytes().splitlines(keepends=True)[:3000]))
    wait_for(lambda: journal_size(store) == size)
    wait_for(lambda: counted(store) == 2998)
    data = catalog.Catalog([store])
    (run,) = data.runs["run_id"]
    text = log.read_text().splitlines()
    for cycle in (0, 1500, 2990):
        assert behind(data, f"{run}:{cycle}")["text"].to_list() == [text[cycle + 2]]
    gate.touch()
    assert process.wait(120) == 0
    (kept,) = (store / "raw").iterdir()
    assert b"".join(Log("x", (kept,)).blocks()) == log.read_bytes()


def test_watching_a_store_and_a_log(store: Path, log: Path, tmp_path: Path, command) -> None:
    gate = tmp_path / "gate"
    process = recorder(store, engine(), "--log", log, "--gate", 1002, gate)
    wait_for(lambda: counted(store) == 1000)
    code, out, _ = command("watch", store)
    assert code == 0
    # 5 lines a round: a miss (1), two all accepted (3 each), a fold (2), a reject (2): 11 of 5.
    assert "1000" in out and "2.200" in out and "66.7 %" in out and "20.0 %" in out
    gate.touch()
    assert process.wait(120) == 0
    code, out, _ = command("watch", log)
    assert code == 0
    assert "3000" in out and "2.200" in out


def test_a_watch_needs_a_log(command, tmp_path: Path) -> None:
    code, _, err = command("watch", tmp_path / "none.log")
    assert code == 1
    assert err.endswith("none.log: can't be read (No such file or directory); name a log\n")
