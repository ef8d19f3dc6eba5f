"""The forms in which `tauscope sql` gives its rows."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest
from conftest import Command
from frames import add_run, cycle

QUERY = (
    "SELECT workload, COUNT(*) AS n, LIST(DISTINCT outcome ORDER BY outcome) AS outcomes, "
    "MAX(margin) AS margin FROM cycles GROUP BY ALL ORDER BY ALL"
)
LABEL = 'a|b <i>"中文"</i>'


@pytest.fixture
def traces(store: Path) -> Path:
    add_run(store, "a", [[cycle("bet+"), cycle("fold")]], workload=LABEL, arm="mtp1")
    add_run(store, "b", [[cycle("fold", margin=1.5)]], workload="code", arm="mtp1")
    return store


def test_json_is_one_array_of_objects(command: Command, traces: Path) -> None:
    for words in (("--json",), ("--format", "json")):
        _, out, _ = command("sql", QUERY, *words, "--traces", traces)
        assert json.loads(out) == [
            {"workload": LABEL, "n": 2, "outcomes": ["all_accepted", "folded"], "margin": None},
            {"workload": "code", "n": 1, "outcomes": ["folded"], "margin": 1.5},
        ]


def test_csv_keeps_text_and_packs_lists(command: Command, traces: Path) -> None:
    _, out, _ = command("sql", QUERY, "--format", "csv", "--traces", traces)
    assert list(csv.reader(io.StringIO(out))) == [
        ["workload", "n", "outcomes", "margin"],
        [LABEL, "2", '["all_accepted", "folded"]', ""],
        ["code", "1", '["folded"]', "1.5"],
    ]


def test_markdown_is_a_table_whatever_is_in_it(command: Command, traces: Path) -> None:
    _, out, _ = command("sql", QUERY, "--format", "markdown", "--traces", traces)
    lines = out.splitlines()
    assert lines[:2] == ["| workload | n | outcomes | margin |", "| --- | ---: | --- | ---: |"]
    assert lines[3] == "| code | 1 | folded | 1.5 |"
    assert lines[2].count("|") == 5
    assert "<i>" not in out
    assert "中文" in out


def test_files_are_whole_and_readable(command: Command, traces: Path, tmp_path: Path) -> None:
    for form in ("parquet", "csv", "json", "markdown", "table"):
        path = tmp_path / f"rows.{form}"
        code, out, _ = command("sql", QUERY, "--format", form, "-o", path, "--traces", traces)
        assert (code, out) == (0, "")
        assert path.stat().st_size > 20
    assert pl.read_parquet(tmp_path / "rows.parquet")["n"].to_list() == [2, 1]
    assert "code" in (tmp_path / "rows.table").read_text()


def test_the_query_may_stand_in_a_file(command: Command, traces: Path, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(QUERY, encoding="utf-8")
    _, out, _ = command("sql", "-f", tmp_path / "q.sql", "--json", "--traces", traces)
    assert len(json.loads(out)) == 2


@pytest.mark.parametrize(
    ("words", "code", "start"),
    [
        (("SELECT 1", "-f", "x.sql"), 2, "sql: give one query"),
        (("-f", "nowhere.sql"), 1, "nowhere.sql: "),
        (("SELECT 1", "--json", "--format", "csv"), 2, "sql: --json and --format csv differ"),
        (("SELECT 1", "-o", "."), 1, ".: is a folder"),
        (("DROP VIEW cycles", "--format", "csv"), 1, "sql: only a SELECT"),
    ],
)
def test_a_wrong_wish_is_one_line(
    command: Command, traces: Path, words: tuple[str, ...], code: int, start: str
) -> None:
    got, out, err = command("sql", *words, "--traces", traces)
    assert (got, out) == (code, "")
    assert err.startswith(start)
