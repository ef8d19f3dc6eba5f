"""Logs go in: told apart, counted, kept as they were; bad ones are one line."""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path

import polars as pl
import pytest
import zstandard
from conftest import Command
from frames import opened
from logs import ALL, FOLD, MISS, SPEED, START, TEN, TEN_DARK, served

from tauscope import labels, metrics, rawlines
from tauscope.errors import Problem
from tauscope.ingest import source
from tauscope.ingest.importer import Imported, Labels, import_log


def put(root: Path, path: Path, **options: object) -> Imported:
    labels = Labels(**{k: options.pop(k) for k in ("workload", "arm", "prompt_id") if k in options})
    (log,) = source.find([path])
    return import_log(log, root, labels, **options)


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def cycles(root: Path) -> int:
    return opened(root).query("SELECT count(*) FROM cycles").item()


def test_ten_cycles_by_hand(store: Path, tmp_path: Path) -> None:
    put(store, written(tmp_path, "run.log", TEN), workload="code", arm="mtp2", tokens=17)
    row = metrics.table(opened(store)).row(0, named=True)
    assert row["tau"] == pytest.approx(1.7)
    assert row["committed_acceptance"] == 0.5
    assert row["fold_rate"] == 0.1
    assert (row["draft_hit_rate_num"], row["draft_hit_rate_den"]) == (7, 14)
    assert (row["draft_yield_num"], row["draft_yield_den"]) == (7, 15)
    assert row["unattributed_tokens"] == 0


def test_the_same_ten_cycles_with_their_misses_in_the_dark(store: Path, tmp_path: Path) -> None:
    put(store, written(tmp_path, "run.log", TEN_DARK), workload="code", arm="mtp2", tokens=17)
    row = metrics.table(opened(store)).row(0, named=True)
    assert row["tau"] == pytest.approx(1.7)
    assert row["unlogged"] == 5
    assert row["draft_hit_rate"] is None
    assert row["committed_acceptance"] == 0.5


def test_a_limit_is_no_count(store: Path, tmp_path: Path) -> None:
    put(store, written(tmp_path, "run.log", TEN_DARK), max_tokens=17)
    row = metrics.table(opened(store)).row(0, named=True)
    assert (row["cycles"], row["unlogged"]) == (5, 0)
    assert row["unattributed_tokens"] is None


def test_the_log_is_kept_as_it_was_and_every_row_has_its_line(store: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "run.log", TEN)
    before = path.read_bytes()
    put(store, path)
    data = opened(store)
    raw = store / data.query("SELECT raw_file FROM runs").item()
    assert zstandard.ZstdDecompressor().stream_reader(raw.open("rb")).read() == before
    assert path.read_bytes() == before
    lines = before.decode().splitlines()
    for run, number, line, outcome in data.query(
        "SELECT run_id, cycle, line, outcome FROM cycles"
    ).iter_rows():
        shown = rawlines.behind(data, f"{run}:{number}")
        assert shown["text"].to_list()[-1] == lines[line - 1]
        assert ("miss" in lines[line - 1]) == (outcome == "missed")


def test_the_same_bytes_again_change_nothing(store: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "run.log", TEN)
    put(store, path, workload="code")
    before = {p: p.read_bytes() for p in store.rglob("*.parquet")}
    again = put(store, path)
    assert again.status == "unchanged"
    assert put(store, written(tmp_path, "copy.log", TEN)).status == "unchanged"
    assert {p: p.read_bytes() for p in store.rglob("*.parquet")} == before
    assert again.summary()["cycles"] == 10


def test_the_same_bytes_with_other_labels_relabel(store: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "run.log", TEN)
    put(store, path, workload="code", arm="mtp2")
    assert put(store, path, workload="chat").status == "relabelled"
    rows = opened(store).query("SELECT DISTINCT workload, arm FROM cycles")
    assert rows.rows() == [("chat", "mtp2")]
    assert cycles(store) == 10


def test_the_same_bytes_with_a_count_are_counted_again(store: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "run.log", TEN_DARK)
    put(store, path, workload="code")
    assert cycles(store) == 5
    assert put(store, path, tokens=17).status == "recounted"
    assert cycles(store) == 10
    assert put(store, path).status == "unchanged"  # the count stays
    assert cycles(store) == 10
    assert opened(store).query("SELECT DISTINCT workload FROM cycles").item() == "code"


