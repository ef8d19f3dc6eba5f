"""SQL from anyone: it can read the traces, and nothing else, and it writes nowhere."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import pytest
from frames import add_run, cycle, opened

from tauscope.errors import Problem


def digest(root: Path) -> dict[str, str]:
    return {
        str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(root.rglob("*"))
        if p.is_file()
    }


@pytest.mark.parametrize(
    "text",
    [
        "COPY (SELECT 1) TO '{store}/runs/log.parquet'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{store}/runs/log.parquet'",
        "EXPLAIN COPY (SELECT 1) TO '{store}/runs/log.parquet'",
        # Options that end where a comment in them does.
        "EXPLAIN (ANALYZE /* ) SELECT 1 -- */) COPY (SELECT 42) TO '{store}/runs/log.parquet' "
        "(FORMAT csv, USE_TMP_FILE false)",
        "EXPLAIN (ANALYZE) COPY (SELECT 42) TO '{store}/runs/log.parquet' "
        "(FORMAT csv, USE_TMP_FILE false)",
        "EXPLAIN /* */ ANALYZE DROP VIEW cycles",
        "EXPLAIN (ANALYZE /* ) SELECT 1 -- */) CREATE TABLE t AS SELECT 1",
        "EXPORT DATABASE '{store}/out'",
        "ATTACH '{store}/x.duckdb' AS x",
        "DROP VIEW cycles",
        "CREATE TABLE t AS SELECT 1",
        "INSERT INTO runs SELECT * FROM runs",
        "SET enable_external_access = true",
        "PRAGMA database_list",
        "INSTALL httpfs",
        "SELECT 1; DROP VIEW cycles",
        "",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM read_parquet('{store}/../**')",
        "SELECT * FROM glob('/**')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT wrong FROM cycles",
        "SELEC 1",
        "SELECT * FROM sniff_csv('/etc/passwd')",
    ],
)
def test_anything_but_reading_the_traces_is_refused(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    add_run(store, "log", [[cycle("bet+")]])
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    before = digest(store)
    data = opened(store)
    with pytest.raises(Problem, match=r"^sql: "):
        data.ask(text.format(store=store))
    assert digest(store) == before
    assert os.listdir(here) == []
    assert data.ask("SELECT count(*) AS n FROM cycles").item() == 1


@pytest.mark.parametrize(
    "text",
    [
        "SELECT tau(emitted) FROM cycles",
        "FROM cycles SELECT count(*)",
        "WITH c AS (SELECT * FROM cycles) SELECT count(*) FROM c",
        "EXPLAIN SELECT * FROM cycles",
        "EXPLAIN ANALYZE SELECT * FROM cycles",
        "PIVOT (SELECT outcome, emitted FROM cycles) ON outcome IN ('folded') USING count(*)",
        "SELECT * FROM cycles;",
    ],
)
def test_questions_are_answered(store: Path, text: str) -> None:
    add_run(store, "log", [[cycle("bet+")]])
    assert opened(store).ask(text).height >= 1


@pytest.mark.parametrize(
    "label",
    [
        "'; DROP VIEW cycles; --",
        "\x1b[31mred",
        "中文",
        "שלום \u202e",
        "a" * 10_000,
        "<script>",
        "%s {x} $y",
    ],
)
def test_a_label_is_only_text(store: Path, label: str) -> None:
    add_run(store, "log", [[cycle("bet+")]], workload=label, arm="mtp1")
    data = opened(store)
    assert data.query("SELECT DISTINCT workload FROM cycles").item() == label
    from tauscope import metrics

    assert metrics.table(data, where={"workload": label})["workload"].to_list() == [label]


def test_a_store_under_a_name_with_patterns_in_it_reads_itself_alone(tmp_path: Path) -> None:
    for name in ("s[1]", "s1", "s*", "s?'\""):
        add_run(tmp_path / name, "log", [[cycle("fold")]], workload=name)
    for name in ("s[1]", "s1", "s*", "s?'\""):
        assert opened(tmp_path / name).query("SELECT workload FROM cycles").item() == name


def test_decimals_and_huge_integers_come_back_as_floats(store: Path) -> None:
    add_run(store, "log", [[cycle("bet+")]])
    row = opened(store).ask("SELECT 1.5 AS d, sum(emitted) AS s FROM cycles").row(0)
    assert row == (1.5, 2.0)
    assert all(type(value) is float for value in row)


def test_files_of_the_temporary_folder_are_nobody_elses_to_read(store: Path) -> None:
    add_run(store, "log", [[cycle("bet+")]])
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as secret:
        secret.write("secret")
        secret.flush()
        data = opened(store)
        (allowed,) = data.ask("SELECT current_setting('allowed_directories') AS d").item()
        assert Path(allowed).parent == Path(tempfile.gettempdir())
        assert list(Path(allowed).glob("*")) == []
        for text in (f"FROM read_text('{secret.name}')", f"FROM glob('{tempfile.gettempdir()}/*')",
                     f"FROM read_text('{allowed}/../{Path(secret.name).name}')"):  # fmt: skip
            with pytest.raises(Problem, match=r"^sql: "):
                data.ask(f"SELECT * {text}")
    del data
    assert not Path(allowed).exists()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("INTERVAL 1 DAY", "1 day"),
        ("'infinity'::TIMESTAMP", "infinity"),
        ("'-infinity'::DATE", "-infinity"),
        ("TIMESTAMPTZ 'infinity'", "infinity"),
        ("union_value(a := 1)", "1"),
        ("[INTERVAL 1 DAY]", "[1 day]"),
        ("340282366920938463463374607431768211455::UHUGEINT", 2.0**128),
        ("DATE '2026-08-01'", "2026-08-01"),
    ],
)
def test_types_of_every_kind_are_shown(store: Path, text: str, shown: object) -> None:
    add_run(store, "log", [[cycle("bet+")]])
    found = opened(store).ask(f'SELECT {text} AS "a ""b", 1 AS n')
    assert found.rows() == [(shown, 1)]
    assert found.columns == ['a "b', "n"]


def test_a_long_error_is_cut(store: Path) -> None:
    add_run(store, "log", [[cycle("bet+")]])
    with pytest.raises(Problem) as caught:
        opened(store).ask("SELECT " + "x" * 9000 + " FROM cycles")
    assert len(str(caught.value)) < 420
