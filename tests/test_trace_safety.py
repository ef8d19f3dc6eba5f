"""Whatever happens to the trace file, the engine goes on; threads, forks, two processes work."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from native_build import HERE, SANITIZE, build

from tauscope.trace import Trace


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(HERE / "native" / "trouble.c", tmp_path_factory.mktemp("c") / "run", *SANITIZE)


def play(program: Path, trace: str | Path | None, *args: str, **more) -> str:
    """Run the engine, which must end normally; what it says at the end."""
    environment = {k: v for k, v in os.environ.items() if k != "TAUSCOPE_TRACE"}
    if trace is not None:
        environment["TAUSCOPE_TRACE"] = str(trace)
    done = subprocess.run(
        [program, *args], env=environment, capture_output=True, text=True, timeout=60, **more
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.strip()


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_good_file_holds_every_record(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "跑 分.ndjson"
    assert play(program, path, "plain", "5000") == "done on"
    assert [r["kind"] for r in lines(path)] == ["run", "request", *["cycle"] * 5000, "end"]
    assert [r["pos"] for r in lines(path) if r["kind"] == "cycle"] == list(range(5000))


def test_without_the_variable_nothing_happens(program: Path, tmp_path: Path) -> None:
    assert play(program, None, "plain", "10", cwd=tmp_path) == "done off"
    assert play(program, "", "plain", "10", cwd=tmp_path) == "done off"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_a_missing_folder_and_a_pipe_leave_it_off(program: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "none" / "x", tmp_path / "pipe", "/proc/version/x"):
        assert play(program, path, "plain", "2000") == "done off"
        assert Trace(path).on is False


def test_a_pipe_with_a_reader_is_refused_too(program: Path, tmp_path: Path) -> None:
    """Its reader could go away, and the signal would take the engine along."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert play(program, tmp_path / "pipe", "plain", "10") == "done off"
        assert Trace(tmp_path / "pipe").on is False
        assert os.read(reader, 10) == b""
    finally:
        os.close(reader)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_a_device_that_is_always_full(program: Path) -> None:
    assert play(program, "/dev/full", "plain", "20000") == "done off"
    trace = Trace("/dev/full")
    assert trace.on is False
    trace.record(trace.begin(), emitted=1)
    trace.close()