def test_a_log_that_has_grown_is_continued(store: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "run.log", TEN)
    first = put(store, path, workload="code", arm="mtp2")
    path.write_text(TEN + START + ALL + SPEED)
    grown = put(store, path)
    assert (grown.status, grown.log_id) == ("continued", first.log_id)
    rows = opened(store).query(
        "SELECT run_id, workload, count(*) FROM cycles GROUP BY ALL ORDER BY 1"
    )
    assert rows.rows() == [(f"{first.log_id}-0", "code", 10), (f"{first.log_id}-1", "code", 1)]
    assert put(store, written(tmp_path, "old-copy.log", TEN)).status == "unchanged"
    assert cycles(store) == 11


def test_a_cut_last_line_is_not_doubled_when_the_log_grows(store: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "run.log", START + ALL + FOLD[:60])
    put(store, path)
    assert cycles(store) == 1
    path.write_text(START + ALL + FOLD + MISS)
    put(store, path)
    assert cycles(store) == 3


def test_several_runs_in_one_file(store: Path, tmp_path: Path) -> None:
    done = put(store, written(tmp_path, "all.log", TEN + TEN + START + SPEED))
    assert done.runs.height == 3
    counts = opened(store).query(
        "SELECT run_index, count(c.cycle) FROM runs LEFT JOIN cycles AS c USING (run_id) "
        "GROUP BY ALL ORDER BY 1"
    )
    assert counts.rows() == [(0, 10), (1, 10), (2, 0)]


@pytest.mark.parametrize("pack", [gzip.compress, lambda b: zstandard.ZstdCompressor().compress(b)])
def test_compressed_logs_are_the_same_logs(store: Path, tmp_path: Path, pack) -> None:
    put(store, written(tmp_path, "run.log", TEN))
    assert put(store, written(tmp_path, "run.log.gz", pack(TEN.encode()))).status == "unchanged"


def test_rotated_parts_are_one_log(store: Path, tmp_path: Path) -> None:
    lines = TEN.splitlines(keepends=True)
    old = written(tmp_path, "run.log.2.gz", gzip.compress("".join(lines[:4]).encode()))
    middle = written(tmp_path, "run.log.1", "".join(lines[4:8])[:-7])
    new = written(tmp_path, "run.log", "".join(lines[4:8])[-7:] + "".join(lines[8:]))
    logs = source.find([new, old, middle])
    assert [log.parts for log in logs] == [(old, middle, new)]
    import_log(logs[0], store)
    assert cycles(store) == 10
    assert put(store, written(tmp_path, "whole.log", TEN)).status == "unchanged"


def test_dated_rotation_and_files_that_only_look_alike(tmp_path: Path) -> None:
    names = ["s.log-20260801", "s.log", "s.log-20260802.gz", "run2.log", "run3.log", "v1.2.log"]
    for name in names:
        written(tmp_path, name, "x")
    logs = source.find([tmp_path / name for name in names])
    assert sorted([part.name for part in log.parts] for log in logs) == [
        ["run2.log"], ["run3.log"],
        ["s.log-20260801", "s.log-20260802.gz", "s.log"], ["v1.2.log"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no speculation, speed or request line found; was DS4_MTP_TIMING=1 set?"),
        ("hello\nworld\n", "no speculation, speed or request line found"),
        (START, "no speculation, speed or request line found"),
        ("ds4: mtp timing micro drafted=two\n", "1 lines look like speculation but none fits"),
    ],
)
def test_a_log_that_says_nothing_is_bad_input(
    store: Path, tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(Problem, match=r"run\.log: ") as caught:
        put(store, written(tmp_path, "run.log", text))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list(store.rglob("*.parquet"))
    assert not list(store.rglob(".*.part"))


def test_speed_alone_is_a_good_import(store: Path, tmp_path: Path) -> None:
    put(store, written(tmp_path, "off.log", START + SPEED), workload="code", arm="off")
    row = metrics.table(opened(store)).row(0, named=True)
    assert row["tokens_per_s"] == pytest.approx(40.0)
    assert row["baseline_drafts"] is True


def test_one_count_for_several_requests_is_refused(store: Path, tmp_path: Path) -> None:
    text = served(10, "", 3, ALL) + served(20, "", 3, ALL)
    with pytest.raises(Problem, match="--tokens is the count of one request"):
        put(store, written(tmp_path, "server.log", text), tokens=6)


@pytest.mark.parametrize("data", [b"\x1f\x8b\x08broken", gzip.compress(TEN.encode())[:-20],
                                  b"\x28\xb5\x2f\xfdbroken"])  # fmt: skip
def test_broken_compression_is_one_line(store: Path, tmp_path: Path, data: bytes) -> None:
    with pytest.raises(Problem, match="can't be read"):
        put(store, written(tmp_path, "run.log.gz", data))
    assert not list(store.rglob("*.parquet"))


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="no such file"):
        source.find([tmp_path / "nothing*.log"])
    with pytest.raises(Problem, match="is a folder"):
        source.find([tmp_path])


