"""DSpark: printed counts are kept, and nothing is read into them."""

from __future__ import annotations

import json

import pytest
from parsed import SPEED, START, parse


def timing(drafted: int = 4, sent: int = 3, ok: int = 2) -> str:
    return (
        f"ds4: dspark timing drafted={drafted} verify={sent} verified={ok} decode=27.500 ms "
        "draft=110.250 ms verify=52.000 ms total=195.000 ms"
    )


DETAIL = "ds4: dspark timing detail pushes_init=1 pushes_verify=2 push_init=0.500 ms"


def test_printed_counts_and_both_meanings_of_verify():
    row = parse(timing()).cycle()
    assert (row["outcome"], row["drafted"], row["verified"], row["accepted"]) == (
        "unknown",
        4,
        3,
        2,
    )
    assert row["emitted"] is None and row["free_checked"] is None and row["free_accepted"] is None
    assert (row["base_ms"], row["draft_ms"], row["verify_ms"]) == (27.5, 110.25, 52.0)
    assert (row["reported_ms"], row["wall_ms"]) == (195.0, 195.0)


def test_detail_belongs_to_the_line_before():
    log = parse("\n".join([timing(), DETAIL, timing(2, 1, 0), timing(), DETAIL]))
    assert log.cycles.height == 3
    first = log.cycle()
    assert json.loads(first["extra"]) == {
        "pushes_init": 1,
        "pushes_verify": 2,
        "push_init_ms": 0.5,
    }
    assert (first["line"], first["last_line"]) == (1, 2)
    assert log.cycles["extra"].is_null().to_list() == [False, True, False]


def test_detail_alone_is_shown():
    assert parse(DETAIL).run["unfit_lines"] == 1


def test_spec_lines():
    log = parse(
        "ds4: DSpark spec enter accepted=1 max=9 valid=1 len=4 pos=77\n"
        "ds4: DSpark spec miss first draft=5 base=9\n"
        "ds4: DSpark spec skip no-draft\n"
        "ds4: DSpark spec partial drafted=5 verified=2 accepted=3\n"
        "ds4: DSpark spec partial drafted=5 verified=5 accepted=6\n"
        "ds4: DSpark spec accept drafted=3 accepted=4\n"
        "ds4: DSpark spec partial drafted=5 verified=2 accepted=7\n"
        "ds4: DSpark scheduler skip remaining=7\n"
        "ds4: DSpark scheduler pause cycles=8\n"
        "ds4: DSpark break-even pause cycles=8\n"
    )
    assert log.run["unfit_lines"] == 0 and log.refused.height == 0
    assert log.outcomes() == [
        "missed", "undrafted", "unknown", "all_accepted", "all_accepted", "unknown",
    ]  # fmt: skip
    miss, skip, part, full, accept, odd = log.cycles.iter_rows(named=True)
    assert (miss["draft_token"], miss["next_token"], miss["emitted"]) == (5, 9, 1)
    assert miss["drafted"] is None and miss["free_checked"] == 1 and miss["free_accepted"] == 0
    assert (skip["drafted"], skip["emitted"]) == (0, 1)
    # 2 confirmed, the first of them free: one by verification; how many were sent is not said.
    assert (part["accepted"], part["free_accepted"], part["emitted"]) == (1, 1, 3)
    assert part["verified"] is None
    assert (full["verified"], full["accepted"], full["emitted"]) == (4, 4, 6)
    assert (accept["verified"], accept["accepted"], accept["emitted"]) == (2, 2, 4)
    # Counts that don't add up mean something else than documented.
    assert odd["emitted"] is None and odd["accepted"] is None and odd["drafted"] is None
    assert json.loads(odd["extra"]) == {"drafted": 5, "verified": 2, "accepted": 7}


@pytest.mark.parametrize("timing_first", [True, False])
def test_a_cycle_with_both_lines_is_one(timing_first: bool):
    spec = "ds4: DSpark spec partial drafted=4 verified=3 accepted=4"
    pair = [timing(), DETAIL, spec] if timing_first else [spec, timing(), DETAIL]
    log = parse("\n".join(pair * 3))
    assert log.cycles.height == 3
    row = log.cycle(1)
    assert (row["emitted"], row["accepted"], row["wall_ms"]) == (4, 2, 195.0)
    printed = json.loads(row["extra"])
    assert (printed["printed_verify"], printed["printed_verified"]) == (3, 2)
    assert (row["first_line"], row["last_line"]) == (4, 6)


@pytest.mark.parametrize("detail", [True, False])
@pytest.mark.parametrize("timing_first", [True, False])
def test_lines_that_count_different_drafts_are_two_cycles(timing_first: bool, detail: bool):
    spec = "ds4: DSpark spec partial drafted=5 verified=3 accepted=4"
    timed = [timing(), DETAIL] if detail else [timing()]
    lines = [*timed, spec] if timing_first else [spec, *timed]
    log = parse("\n".join(lines))
    drafted = [4, 5] if timing_first else [5, 4]
    assert log.cycles["drafted"].to_list() == drafted
    assert log.cycles["wall_ms"].to_list() == ([195.0, None] if timing_first else [None, 195.0])
    assert log.run["unfit_lines"] == 0


STATS = (
    "ds4: DSpark stats cycles=41 first_tokens=41 proposed=96 accepted_draft=60 "
    "accept_rate=62.50% avg_accept=1.463"
)


def facts(log) -> dict:
    return {fact["name"]: fact["value"] for fact in log.run["facts"]}


@pytest.mark.parametrize("cut", [len(STATS), 60, 64, 52])
def test_the_aggregate_is_facts_wherever_it_is_wrapped(cut: int):
    log = parse(f"{START}\n{STATS[:cut]}\n{STATS[cut:].removeprefix(' ')}\n{SPEED}")
    assert log.cycles.height == 0 and log.run["unfit_lines"] == 0
    found = facts(log)
    assert found["dspark_stats.cycles"] == "41"
    assert found["dspark_stats.accept_rate"] == "62.50%"
    assert found["dspark_stats.avg_accept"] == "1.463"


def test_the_last_aggregate_counts_and_text_after_it_is_not_its_own():
    log = parse(f"{STATS}\n{STATS.replace('cycles=41', 'cycles=99')}\nx = 3 is code, not a field\n")
    found = facts(log)
    assert found["dspark_stats.cycles"] == "99"
    assert not any(name.endswith(".x") for name in found)


def test_another_aggregate_is_a_fact():
    log = parse("ds4: Qwen3.8 mtp: 50 verify cycles, 48 first drafts accepted (96.0%)")
    assert log.cycles.height == 0 and log.run["unfit_lines"] == 0
    assert facts(log)["verify_cycles"].endswith("(96.0%)")
