"""Recorded rows are those of an import of the same bytes, whatever the engine is."""

from __future__ import annotations

from pathlib import Path

import pytest
from logs import ALL, MISS, SPEED, START, TEN, TEN_DARK, served
from polars.testing import assert_frame_equal
from standin import engine, imported, rows

from tauscope import catalog
from tauscope.ingest.importer import Labels
from tauscope.labels import load_rules
from tauscope.record.recorder import Recorded, Wish, record
from tauscope.trace import Trace

EXAMPLE = Path(__file__).resolve().parents[1] / "traces" / "example.log"
REAL = (
    "ds4-mtp-chat.log", "ds4-mtp-code.log", "ds4-off-chat.log", "ds4-qwen-mtp-server.log",
    "ds4-dspark-cycles.log", "ds4-server-requests.log", "ds4-dspark-off-modeltext.log",
)  # fmt: skip


def recorded(store: Path, *words: object, **wish: object) -> Recorded:
    command = [engine(), *map(str, words)]
    return record(store, Wish(command=command, mirrored=False, **wish))


def same(store: Path, log: Path, other: Path, **given: object) -> None:
    """The rows of the one recording in `store` are those of an import of `log`."""
    mine, theirs = rows(store), imported(log, other, **given)
    for name in theirs:
        assert_frame_equal(mine[name], theirs[name])


@pytest.mark.parametrize("name", REAL)
def test_a_real_log(name: str, corpus: Path, store: Path, tmp_path: Path) -> None:
    done = recorded(store, "--log", corpus / name, arm="mtp2", workload="chat")
    assert done.code == 0
    same(store, corpus / name, tmp_path / "other", labels=Labels("chat", "mtp2"))


GLM = "ds4: glm mtp cycle: verify2 50.1 ms, head+draft 3.2 ms, {} (draft 1 'a' vs true 2 'b')\n"
HEAD = "0102 03:04:05 ds4-server: chat ctx=0..{0}:{0} "


@pytest.mark.parametrize(
    "text",
    [
        START + GLM.format("ACCEPT") * 3 + GLM.format("reject") + SPEED,
        # Two requests at once: whose the cycles are can't be told.
        HEAD.format(10) + "prompt start\n" + HEAD.format(20) + "prompt start\n" + ALL + MISS
        + HEAD.format(10) + "gen=9 finish=stop 3.000s\n"
        + HEAD.format(20) + "gen=8 finish=stop 3.000s\n",
        # A second start-up line in one log begins a second run.
        TEN + TEN,
    ],
    ids=["glm", "overlap", "two runs"],
)  # fmt: skip
def test_a_made_up_log(text: str, store: Path, tmp_path: Path) -> None:
    log = tmp_path / "made up.log"
    log.write_text(text)
    recorded(store, "--log", log)
    same(store, log, tmp_path / "other")
    if "finish=stop" in text:
        assert rows(store)["cycles"]["request_id"].to_list() == [None, None]


@pytest.mark.parametrize("pace", [0, 400])
def test_the_example(pace: int, store: Path, tmp_path: Path) -> None:
    recorded(store, "--log", EXAMPLE, "--rate", pace)
    same(store, EXAMPLE, tmp_path / "other")


def test_a_native_trace_beside_the_log(store: Path, tmp_path: Path) -> None:
    """Both go into one journal, whose kept copy gives the same rows again."""
    trace = tmp_path / "native"
    with Trace(trace, run="r", engine="standin", draft_depth=1, model="m") as run:
        request = run.begin(prompt_tokens=5)
        for accepted in (1, 0, 1):
            run.record(request, drafted=1, verified=1, accepted=accepted, emitted=1 + accepted,
                       target_forwards=1, wall_ms=40.0)  # fmt: skip
        run.end(request, generated_tokens=5)
    log = tmp_path / "stderr"
    log.write_text(TEN)
    done = recorded(store, "--log", log, "--trace", trace)
    data = catalog.Catalog([store])
    native = data.query("SELECT emitted, wall_ms FROM cycles WHERE dialect = 'native'")
    assert native.rows() == [(2, 40.0), (1, 40.0), (2, 40.0)]
    same(store, store / "raw" / f"{done.log_id}.log.zst", tmp_path / "other")


def test_a_given_token_count_recovers_dark_cycles(store: Path, tmp_path: Path) -> None:
    log = tmp_path / "dark.log"
    log.write_text(TEN_DARK)
    recorded(store, "--log", log, tokens=17)
    same(store, log, tmp_path / "other", tokens=17)
    assert rows(store)["runs"]["unlogged_cycles"].to_list() == [5]


@pytest.mark.parametrize("tail", [b"ds4: mtp spec miss first draft=8", b"ds4: mtp timing mic", b""])
def test_a_last_line_without_its_end(tail: bytes, store: Path, tmp_path: Path) -> None:
    log = tmp_path / "cut.log"
    log.write_bytes(TEN.encode() + tail)
    recorded(store, "--log", log)
    same(store, log, tmp_path / "other")


def test_requests_of_a_server_are_labelled_by_the_rules(store: Path, tmp_path: Path) -> None:
    log, rules = tmp_path / "server.log", tmp_path / "rules.toml"
    log.write_text(served(300, "TOOLS ", 70) + served(90, "", 12) + served(100, "TOOLS ", 9))
    rules.write_text('[[rule]]\nflags = ["TOOLS"]\nworkload = "agent"\n'
                     '[[rule]]\nmax_prompt_tokens = 95\nworkload = "chat"\n')  # fmt: skip
    recorded(store, "--log", log, rules=load_rules(rules))
    made = rows(store)["requests"].sort("request_id")
    assert made["workload"].to_list() == ["agent", "chat", "agent"]
    assert made["generated_tokens"].to_list() == [70, 12, 9]


def test_times_are_those_at_which_lines_were_seen(store: Path) -> None:
    recorded(store, "--log", EXAMPLE, "--rate", 1000)
    times = catalog.Catalog([store]).query("SELECT t_ms FROM cycles ORDER BY line")["t_ms"]
    assert times.null_count() == 0
    assert times.is_sorted()
    # Line n + 1 is written n ms after the start, or half a ms early, and never seen earlier.
    lines = catalog.Catalog([store]).query("SELECT line, t_ms FROM cycles ORDER BY line")
    assert (lines["t_ms"] >= lines["line"] - 2).all()


def test_a_log_that_says_nothing_leaves_no_run_but_its_text(store: Path, tmp_path: Path) -> None:
    log = tmp_path / "nothing.log"
    log.write_text("hello\nworld\n")
    done = recorded(store, "--log", log, "--exit", 4)
    assert (done.code, done.log_id) == (4, None)
    (note,) = done.notes
    (kept,) = (store / "raw").iterdir()
    assert str(kept) in note
    assert catalog.Catalog([store]).runs.is_empty()