def test_a_row_that_breaks_a_rule_is_kept_apart_with_its_reason(
    store: Path, tmp_path: Path
) -> None:
    broken = ALL.replace("committed=2", "committed=5")
    done = put(store, written(tmp_path, "run.log", START + ALL + broken))
    assert done.summary()["refused_rows"] == 1
    row = opened(store).query("SELECT line, reason FROM refused").row(0)
    assert row[0] == 4
    assert row[1]
    assert cycles(store) == 1


def test_the_command_tells_and_goes_on_past_a_bad_log(
    store: Path, tmp_path: Path, command: Command
) -> None:
    good = written(tmp_path, "good.log", TEN)
    bad = written(tmp_path, "bad\x1b[31m.log", "nothing")
    code, out, err = command("import", str(bad), str(good), "--json", "--traces", str(store))
    told = json.loads(out)
    assert code == 1
    assert [log["cycles"] for log in told["logs"]] == [10]
    assert "no speculation" in told["failed"][0]
    assert "\x1b" not in err
    assert "Traceback" not in err


def test_a_log_on_standard_input(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    class Stdin:
        buffer = io.BytesIO(TEN.encode())

    monkeypatch.setattr(sys, "stdin", Stdin)
    path = source.spool_stdin(store / "raw", ".stdin.1.part")
    done = import_log(source.Log("-", (path,)), store)
    assert done.summary()["cycles"] == 10


TRACE = (
    '{"tauscope":1,"kind":"run","run":"r1","t_ms":0.000,"engine":"test"}\n'
    '{"tauscope":1,"kind":"cycle","run":"r1","t_ms":50.000,"drafted":2,"free_checked":1,'
    '"free_accepted":1,"verified":1,"accepted":1,"emitted":3,"target_forwards":2,'
    '"draft_ms":2.200,"snapshot_ms":0.100,"verify_ms":40.000,"wall_ms":70.000}\n'
)


def test_a_log_beside_a_native_trace_is_a_check_and_not_counted(
    store: Path, tmp_path: Path
) -> None:
    trace = written(tmp_path, "trace.ndjson", TRACE)
    same = source.find([written(tmp_path, "same.log", ALL)])[0]
    other = source.find([written(tmp_path, "other.log", ALL.replace("verify=40", "verify=55"))])[0]
    agreed = put(store, trace, beside=same).summary()
    assert agreed["log_check"] == ["0 disagreements over 1 cycles of the log"]
    told = put(store, trace, beside=other).summary()["log_check"]
    assert told[0] == "1 disagreements over 1 cycles of the log"
    assert "verify_ms 40" in told[1]
    assert cycles(store) == 1


def test_a_check_needs_a_native_trace(store: Path, tmp_path: Path) -> None:
    log = source.find([written(tmp_path, "same.log", ALL)])[0]
    with pytest.raises(Problem, match="--beside needs a native trace"):
        put(store, written(tmp_path, "run.log", TEN), beside=log)


def noise(path: Path) -> None:
    """Leave the Parquet footer as it is, and make noise of everything before it."""
    data = bytearray(path.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little") + 8
    data[4:-footer] = bytes((n * 37 + 11) % 251 for n in range(len(data) - footer - 4))
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50])


