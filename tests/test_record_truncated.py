"""An engine that empties its own log, as `> /dev/stderr` does on Linux, is followed on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from logs import ALL, FOLD, MISS, SPEED, START, TEN
from standin import journal, recorder, tauscope, wait_for

from tauscope import catalog
from tauscope.record import marker as markers
from tauscope.record.journal import kept_blocks

# Elsewhere /dev/stderr is not opened anew; the variable names the same file.
EMPTY = "/dev/stderr" if sys.platform == "linux" else '"$TAUSCOPE_TRACE"'
SAID = b"the engine truncated its own log"
CYCLE = (
    '{"tauscope":1,"kind":"cycle","run":"r","drafted":1,"free_checked":0,"free_accepted":0,'
    '"verified":1,"accepted":1,"resampled":0,"emitted":2}\n'
)


class Wrapper:
    """A shell script as the engine, which waits at each `wait N` until the test says `go(N)`."""

    def __init__(self, store: Path, folder: Path, script: str) -> None:
        self._folder = folder
        self.seen = b""
        waiting = 'wait() { while [ ! -e "$1" ]; do sleep 0.01; done; }\n'
        self.process = tauscope(
            "record", "--traces", store, "--", "sh", "-c", waiting + script,
            cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip

    def shows(self, text: str) -> None:
        """Wait until the recorder has shown `text`, which it had read by then."""
        while text.encode() not in self.seen:
            more = os.read(self.process.stderr.fileno(), 1 << 16)
            assert more, self.seen
            self.seen += more

    def go(self, number: int) -> None:
        (self._folder / str(number)).touch()

    def end(self) -> bytes:
        self.seen += self.process.communicate(timeout=120)[1]
        return self.seen


def run_of(store: Path) -> dict:
    return catalog.Catalog([store]).runs.row(0, named=True)


def raw_of(store: Path) -> bytes:
    return b"".join(kept_blocks(store, run_of(store)["raw_file"]))


def lines_of(store: Path) -> list[int]:
    return catalog.Catalog([store]).query("SELECT line FROM cycles ORDER BY line")["line"].to_list()


def committed(store: Path, cycles: int) -> None:
    wait_for(lambda: (store / "runs").is_dir() and len(lines_of(store)) == cycles)


def test_what_follows_is_recorded_and_shown_and_what_was_read_is_kept(
    store: Path, tmp_path: Path
) -> None:
    before, after = START + ALL + FOLD + MISS, ALL * 3 + SPEED
    (tmp_path / "a").write_text(before)
    (tmp_path / "b").write_text(after)
    engine = Wrapper(
        store, tmp_path, f"cat a >&2; wait 1; echo hello > {EMPTY}; wait 2; cat b >&2; exit 5"
    )
    engine.shows(before)
    committed(store, 3)
    engine.go(1)
    engine.shows("hello\n")
    engine.go(2)
    err = engine.end()
    assert engine.process.returncode == 5
    assert after.encode() in err
    assert err.count(SAID) == 1
    run = run_of(store)
    assert run["state"] == "recovered" and run["hidden_cycles"] is True
    assert {"name": "journal_truncated", "value": "1", "line": None} in run["facts"]
    assert raw_of(store) == (before + "hello\n" + after).encode()
    assert run["raw_bytes"] == len(raw_of(store))
    assert lines_of(store) == [3, 4, 5, 7, 8, 9]
    assert markers.pending(store) == []


def test_before_the_first_look_it_is_noticed_too(store: Path, tmp_path: Path) -> None:
    """The file is longer than ever read by then: its size tells nothing."""
    (tmp_path / "a").write_text(TEN)
    err = Wrapper(store, tmp_path, f"cat a >&2; echo hello > {EMPTY}; cat a a >&2").end()
    assert err.count(SAID) == 1
    run = run_of(store)
    assert run["state"] == "recovered"
    assert "journal_truncated" in [fact["name"] for fact in run["facts"]]
    assert raw_of(store).endswith(("hello\n" + TEN + TEN).encode())


@pytest.mark.parametrize("torn", ["ds4: mtp timing micro drafted=2", CYCLE[:60]])
def test_a_torn_line_does_not_swallow_the_next(torn: str, store: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(CYCLE + "said\n" + torn)
    (tmp_path / "b").write_text(CYCLE + "still here\n")
    engine = Wrapper(store, tmp_path, f"cat a >&2; wait 1; cat b > {EMPTY}; wait 2")
    engine.shows("said\n")
    wait_for(lambda: (path := journal(store)) and path.read_bytes().endswith(torn.encode()))
    # Read by the recorder and by the mirror: the next line is shown after it.
    committed(store, 1)
    engine.go(1)
    engine.shows("still here\n")
    engine.go(2)
    engine.end()
    assert raw_of(store) == (CYCLE + "said\n" + torn + "\n" + CYCLE + "still here\n").encode()
    assert lines_of(store) == [1, 4]


def test_a_packed_journal_that_is_truncated_keeps_its_copy(store: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(START + ALL * 500)
    (tmp_path / "b").write_text(FOLD * 100)
    waiting = 'while [ ! -e "$0/go" ]; do sleep 0.01; done; '
    script = f'cd "$0"; cat a >&2; {waiting} echo hello > {EMPTY}; cat b >&2'
    process = recorder(store, "sh", "-c", script, tmp_path, roll_bytes=4096)
    committed(store, 500)
    wait_for(lambda: markers.load(markers.pending(store)[0]).archived > 0)
    (tmp_path / "go").touch()
    assert process.wait(120) == 0
    assert raw_of(store) == (START + ALL * 500 + "hello\n" + FOLD * 100).encode()
    assert len(lines_of(store)) == 600
    assert run_of(store)["state"] == "recovered"


def test_truncated_after_the_recorders_death(store: Path, tmp_path: Path, command) -> None:
    """What was committed before is in no file any more but the packed copy."""
    (tmp_path / "a").write_text(START + ALL * 500)
    waiting = 'while [ ! -e "$0/go" ]; do sleep 0.01; done; '
    script = f'cd "$0"; cat a >&2; {waiting} cat a > {EMPTY}; cat a >&2; : > done'
    process = recorder(store, "sh", "-c", script, tmp_path, roll_bytes=4096)
    size = (tmp_path / "a").stat().st_size
    wait_for(lambda: any(markers.load(path).archived == size for path in markers.pending(store)))
    process.kill()
    process.wait()
    (tmp_path / "go").touch()
    wait_for((tmp_path / "done").exists)
    wait_for(lambda: not markers.is_held(journal(store)))
    _, _, err = command("sql", "SELECT COUNT(*) AS n FROM cycles", "--traces", store)
    assert "recovered 1500 cycles, up to the journal's end, which the engine had truncated" in err
    assert raw_of(store) == (tmp_path / "a").read_bytes() * 3
    assert run_of(store)["state"] == "recovered"
