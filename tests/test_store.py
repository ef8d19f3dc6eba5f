"""A store on disk: commits are whole, damage is named, old schemas are read, orphans go."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import polars as pl
import pytest
from conftest import Command
from frames import add_run, cycle, opened

from tauscope import metrics, places, schema, store
from tauscope.errors import Problem
from tauscope.store import read, write_parquet


def test_rows_show_only_after_the_commit(store: Path) -> None:
    writer = store_writer(store, "log")
    writer.add(schema.CYCLES, frame([cycle("bet+", run_id="log-0", cycle=0)]))
    assert opened(store).query("SELECT count(*) FROM cycles").item() == 0
    writer.commit(run("log"), schema.empty(schema.REQUESTS))
    assert opened(store).query("SELECT count(*) FROM cycles").item() == 1


def test_a_second_commit_of_the_log_replaces_the_first(store: Path) -> None:
    add_run(store, "log", [[cycle("bet+")] * 3])
    writer = store_writer(store, "log", "later")
    writer.add(schema.CYCLES, frame([cycle("fold", run_id="log-0", cycle=0)]))
    writer.commit(run("log"), schema.empty(schema.REQUESTS))
    assert opened(store).query("SELECT count(*) FROM cycles").item() == 1


def test_files_that_nothing_names_go_when_they_are_old(store: Path) -> None:
    add_run(store, "log", [[cycle("bet+")]])
    writer = store_writer(store, "log", "later")
    writer.add(schema.CYCLES, frame([cycle("fold", run_id="log-0", cycle=0)]))
    writer.commit(run("log"), schema.empty(schema.REQUESTS))
    assert store_collect(store) == []  # a reader may hold them still
    for path in (store / "cycles").glob("*.t-*.parquet"):
        os.utime(path, (time.time() - 3600,) * 2)
    assert [p.name for p in store_collect(store)] == ["log.t-00000.parquet"]
    assert opened(store).query("SELECT outcome FROM cycles").item() == "folded"


def test_files_age_from_when_they_are_no_longer_named(store: Path) -> None:
    add_run(store, "log", [[cycle("bet+")]])
    (old,) = (store / "cycles").glob("*.parquet")
    os.utime(old, (time.time() - 3600,) * 2)
    found = opened(store)
    add_run(store, "log", [[cycle("fold")]], generation="later")
    assert store_collect(store) == []
    assert found.query("SELECT outcome FROM cycles").rows() == [("all_accepted",)]


def test_answers_come_from_the_state_that_was_opened(store: Path) -> None:
    add_run(store, "log", [[cycle("bet+")]], workload="code")
    found = opened(store)
    writer = store_writer(store, "log", "later")
    writer.add(schema.CYCLES, frame([cycle("fold", run_id="log-0", cycle=0)]))
    writer.commit(run("log"), schema.empty(schema.REQUESTS))
    assert found.query("SELECT workload, outcome FROM cycles").rows() == [("code", "all_accepted")]
    assert found.query("SELECT workload FROM runs").rows() == [("code",)]
    assert opened(store).query("SELECT outcome FROM cycles").rows() == [("folded",)]


def test_a_log_that_grows_while_it_is_read_is_not_damaged(store: Path) -> None:
    """A runs file is replaced with every commit: a reader holds one state of it or another."""
    states = [
        schema.conform(
            pl.concat([run("log")] * count).with_columns(
                run_id=pl.Series([f"log-{n}" for n in range(count)])
            ),
            schema.RUNS,
        )
        for count in range(1, 40)
    ]
    path = store / "runs" / "log.parquet"
    write_parquet(states[0], path)
    over = threading.Event()

    def grow() -> None:
        while not over.is_set():
            for state in states:
                write_parquet(state, path)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        seen = [read([store]) for _ in range(400)]
    finally:
        over.set()
        writer.join()
    assert [log for contents in seen for log in contents.damaged] == []
    assert {len(contents.runs) for contents in seen} <= set(range(1, 40))
    assert len({len(contents.runs) for contents in seen}) > 1


@pytest.mark.parametrize(
    ("room", "damage"),
    # Without its runs file a log is not there, which is no damage.
    [*((room, how) for room in ("runs", "cycles", "requests") for how in ("cut", "empty", "noise")),
     ("cycles", "gone"), ("requests", "gone")],
)  # fmt: skip
def test_a_damaged_log_is_left_out_whole_and_named(store: Path, room: str, damage: str) -> None:
    add_run(store, "good", [[cycle("bet+")]], workload="code")
    add_run(store, "bad", [[cycle("fold")] * 9], workload="code")
    path = next((store / room).glob("bad*.parquet"))
    data = path.read_bytes()
    broken = {"cut": data[: len(data) // 2], "empty": b"", "noise": os.urandom(len(data))}
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(broken[damage])
    found = opened(store)
    assert found.query("SELECT count(*) FROM cycles").item() == 1
    assert [d.log_id for d in found.damaged] == ["bad"]
    assert path.name in found.damaged[0].text
    assert "import" in found.damaged[0].text


def test_files_outside_the_store_are_not_read(store: Path, tmp_path: Path) -> None:
    add_run(tmp_path / "other", "secret", [[cycle("fold")] * 9])
    add_run(store, "log", [[cycle("bet+")]])
    path = store / "runs" / "log.parquet"
    other = next((tmp_path / "other" / "cycles").glob("*.parquet"))
    rows = pl.read_parquet(path).with_columns(
        pl.lit([f"../other/cycles/{other.name}"]).alias("cycle_files")
    )
    rows.write_parquet(path)
    found = opened(store)
    assert found.query("SELECT count(*) FROM cycles").item() == 0
    assert "outside the store" in found.damaged[0].text


@pytest.mark.parametrize("room", ["runs", "cycles"])
def test_rows_that_no_importer_writes_leave_the_log_out(store: Path, room: str) -> None:
    """A store may come from anyone: a run named twice would count twice."""
    add_run(store, "log", [[cycle("bet+")]])
    (path,) = (store / room).glob("log*.parquet")
    rows = pl.read_parquet(path)
    if room == "runs":
        pl.concat([rows, rows]).write_parquet(path)
    else:
        rows.with_columns(emitted=pl.lit(-5, pl.Int32)).write_parquet(path)
    (damaged,) = opened(store).damaged
    assert {"runs": "names a run twice", "cycles": "emitted holds -5"}[room] in damaged.text


def test_what_a_killed_query_spilled_goes_with_the_next(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = {pid: tmp_path / f"tauscope-spill-{pid}-abc" for pid in (gone.pid, os.getpid(), "x")}
    for folder in left.values():
        folder.mkdir()
    opened(store)
    assert [folder.exists() for folder in left.values()] == [False, True, True]


def test_a_store_of_an_older_schema_is_read_with_nulls(store: Path) -> None:
    add_run(store, "log", [[cycle("bet+", wall_ms=9.0, margin=4.0)]], workload="code", arm="mtp1")
    later = {
        "cycles": ["margin", "wall_ms", "next_token", "extra"],
        "runs": ["experiment", "model"],
        "requests": ["output_hash"],
    }
    for room, gone in later.items():
        for path in (store / room).glob("*.parquet"):
            pl.read_parquet(path).drop(gone).write_parquet(path)
    row = metrics.table(opened(store)).row(0, named=True)
    assert row["tau"] == 2.0
    assert row["gated_fold_rate"] is None
    assert row["ms_per_token"] is None


def test_a_store_of_a_newer_schema_is_left_out_and_said(store: Path) -> None:
    add_run(store, "log", [[cycle("bet+")]])
    path = store / "runs" / "log.parquet"
    pl.read_parquet(path).with_columns(
        schema_version=pl.lit(schema.SCHEMA_VERSION + 1, pl.Int32)
    ).write_parquet(path)
    assert "newer tauscope" in opened(store).damaged[0].text


def test_several_stores_are_read_as_one_and_a_shared_log_once(tmp_path: Path) -> None:
    from tauscope import catalog

    add_run(tmp_path / "a", "log", [[cycle("bet+")]], raw_bytes=10)
    add_run(tmp_path / "b", "log", [[cycle("bet+")] * 2], raw_bytes=20)
    add_run(tmp_path / "b", "other", [[cycle("fold")]], raw_bytes=5)
    data = catalog.Catalog([tmp_path / "a", tmp_path / "b"])
    counts = dict(data.query("SELECT run_id, count(*) FROM cycles GROUP BY 1").iter_rows())
    assert counts == {"log-0": 2, "other-0": 1}


def test_the_bundled_traces_are_the_last_resort(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TAUSCOPE_TRACES", raising=False)
    monkeypatch.setattr(places, "clone", lambda: tmp_path)
    with pytest.raises(Problem, match="no store found"):
        places.to_read()
    (tmp_path / "traces" / "sample" / "runs").mkdir(parents=True)
    assert places.to_read() == ([tmp_path / "traces" / "sample"], "the bundled traces")
    (tmp_path / "traces" / "store" / "runs").mkdir(parents=True)
    assert places.to_read()[0] == [tmp_path / "traces" / "store"]
    monkeypatch.setenv("TAUSCOPE_TRACES", str(tmp_path / "traces" / "sample"))
    assert places.to_read()[0] == [tmp_path / "traces" / "sample"]
    assert places.to_read([tmp_path / "traces" / "store"])[1] == "--traces"


def test_a_store_that_is_a_file_or_missing_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("x")
    for path, words in (("file", "no such store"), ("nothing", "no such store"),
                        ("folder", "is a folder but no store")):  # fmt: skip
        with pytest.raises(Problem, match=words):
            places.to_read([tmp_path / path])
    with pytest.raises(Problem, match="is a file"):
        places.to_write(tmp_path / "file")


def store_writer(root: Path, log: str, generation: str = "first") -> store.LogWriter:
    return store.LogWriter(root, log, generation)


def store_collect(root: Path) -> list[Path]:
    return store.collect_orphans(root)


def frame(rows: list[dict]) -> pl.DataFrame:
    kinds = schema.CYCLES.polars()
    return pl.DataFrame(rows, schema={n: t for n, t in kinds.items() if n in rows[0]})


def run(log: str) -> pl.DataFrame:
    return pl.DataFrame({"run_id": [f"{log}-0"], "log_id": [log], "simulated": [False]})


def damage_pages(path: Path) -> None:
    """Leave the footer as it is, and make noise of everything before it."""
    data = bytearray(path.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little") + 8
    data[4:-footer] = bytes((n * 37 + 11) % 251 for n in range(len(data) - footer - 4))
    path.write_bytes(data)


@pytest.mark.parametrize("room", ["cycles", "requests", "refused"])
def test_damage_behind_a_sound_footer_leaves_that_log_out(store: Path, room: str) -> None:
    add_run(store, "good", [[cycle("bet+")]], workload="code")
    add_run(store, "bad", [[cycle("fold")] * 9], workload="code")
    if room == "refused":
        writer = store_writer(store, "bad")
        kinds = schema.REFUSED.polars()
        row = {"run_id": "bad-0", "cycle": 1, "reason": "because"}
        writer.add(schema.REFUSED, pl.DataFrame([row], schema={n: kinds[n] for n in row}))
        writer.commit(run("bad"), schema.empty(schema.REQUESTS))
    damage_pages(next((store / room).glob("bad*.parquet")))
    found = opened(store)
    assert found.damaged == []
    assert found.query(f"SELECT * FROM {room}").height == (0 if room == "refused" else 1)
    assert [d.log_id for d in found.damaged] == ["bad"]
    assert "import" in found.damaged[0].text
    assert opened(store).query("SELECT count(*) FROM runs").item() == 1


def test_a_command_whose_log_is_damaged_inside_answers_without_it(
    command: Command, store: Path
) -> None:
    add_run(store, "good", [[cycle("bet+")]], workload="code", arm="mtp1")
    add_run(store, "bad", [[cycle("fold")] * 9], workload="code", arm="mtp1")
    path = next((store / "cycles").glob("bad*.parquet"))
    damage_pages(path)
    code, out, err = command("metrics", "--json", "--traces", store)
    assert code == 0
    assert [row["cycles"] for row in json.loads(out)] == [1]
    assert err.count(path.name) == 1
    code, out, err = command("sql", "SELECT * FROM cycles", "--json", "--traces", store)
    assert (code, len(json.loads(out))) == (0, 1)
    assert err.count(path.name) == 1


@pytest.mark.parametrize(
    ("room", "change"),
    [
        ("runs", {"schema_version": pl.lit("one")}),
        ("runs", {"log_id": pl.lit("../../other/runs/log")}),
        ("runs", {"raw_file": pl.lit("../secret.zst")}),
        ("runs", {"raw_file": pl.lit("/etc/passwd")}),
        ("cycles", {"emitted": pl.lit("two")}),
        ("cycles", {"emitted": pl.struct(a=1)}),
        ("requests", {"flags": pl.lit(3)}),
    ],
)
def test_columns_that_cannot_be_what_they_are_called_leave_the_log_out(
    store: Path, room: str, change: dict[str, pl.Expr]
) -> None:
    add_run(store, "good", [[cycle("bet+")]])
    add_run(store, "log", [[cycle("fold")] * 3])
    path = next((store / room).glob("log*.parquet"))
    pl.read_parquet(path).with_columns(**change).write_parquet(path)
    found = opened(store)
    assert [d.log_id for d in found.damaged] == ["log"]
    assert path.name in found.damaged[0].text
    assert found.query("SELECT count(*) FROM cycles").item() == 1


def test_a_pipe_among_the_files_is_not_waited_for(store: Path) -> None:
    add_run(store, "good", [[cycle("bet+")]])
    os.mkfifo(store / "runs" / "pipe.parquet")
    (store / "runs" / "away.parquet").symlink_to("/etc/hostname")
    found = opened(store)
    assert sorted(d.log_id for d in found.damaged) == ["away", "pipe"]
    assert found.query("SELECT count(*) FROM cycles").item() == 1