@pytest.mark.parametrize("damage", [noise, cut, Path.unlink])
@pytest.mark.parametrize("room", ["cycles", "requests"])
@pytest.mark.parametrize("again", ["kept", "log"])
def test_the_log_again_mends_damaged_rows_and_keeps_the_labels(
    store: Path, tmp_path: Path, damage, room: str, again: str
) -> None:
    path = written(tmp_path, "run.log", TEN)
    put(store, path)
    path.write_text(TEN + START + ALL + SPEED)
    log_id = put(store, path, workload="code", arm="mtp2", prompt_id="p1").log_id
    put(store, written(tmp_path, "other.log", START + FOLD + SPEED), workload="chat")
    column = {"cycles": "cycle_files", "requests": "request_files"}[room]
    damage(store / pl.read_parquet(store / "runs" / f"{log_id}.parquet")[column][0][0])
    kept = store / "raw" / f"{log_id}.log.zst"
    done = put(store, kept if again == "kept" else path)
    assert (done.status, done.log_id) == ("restored", log_id)
    data = opened(store)
    assert data.damaged == []
    rows = data.query("SELECT c.workload, c.arm, c.prompt_id, r.source, count(*) "
                      "FROM cycles AS c JOIN runs AS r USING (run_id) "
                      "GROUP BY ALL ORDER BY 1")  # fmt: skip
    assert rows.rows() == [("chat", "unlabelled", None, "other.log", 1),
                           ("code", "mtp2", "p1", "run.log", 11)]  # fmt: skip
    assert put(store, path).status == "unchanged"


def test_a_label_given_while_a_grown_log_is_read_is_kept(store: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "run.log", TEN)
    log_id = put(store, path, workload="code").log_id
    path.write_text(TEN + START + ALL + SPEED)
    told = []

    def meanwhile(_: int) -> None:
        told.append(labels.label(store, [log_id], Labels(workload="chat", arm="off")))

    import_log(source.find([path])[0], store, progress=meanwhile)
    assert told
    rows = opened(store).query("SELECT DISTINCT workload, arm FROM runs")
    assert rows.rows() == [("chat", "off")]


def test_the_same_bytes_under_another_name_say_whose_labels_they_change(
    store: Path, tmp_path: Path, command: Command
) -> None:
    put(store, written(tmp_path, "one.log", TEN), workload="code", arm="mtp2")
    other = written(tmp_path, "two.log", TEN)
    code, out, err = command("import", other, "--arm", "off", "--json", "--traces", store)
    assert (code, json.loads(out)["logs"][0]["status"]) == (0, "relabelled")
    assert err.count("\n") == 1
    assert "two.log: the same bytes are in the store already as one.log (arm mtp2)" in err
    # The log under its own name is relabelled without a word.
    assert command("import", tmp_path / "one.log", "--arm", "x", "--traces", store)[2] == ""


def test_numbers_behind_a_name_are_ages_only_of_what_is_a_log(
    store: Path, tmp_path: Path, command: Command
) -> None:
    def parts(*names: str) -> list[list[str]]:
        found = source.find([written(tmp_path, name, TEN) for name in names])
        return sorted([part.name for part in log.parts] for log in found)

    assert parts("bench.1", "bench.2") == [["bench.1"], ["bench.2"]]
    assert parts("day-20260801", "day-20260802") == [["day-20260801"], ["day-20260802"]]
    assert parts("old.1", "old") == [["old.1", "old"]]
    assert parts("server.log.1", "server.log.2.gz") == [["server.log.2.gz", "server.log.1"]]
    assert parts("run.err.1", "run.err.2") == [["run.err.2", "run.err.1"]]
    _, out, _ = command("import", tmp_path / "old.1", tmp_path / "old", "--traces", store)
    assert "2 read as one, oldest first: old.1, old" in out


@pytest.mark.parametrize(
    "words",
    [("--arm", ""), ("--workload", " "), ("--prompt-id", "\t"), ("--tokens", 1 << 63),
     ("--max-tokens", 10**12 + 1), ("--tokens", 0)],
)  # fmt: skip
def test_a_label_or_count_that_says_nothing_is_wrong_use(
    store: Path, tmp_path: Path, command: Command, words: tuple[object, ...]
) -> None:
    code, _, err = command("import", written(tmp_path, "a.log", TEN), *words, "--traces", store)
    assert code == 2
    assert str(words[0]) in err
    assert "Traceback" not in err
    assert not store.exists()


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95, 0.999])
def test_a_packed_log_that_was_cut_short_is_refused(
    store: Path, tmp_path: Path, share: float
) -> None:
    """Half a log would pass for a whole one."""
    noise = random.Random(7).randbytes(1_000_000).hex()
    lines = "".join(f"{noise[at : at + 76]}\n" for at in range(0, len(noise), 76))
    data = zstandard.compress(TEN.encode()) + zstandard.compress((lines + TEN).encode())
    with pytest.raises(Problem, match=r"can't be read \(it ends in the middle"):
        put(store, written(tmp_path, "run.log.zst", data[: int(len(data) * share)]))
    put(store, written(tmp_path, "run.log.zst", data))
    assert cycles(store) == 20
