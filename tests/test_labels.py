"""Labels after the import: runs, single requests, and a server's requests by rules."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from frames import opened
from logs import ALL, FOLD, TEN, served

from tauscope import labels
from tauscope.errors import Problem
from tauscope.ingest import source
from tauscope.ingest.importer import Labels, import_log

SERVER = served(10, "TOOLS ", 3, ALL) + served(20, "", 2, FOLD) + served(9000, "TOOLS ", 3, ALL)


@pytest.fixture
def run_id(store: Path, tmp_path: Path) -> str:
    path = tmp_path / "server.log"
    path.write_text(SERVER)
    return import_log(source.find([path])[0], store, Labels(arm="mtp2")).runs["run_id"][0]


def by_request(store: Path) -> list[tuple]:
    return opened(store).query(
        "SELECT request_id, workload, count(*) FROM cycles GROUP BY ALL ORDER BY 1"
    ).rows()  # fmt: skip


def rules(tmp_path: Path, text: str) -> labels.Rules:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    return labels.load_rules(path)


def test_rules_label_requests_and_the_rest_stays_unlabelled(
    store: Path, tmp_path: Path, run_id: str
) -> None:
    wanted = rules(tmp_path, '[[rule]]\nflags = ["TOOLS"]\nworkload = "agent"\n')
    labels.label(store, [], Labels(), wanted)
    assert by_request(store) == [(0, "agent", 1), (1, "unlabelled", 1), (2, "agent", 1)]


def test_the_first_rule_that_fits_labels(store: Path, tmp_path: Path, run_id: str) -> None:
    text = """
[[rule]]
min_prompt_tokens = 5000
workload = "long"
[[rule]]
flags = ["TOOLS"]
workload = "agent"
[[rule]]
kind = "chat"
without = ["TOOLS", "THINKING"]
max_prompt_tokens = 20
workload = "chat"
"""
    labels.label(store, [], Labels(), rules(tmp_path, text))
    assert [row[:2] for row in by_request(store)] == [(0, "agent"), (1, "chat"), (2, "long")]


def test_one_request_by_hand(store: Path, run_id: str) -> None:
    labels.label(store, [f"{run_id}:1"], Labels(workload="聊天"))
    assert by_request(store)[1][1] == "聊天"
    assert by_request(store)[0][1] == "unlabelled"


def test_a_whole_run_takes_the_place_of_what_its_requests_said(store: Path, run_id: str) -> None:
    labels.label(store, [f"{run_id}:1"], Labels(workload="chat"))
    changed = labels.label(store, [run_id], Labels(workload="code", arm="off"))
    assert {row[1] for row in by_request(store)} == {"code"}
    assert opened(store).query("SELECT arm FROM runs").item() == "off"
    assert changed.filter("changed")["run_id"].unique().to_list() == [run_id]


def test_labels_outlive_a_growing_log(store: Path, tmp_path: Path, run_id: str) -> None:
    labels.label(store, [f"{run_id}:1"], Labels(workload="chat"))
    path = tmp_path / "server.log"
    path.write_text(SERVER + served(30, "", 3, ALL))
    assert import_log(source.find([path])[0], store).status == "continued"
    assert [row[1] for row in by_request(store)] == [
        "unlabelled", "chat", "unlabelled", "unlabelled",
    ]  # fmt: skip
    assert opened(store).query("SELECT arm FROM runs").item() == "mtp2"


def test_nothing_to_change_changes_no_file(store: Path, run_id: str) -> None:
    labels.label(store, [run_id], Labels(workload="code"))
    before = sorted(p.name for p in store.rglob("*.parquet"))
    again = labels.label(store, [run_id], Labels(workload="code"))
    assert not again["changed"].any()
    assert sorted(p.name for p in store.rglob("*.parquet")) == before


@pytest.mark.parametrize(
    ("targets", "given", "words"),
    [
        (["nothing-0"], Labels(workload="x"), "no such run"),
        ([], Labels(), "nothing to change"),
        (["{run}:0"], Labels(arm="off"), "an arm belongs to a whole run"),
        (["{run}:x"], Labels(workload="x"), "name one request of one run"),
    ],
)
def test_wrong_targets_are_one_line(
    store: Path, run_id: str, targets: list[str], given: Labels, words: str
) -> None:
    with pytest.raises(Problem, match=words):
        labels.label(store, [t.format(run=run_id) for t in targets], given)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[rule]]\nflags = ['TOOLS']\n", "missing required field `workload`"),
        ("[[rule]]\nworkload = 'a'\nflag = 'TOOLS'\n", "unknown field `flag`"),
        ("[[rule]]\nworkload = 3\n", "workload"),
        ("rule = [", "not TOML"),
    ],
)
def test_a_wrong_rules_file_says_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(Problem, match=words):
        rules(tmp_path, text)


def test_a_label_given_at_import_needs_no_request(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(TEN)
    import_log(source.find([path])[0], store, Labels("code", "mtp2", "p1"))
    rows = opened(store).query("SELECT DISTINCT workload, arm, prompt_id FROM requests")
    assert rows.equals(pl.DataFrame({"workload": ["code"], "arm": ["mtp2"], "prompt_id": ["p1"]}))


def test_labels_given_at_the_same_time_are_all_kept(
    store: Path, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, second, seen = labels.read_rows, threading.Event(), []

    def slow(root: Path, log_id: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        rows = read(root, log_id)
        seen.append(rows)
        if len(seen) > 1:
            second.set()
        second.wait(0.3)  # time enough for another to read the same rows, were it let
        return rows

    monkeypatch.setattr(labels, "read_rows", slow)
    with ThreadPoolExecutor(3) as pool:
        jobs = [
            pool.submit(labels.label, store, [f"{run_id}:{n}"], Labels(workload=f"w{n}"))
            for n in range(3)
        ]
        for job in jobs:
            job.result()
    assert [row[1] for row in by_request(store)] == ["w0", "w1", "w2"]
