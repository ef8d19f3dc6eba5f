"""To its user and to itself an engine that is recorded is an engine that isn't."""

from __future__ import annotations

import hashlib
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from logs import TEN
from standin import engine, log_of, rows, tauscope, wait_for

from tauscope import catalog
from tauscope.record.engine import SWITCHES, environment


def record(store: Path, *words: object, **options: object) -> subprocess.Popen[bytes]:
    return tauscope("record", "--traces", store, "--", engine(), *words, **options)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "ten.log"
    path.write_text(TEN)
    return path


def test_input_output_errors_and_exit_code(store: Path, log: Path) -> None:
    text = "déjà 你好\0\x1b[1m\r\n".encode() * 5000
    process = record(
        store, "--echo", "--log", log, "--output", "done", "--exit", 9,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = process.communicate(text, timeout=120)
    assert process.returncode == 9
    assert out == text + b"done"
    # All that is ours is one line at the end.
    assert err.startswith(TEN.encode())
    assert err.removeprefix(TEN.encode()).startswith(b"tauscope: recorded ")
    assert err.count(b"\n") == TEN.count("\n") + 1


def test_what_the_engine_answers_is_there_at_once(store: Path) -> None:
    """Someone who talks to it through pipes waits for the answer before the next word."""
    process = record(store, "--echo", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                     stderr=subprocess.DEVNULL)  # fmt: skip
    for word in (b"one\n", b"two\n"):
        process.stdin.write(word)
        process.stdin.flush()
        assert process.stdout.read(4) == word
    process.stdin.close()
    assert process.wait(120) == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_signal_that_ends_the_engine_is_in_the_exit_code(store: Path, number: int) -> None:
    process = tauscope("record", "--traces", store, "--", "sh", "-c", f"kill -{number} $$",
                       stderr=subprocess.DEVNULL)  # fmt: skip
    assert process.wait(120) == 128 + number


def test_no_such_engine(store: Path) -> None:
    process = tauscope("record", "--traces", store, "--", "./no-such-engine",
                       stderr=subprocess.PIPE)  # fmt: skip
    _, err = process.communicate(timeout=120)
    assert process.returncode == 127
    assert err.startswith(b"./no-such-engine: can't be run (No such file or directory)")
    assert [path for path in store.rglob("*") if path.is_file() and path.name != ".mend"] == []


def test_signals_to_the_recorder_reach_the_engine(store: Path, log: Path, tmp_path: Path) -> None:
    got = tmp_path / "signals"
    process = record(store, "--log", log, "--signals", got, "--until-signal",
                     stderr=subprocess.DEVNULL)  # fmt: skip
    # Its log is in the store, so it waits by now, its handlers in place.
    wait_for(lambda: (store / "runs").is_dir() and any((store / "runs").glob("*.parquet")))
    sent = [signal.SIGUSR1, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR2]
    for count, number in enumerate([*sent, signal.SIGTERM], 1):
        process.send_signal(number)
        wait_for(lambda count=count: len(got.read_text().split()) >= count)
    assert process.wait(120) == 0
    assert [int(word) for word in got.read_text().split()] == [*sent, signal.SIGTERM]
    assert catalog.Catalog([store]).runs["state"].to_list() == ["complete"]


def test_a_reader_of_the_mirror_that_goes_away_harms_no_one(store: Path, tmp_path: Path) -> None:
    log = tmp_path / "long.log"
    log.write_bytes(log_of(30_000))
    process = record(store, "--log", log, "--exit", 3, stderr=subprocess.PIPE,
                     stdout=subprocess.DEVNULL)  # fmt: skip
    assert process.stderr.read(100)
    process.stderr.close()
    assert process.wait(120) == 3
    assert len(rows(store)["cycles"]) == 30_000


def test_a_reader_that_does_not_read_holds_up_no_one(store: Path, tmp_path: Path) -> None:
    """The engine ends and its rows are committed while the pipe to our reader is full."""
    log = tmp_path / "long.log"
    log.write_bytes(log_of(30_000))
    process = record(store, "--log", log, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    wait_for(lambda: (store / "runs").is_dir() and any((store / "runs").glob("*.parquet")))
    wait_for(lambda: catalog.Catalog([store]).runs["state"].to_list() == ["complete"])
    assert process.poll() is None
    _, err = process.communicate(timeout=120)
    assert err.startswith(log.read_bytes())
    assert process.returncode == 0


def test_switches_are_set_and_the_users_own_are_left(store: Path) -> None:
    own = {"DS4_MTP_TIMING": "2", "TAUSCOPE_TRACE": "mine"}
    process = record(store, "--switches", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                     env=os.environ | own)  # fmt: skip
    out, _ = process.communicate(timeout=120)
    assert out.decode().splitlines() == [
        "DS4_MTP_TIMING=2", "DS4_MTP_CONF_LOG=1", "DS4_MTP_SPEC_LOG=1", "DS4_DSPARK_STATS=1",
        "TAUSCOPE_TRACE=mine",
    ]  # fmt: skip
    ours = environment(Path("/journal"), {})
    assert ours == dict.fromkeys(SWITCHES, "1") | {"TAUSCOPE_TRACE": "/journal"}


def test_output_is_hashed_and_kept_when_asked(store: Path, log: Path) -> None:
    text = "the answer\n你好\n"
    process = tauscope(
        "record", "--traces", store, "--keep-output", "--", engine(), "-p", "?", "--log", log,
        "--output", text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = process.communicate(timeout=120)
    assert out.decode() == text
    (hashed,) = rows(store)["requests"]["output_hash"]
    assert hashed == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    (kept,) = (store / "raw").glob("*.out")
    assert kept.read_text() == text
    assert str(kept) in err.decode()


def test_output_is_not_kept_unasked(store: Path, log: Path) -> None:
    process = record(store, "-p", "?", "--log", log, "--output", "x", stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL)  # fmt: skip
    assert process.wait(120) == 0
    assert rows(store)["requests"]["output_hash"].null_count() == 0
    assert list((store / "raw").glob("*.out")) == []


class Terminal:
    """A program on a terminal of its own, 100 columns by 30 lines."""

    def __init__(self, *words: object) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            time.sleep(0)  # the parent sets the size; the program starts behind the gate below
            os.read(0, 1)
            code = "from tauscope.cli import main; main()"
            os.execv(sys.executable, [sys.executable, "-c", code, *map(str, words)])
        import fcntl
        import termios

        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.seen = b""
        os.write(self.master, b"\n")

    def read(self) -> bytes:
        """What is on the terminal so far."""
        import select

        while select.select([self.master], [], [], 0)[0]:
            try:
                block = os.read(self.master, 65536)
            except OSError:  # its last user has gone
                break
            if not block:
                break
            self.seen += block
        return self.seen

    def key(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def ended(self) -> int | None:
        self.read()
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) + 1000 if pid else None


def test_on_a_terminal(store: Path, log: Path, tmp_path: Path) -> None:
    """The engine has the terminal, keys reach it once, and the live line leaves its text whole."""
    got = tmp_path / "signals"
    terminal = Terminal(
        "record", "--traces", store, "--", engine(), "--size", "--log", log, "--signals", got,
        "--until-signal", "--output", "half a li",
    )  # fmt: skip
    wait_for(lambda: b"half a li" in terminal.read())
    assert b"100 x 30, stdout is a terminal" in terminal.read()
    wait_for(lambda: b"10 cycles" in terminal.read())  # the live line
    terminal.key(b"\x03")
    wait_for(lambda: got.read_text().split() == ["2"])
    os.kill(terminal.pid, signal.SIGTERM)
    code = wait_for(terminal.ended)
    os.close(terminal.master)
    assert code == 1000
    assert got.read_text().split() == ["2", "15"]

    seen = terminal.seen.replace(b"\r\n", b"\n").removeprefix(b"\n")
    live = re.findall(rb"\x1b7\x1b\[30;1H\x1b\[2K(1 min[^\x1b]*)\x1b8", seen)
    assert live
    # 3 of 10 emitted 2 and 2 emitted 3: 17 tokens; 4 verified, 2 accepted; 1 folded.
    end = "τ 1.70 (1.70)  acc 50 (50) %  folds 10 (10) %  10 cycles"
    assert live[-1].decode().endswith(end)
    # What is left without the live line is what the engine wrote, and our last line.
    plain = re.sub(rb"\x1b7.*?\x1b8", b"", seen, flags=re.DOTALL)
    plain = plain.replace(b"\x1b[1A", b"", 1).replace(b"^C", b"")
    stderr, stdout = TEN.encode(), b"100 x 30, stdout is a terminal\n"
    for text in (stdout, b"half a li"):
        assert plain.count(text) == 1
        plain = plain.replace(text, b"")
    assert plain.lstrip(b"\n").startswith(stderr)
    assert re.fullmatch(rb"\n*tauscope: recorded [^\n]*\n", plain.lstrip(b"\n")[len(stderr) :])


@pytest.mark.parametrize("what", ["log", "store"])
def test_watching_is_full_screen_and_leaves_the_terminal_as_it_was(
    what: str, store: Path, log: Path
) -> None:
    record(store, "--log", log, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL).wait(120)
    terminal = Terminal("watch", {"log": log, "store": store}[what])
    wait_for(lambda: b"Ctrl-C ends" in terminal.read())
    assert b"\x1b[?1049h" in terminal.seen
    if what == "log":
        assert "1.700" in terminal.seen.decode()
    terminal.key(b"\x03")
    assert wait_for(terminal.ended) == 1000
    os.close(terminal.master)
    assert b"\x1b[?1049l" in terminal.seen


def test_a_prompt_on_a_terminal_is_hashed(store: Path, log: Path) -> None:
    terminal = Terminal("record", "--traces", store, "--", engine(), "--log", log, "-p", "?",
                        "--output", "text", "--exit", "4")  # fmt: skip
    assert wait_for(terminal.ended) == 1004
    os.close(terminal.master)
    assert b"text" in terminal.seen
    assert rows(store)["requests"]["output_hash"].null_count() == 0