def test_a_disk_that_fills_while_the_engine_runs(program: Path, tmp_path: Path) -> None:
    if not shutil.which("unshare"):
        pytest.skip("no unshare command, so no small disk to fill")
    if subprocess.run(["unshare", "-rUm", "true"], capture_output=True).returncode:
        pytest.skip("this system allows no user namespaces, so no small disk to fill")
    disk = tmp_path / "disk"
    disk.mkdir()
    shell = (
        'mount -t tmpfs -o size=64k none "$1" && TAUSCOPE_TRACE="$1/t" "$2" plain 20000 '
        '&& cp "$1/t" "$3"'
    )
    done = subprocess.run(
        ["unshare", "-rUm", "sh", "-c", shell, "sh", disk, program, tmp_path / "kept"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and done.stdout == "done off\n", done.stderr
    kept = (tmp_path / "kept").read_bytes()
    assert len(kept) == 64 * 1024
    for line in kept.split(b"\n")[:-1]:  # all but the torn last one
        json.loads(line)


def test_a_size_limit_ends_the_trace_and_not_the_engine(program: Path, tmp_path: Path) -> None:
    """The limit's signal kills a process that writes past it."""
    path = tmp_path / "t.ndjson"
    limit = 10_000
    said = play(
        program,
        path,
        "plain",
        "3000",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert said == "done off"
    assert [r["kind"] for r in lines(path)] == ["run"]


def test_a_closed_descriptor_and_one_that_became_another_file(
    program: Path, tmp_path: Path
) -> None:
    path, other = tmp_path / "t.ndjson", tmp_path / "the user's own file"
    assert play(program, path, "closed", "20") == "done off"
    assert play(program, path, "replaced", "20", str(other)) == "done off"
    assert other.read_bytes() == b""
    assert [r["kind"] for r in lines(path)] == ["run", "run"]


def test_the_same_in_python(tmp_path: Path) -> None:
    path, other = tmp_path / "t.ndjson", tmp_path / "other"
    trace = Trace(path)
    os.close(trace._fd)
    taken = os.open(other, os.O_WRONLY | os.O_CREAT)
    try:
        assert taken == trace._fd
        trace.end(trace.begin())
        assert trace.on is False
        trace.close()
        os.fstat(taken)  # still open
        assert other.read_bytes() == b""
    finally:
        os.close(taken)


def test_a_python_write_error_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    trace = Trace(tmp_path / "t.ndjson")
    request = trace.begin()
    monkeypatch.setattr(os, "write", full)
    trace.end(request)
    assert trace.on is False
    monkeypatch.undo()
    trace.record(request, emitted=1)
    trace.close()
    assert [r["kind"] for r in lines(tmp_path / "t.ndjson")] == ["run"]


def whole_requests(records: list[dict], run: str, count: int) -> int:
    """Requests of `run` whose cycles are all there, in order; fails on any other."""
    mine = [r for r in records if r["run"] == run]
    numbers = {r["request"] for r in mine if r["kind"] == "request"}
    for number in numbers:
        one = [r for r in mine if r.get("request") == number]
        assert [r["kind"] for r in one] == ["request", *["cycle"] * count, "end"]
        assert [r["pos"] for r in one[1:-1]] == list(range(count))
        assert one[-1]["generated_tokens"] == count
    return len(numbers)


def test_threads_share_a_trace(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    assert play(program, path, "threads", "3000") == "done on"
    records = lines(path)
    assert len({r["run"] for r in records}) == 1
    assert whole_requests(records, records[0]["run"], 3000) == 4


def test_threads_are_clean_under_the_thread_sanitizer(tmp_path: Path) -> None:
    program = build(HERE / "native" / "trouble.c", tmp_path / "run", "-g", "-fsanitize=thread")
    assert play(program, tmp_path / "t.ndjson", "threads", "300") == "done on"


def test_threads_share_a_python_trace(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "t.ndjson")

    def generate() -> None:
        request = trace.begin()
        for i in range(200):
            trace.record(request, pos=i, emitted=1)
            trace.token(request, i)
        trace.end(request)

    threads = [threading.Thread(target=generate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trace.close()
    records = lines(tmp_path / "t.ndjson")
    assert whole_requests(records, records[0]["run"], 200) == 4


def test_a_forked_child_is_a_run_of_its_own(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    assert play(program, path, "fork", "50") == "done on"
    records = lines(path)
    parent, *rest = dict.fromkeys(r["run"] for r in records if r["kind"] == "run")
    (child,) = rest  # the silent child left no line
    header = next(r for r in records if r["run"] == child)
    assert header["kind"] == "run" and child == f"{parent}.{header['pid']}"
    assert whole_requests(records, child, 50) == 1
    mine = [r for r in records if r["run"] == parent]
    assert Counter(r["kind"] for r in mine) == {"run": 1, "request": 1, "cycle": 51, "end": 1}


def test_forks_while_threads_write(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    assert play(program, path, "busyfork", "2000") == "done on"
    records = lines(path)
    parent = records[0]["run"]
    children = {r["run"] for r in records} - {parent}
    assert len(children) == 20
    assert all(whole_requests(records, child, 1) == 1 for child in children)
    assert whole_requests(records, parent, 2000) == 3


def test_a_forked_python_child_is_a_run_of_its_own(tmp_path: Path) -> None:
    code = """
import os, sys
from tauscope.trace import Trace
trace = Trace(sys.argv[1])
request = trace.begin()
trace.record(request, emitted=1, pos=0)
trace._lock.acquire()  # as another thread would hold it at this moment
child = os.fork()
if child == 0:
    trace.end(trace.begin(), generated_tokens=0)
    os._exit(0)
trace._lock.release()
os.waitpid(child, 0)
trace.end(request, generated_tokens=1)
trace.close()
"""
    path = tmp_path / "t.ndjson"
    subprocess.run([sys.executable, "-c", code, path], check=True, timeout=60)
    kinds = [(r["run"].count("."), r["kind"]) for r in lines(path)]
    assert kinds == [
        (0, "run"),
        (1, "run"),
        (1, "request"),
        (1, "end"),
        (0, "request"),
        (0, "cycle"),
        (0, "end"),
    ]


def test_processes_append_to_one_file(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    environment = os.environ | {"TAUSCOPE_TRACE": str(path)}
    running = [
        subprocess.Popen([program, "plain", "8000"], env=environment, stdout=subprocess.DEVNULL)
        for _ in range(3)
    ]
    assert [process.wait(timeout=60) for process in running] == [0, 0, 0]
    records = lines(path)
    runs = {r["run"] for r in records}
    assert len(runs) == 3
    assert all(whole_requests(records, run, 8000) == 1 for run in runs)
