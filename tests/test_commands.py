"""Commands as a user types them: tables, JSON, one-line errors, exit codes, harmless text."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Command
from frames import add_run, cycle
from logs import TEN

HARM = "\x1b]0;owned\x07<b>中文 \u202eabc"


@pytest.fixture
def traces(store: Path) -> Path:
    rows = [cycle(kind, wall_ms=9.0, draft_ms=1.0) for kind in ("bet+", "fold", "bet-", "bet+")]
    add_run(store, "a", [rows] * 6, [{"prompt_id": f"p{n}"} for n in range(6)],
            workload=HARM, arm="mtp1", source="run.log", state="complete")  # fmt: skip
    add_run(store, "b", [[cycle("plain", wall_ms=8.0)] * 6] * 6,
            [{"prompt_id": f"p{n}"} for n in range(6)], workload=HARM, arm="off")  # fmt: skip
    return store


@pytest.mark.parametrize(
    "words",
    [
        ("runs",),
        ("metrics",),
        ("metrics", "--by", "workload,arm,prompt_id"),
        ("sql", "SELECT * FROM cycles"),
        ("sql", "SELECT * FROM runs"),
        ("schema",),
    ],
)
def test_data_is_printed_as_a_table_and_as_json(
    command: Command, traces: Path, words: tuple[str, ...]
) -> None:
    code, out, err = command(*words, "--traces", traces)
    assert code == 0
    assert "drift can't be seen" in err if "metrics" in words else err == ""
    assert not {"\x1b", "\u202e"} & set(out + err)
    code, out, err = command(*words, "--json", "--traces", traces)
    assert (code, err) == (0, "")
    assert json.loads(out)
    assert "NaN" not in out


def test_json_carries_the_text_as_it_is(command: Command, traces: Path) -> None:
    _, out, _ = command("metrics", "--json", "--traces", traces)
    rows = json.loads(out)
    assert {row["workload"] for row in rows} == {HARM}
    treated = next(row for row in rows if row["arm"] == "mtp1")
    assert treated["tau"] == 1.5
    assert (treated["tau_num"], treated["tau_den"]) == (36, 24)
    assert treated["tau_lo"] <= 1.5 <= treated["tau_hi"]


def test_the_table_keeps_chinese_and_shows_what_would_harm(command: Command, traces: Path) -> None:
    _, out, _ = command("runs", "--traces", traces)
    assert "中文" in out
    assert "\\u001b]0;owned\\u0007" in out


def test_where_narrows(command: Command, traces: Path) -> None:
    _, out, _ = command("metrics", "--where", "arm=off", "--json", "--traces", traces)
    assert [row["arm"] for row in json.loads(out)] == ["off"]


@pytest.mark.parametrize(
    ("words", "code", "start"),
    [
        (("sql", "DROP VIEW cycles"), 1, "sql: only a SELECT"),
        (("sql", "SELECT nothing FROM cycles"), 1, "sql: "),
        (("metrics", "--by", "emitted"), 1, "emitted: not a column"),
        (("metrics", "--where", "arm"), 2, "--where arm: write it as COLUMN=VALUE"),
        (("show", "a-0:99"), 1, "a-0:99: no such cycle"),
        (("show", "nonsense"), 2, "nonsense: name a cycle as RUN:CYCLE"),
    ],
)
def test_a_wrong_wish_is_one_line_and_a_code(
    command: Command, traces: Path, words: tuple[str, ...], code: int, start: str
) -> None:
    got, out, err = command(*words, "--traces", traces)
    assert got == code
    assert out == ""
    assert err.startswith(start)
    assert "Traceback" not in err


def test_a_store_that_is_not_there_is_one_line(command: Command, tmp_path: Path) -> None:
    code, _, err = command("metrics", "--traces", tmp_path / "nothing")
    assert code == 1
    assert "no such store" in err
    assert err.count("\n") == 1


def test_a_damaged_log_is_said_on_standard_error_and_the_rest_answers(
    command: Command, traces: Path
) -> None:
    path = next((traces / "cycles").glob("b.*"))
    path.write_bytes(path.read_bytes()[:50])
    code, out, err = command("metrics", "--json", "--traces", traces)
    assert code == 0
    assert path.name in err
    assert [row["arm"] for row in json.loads(out)] == ["mtp1"]


def test_an_empty_selection_says_so(command: Command, traces: Path) -> None:
    code, out, err = command("metrics", "--where", "workload=none", "--traces", traces)
    assert (code, out) == (1, "")
    assert "no cycle, request or speed in this selection" in err
    assert "arms off, mtp1" in err


def test_every_command_explains_itself_with_an_example(command: Command) -> None:
    _, out, _ = command("--help")
    names = re.findall(r"(?m)^  ([a-z]+)  ", out.split("Commands:")[1])
    assert {"import", "label", "show", "runs", "metrics", "sql", "schema", "simulate"} <= set(names)
    for name in names:
        code, text, _ = command(name, "--help")
        assert code == 0
        assert f"tauscope {name}" in text.split("Options:")[0].split("\n", 1)[1], name


def test_the_bundled_traces_answer_when_nothing_else_is_named(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tauscope import places

    monkeypatch.delenv("TAUSCOPE_TRACES", raising=False)
    root = places.clone()
    monkeypatch.setattr(places, "is_store", lambda p: p == root / "traces" / "sample")
    code, out, err = command("runs", "--json")
    assert code == 0
    assert "reading the bundled traces" in err
    assert all(row["simulated"] for row in json.loads(out))


@pytest.mark.parametrize("words", [("metrics",), ("runs",), ("sql", "SELECT arm FROM runs")])
def test_json_escapes_what_steers_a_terminal_and_keeps_its_value(
    command: Command, store: Path, words: tuple[str, ...]
) -> None:
    label = "\x9b31m\u202e\u061c\u2066中文é"
    add_run(store, "a", [[cycle("bet+")]], workload="w", arm=label)
    _, out, _ = command(*words, "--json", "--traces", store)
    assert not set(out) & set("\x9b\u202e\u061c\u2066")
    assert "中文é" in out
    assert [row["arm"] for row in json.loads(out)] == [label]


def test_a_column_named_twice_groups_once(command: Command, traces: Path) -> None:
    _, once, _ = command("metrics", "--by", "arm", "--traces", traces)
    code, twice, _ = command("metrics", "--by", "arm,arm", "--traces", traces)
    assert (code, twice) == (0, once)


@pytest.mark.parametrize("words", [("runs",), ("import", "{log}"), ("label", "--arm", "x")])
@pytest.mark.parametrize(
    "place", ["{log}/x", "/proc/x/y", "{log}/" + "x" * 300, "~nobody-at-all/x"]
)
def test_a_store_where_none_can_be_is_one_line(
    command: Command, tmp_path: Path, words: tuple[str, ...], place: str
) -> None:
    log = tmp_path / "run.log"
    log.write_text(TEN)
    code, _, err = command(*(w.format(log=log) for w in words), "--traces", place.format(log=log))
    assert code == 1
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_a_result_file_that_is_a_folder_is_one_line(command: Command, traces: Path) -> None:
    code, _, err = command("check", f"{traces}:arm=off", f"{traces}:arm=mtp1", "--junit", ".")
    assert code == 3
    assert err.splitlines()[-1].startswith(".: ")
    assert "Traceback" not in err


def test_a_failed_import_leaves_no_new_store(command: Command, tmp_path: Path) -> None:
    from conftest import ROOT

    log, nothing = ROOT / "traces" / "example.log", tmp_path / "nothing.log"
    nothing.write_text("no such line\n")
    place = tmp_path / "new" / "store"
    for words in ((log, "--tokens", "256"), (nothing,), (tmp_path / "gone.log",)):
        code, _, err = command("import", *words, "--traces", place)
        assert (code, err.count("\n")) == (1, 1)
        assert list(tmp_path.rglob("new*")) == [], list(place.rglob("*"))
    # A store that was there stays as it is.
    assert command("import", log, "--traces", place)[0] == 0
    before = sorted(place.rglob("*"))
    assert command("import", nothing, "--traces", place)[0] == 1
    assert [path for path in before if not path.exists()] == []


def test_an_off_log_is_said_to_log_no_cycles(command: Command, store: Path, tmp_path: Path) -> None:
    log = tmp_path / "off.log"
    log.write_text("ds4: prefill: 79.63 t/s, generation: 37.76 t/s\n")
    words = ("import", log, "--arm", "off", "--tokens", "256", "--traces", store)
    code, out, _ = command(*words)
    assert code == 0
    assert "no cycles were logged (an off arm logs none); 256 generated" in out


def test_label_without_a_label_says_what_is_missing(command: Command, traces: Path) -> None:
    for words in (("label",), ("label", "--traces", traces)):
        code, out, err = command(*words)
        assert (code, out) == (2, "")
        assert err == "label: nothing to change; give --workload, --arm, --prompt-id or --rules\n"


def test_one_run_is_no_plural(command: Command, store: Path) -> None:
    add_run(store, "a", [[cycle("bet+")]], workload="w", arm="mtp1")
    _, out, _ = command("doctor", store)
    assert "1 run examined" in out


@pytest.mark.parametrize(
    "words",
    [
        [b"import", b"x.log", b"--workload=\xff"],
        [b"label", b"a-0", b"--workload", b"\xff"],
        [b"record", b"--workload", b"\xff", b"--", b"true"],
        [b"sql", b"select '\xff'"],
        [b"metrics", b"--where", b"workload=\xff"],
    ],
)
def test_words_that_are_no_utf8_are_one_line(words: list[bytes], traces: Path) -> None:
    command = [sys.executable, "-c", "from tauscope.cli import main; main()", *words]
    done = subprocess.run(command, cwd=traces, capture_output=True, text=True)
    assert done.returncode == 2
    assert "UTF-8" in done.stderr
    assert "Traceback" not in done.stderr
