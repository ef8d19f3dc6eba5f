"""Qwen MTP: what a block, a free miss and a bypass are, and where their times come from."""

from __future__ import annotations

import json

import pytest
from parsed import parse


def timing(drafted: int, accepted: int, tokens: int, verifier: str = "block") -> str:
    return (
        f"ds4: Qwen MTP timing drafted={drafted} accepted={accepted} target_tokens={tokens} "
        f"cycle=91.250 ms verifier={verifier}"
    )


def stages(path: str = "direct-partial") -> str:
    return (
        "ds4: Qwen MTP stages snapshot=0.500 ms draft=13.000 ms verify=50.250 ms capture=A-B/C-D "
        f"restore-select=0.125 ms history=3.000 ms commit=3.250 ms path={path} "
        "counts(full=4 partial=3 replay=0)"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (timing(7, 3, 4), ("partial", 7, 1, 1, 6, 2, 4, 2)),
        (timing(7, 7, 8), ("all_accepted", 7, 1, 1, 6, 6, 8, 2)),
        (timing(7, 1, 2), ("rejected", 7, 1, 1, 6, 0, 2, 2)),
        (timing(3, 3, 4), ("all_accepted", 3, 1, 1, 2, 2, 4, 2)),
        (timing(1, 1, 2), ("unverified", 1, 1, 1, 0, 0, 2, 2)),
        (timing(1, 0, 1, "free-first"), ("missed", 1, 1, 0, 0, 0, 1, 1)),
        (timing(0, 0, 1, "scheduler-bypass"), ("bypassed", 0, 0, 0, 0, 0, 1, 1)),
    ],
)
def test_counts(line: str, expected: tuple):
    log = parse(line)
    row = log.cycle()
    names = (
        "outcome", "drafted", "free_checked", "free_accepted", "verified", "accepted", "emitted",
        "target_forwards",
    )  # fmt: skip
    assert tuple(row[name] for name in names) == expected
    assert (row["wall_ms"], row["reported_ms"]) == (91.25, 91.25)
    assert row["truncated"] is False and log.refused.height == 0


def test_stages_join_their_block():
    log = parse("\n".join([timing(7, 3, 4), stages(), timing(7, 7, 8), timing(7, 1, 2), stages()]))
    assert log.cycles.height == 3
    first, second, third = log.cycles.iter_rows(named=True)
    assert (first["snapshot_ms"], first["draft_ms"], first["verify_ms"]) == (0.5, 13.0, 50.25)
    # commit holds history and restore-select: they are not added to it.
    assert (first["commit_ms"], first["path"], first["replayed"]) == (3.25, "direct-partial", False)
    assert json.loads(first["extra"]) == {
        "capture": "A-B/C-D",
        "restore-select_ms": 0.125,
        "history_ms": 3.0,
        "counts_full": 4,
        "counts_partial": 3,
        "counts_replay": 0,
    }
    assert (first["line"], first["first_line"], first["last_line"]) == (1, 1, 2)
    assert (second["verify_ms"], second["wall_ms"], second["path"]) == (None, 91.25, "block")
    assert third["verify_ms"] == 50.25 and third["last_line"] == 5


def test_a_replay_is_one_forward_more():
    row = parse(f"{timing(7, 3, 4)}\n{stages('restore-replay')}").cycle()
    assert (row["target_forwards"], row["replayed"]) == (3, True)


def test_stages_without_their_block_are_shown():
    log = parse(f"{timing(7, 3, 4)}\n{stages()}\n{stages()}")
    assert log.cycles.height == 1 and log.run["unfit_lines"] == 1
    assert log.run["unfit_examples"][0]["line"] == 3


def test_an_end_of_text_inside_the_accepted_prefix_counts_what_was_emitted():
    row = parse(timing(7, 6, 3)).cycle()
    assert (row["accepted"], row["emitted"], row["truncated"]) == (5, 3, True)


@pytest.mark.parametrize("line", [timing(7, 3, 9), timing(7, 0, 1), timing(3, 5, 6)])
def test_counts_that_contradict_the_ledger_are_refused(line: str):
    log = parse(line)
    assert log.cycles.height == 0 and log.refused.height == 1


def test_another_verifier_is_unknown():
    log = parse(timing(6, 2, 3, "tree"))
    row = log.cycle()
    assert (row["outcome"], row["path"], row["wall_ms"]) == ("unknown", "tree", 91.25)
    assert row["verified"] is None and row["emitted"] is None and row["drafted"] is None
    assert json.loads(row["extra"]) == {"drafted": 6, "accepted": 2, "target_tokens": 3}
    assert log.run["unknown_kinds"] == ["tree"]


def test_events_and_checks_are_no_cycles():
    log = parse(
        "ds4: Qwen MTP accepted-length histogram 1=2 2=1 3=0\n"
        "ds4: Qwen MTP scheduler switching to target decode cycles=9 target_tokens=22 "
        "actual=700.094ms baseline=470.707ms\n"
        "ds4: Qwen MTP history frontier short cache=5 expected=6 rows=2 pos=8 trunk=1\n"
        "ds4: Qwen graph failed stage=MTP-history rows=2 pos=8\n"
        "ds4: Qwen MTP accepted-length histogram 1=4 2=3 3=0\n"
    )
    assert log.cycles.height == 0 and log.run["unfit_lines"] == 0
    facts = {fact["name"]: (fact["value"], fact["line"]) for fact in log.run["facts"]}
    assert facts["qwen_histogram"] == ("1=4 2=3 3=0", 5)
    assert facts["graph_failed"] == ("stage=MTP-history rows=2 pos=8", 4)


@pytest.mark.parametrize("line", ["ds4: Qwen MTP timing drafted=7 acc", "ds4: Qwen MTP new thing"])
def test_misfits_are_shown(line: str):
    assert parse(line).run["unfit_examples"] == [{"line": 1, "text": line}]
