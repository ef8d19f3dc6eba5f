"""Legacy MTP: every line shape gives the counts and times that its cycle had."""

from __future__ import annotations

import json

import pytest
from parsed import CONF_HIT, CONF_LOST, FOLD, HIT, LOST, MISS, parse

COUNTS = (
    "outcome", "drafted", "free_checked", "free_accepted", "verified", "accepted", "resampled",
    "emitted", "target_forwards",
)  # fmt: skip


def counts(line: str) -> tuple:
    log = parse(line)
    assert log.cycles.height == 1 and log.refused.height == 0 and log.run["unfit_lines"] == 0
    row = log.cycle()
    return tuple(row[name] for name in COUNTS)


TIMES = "draft=2.500 ms snapshot=0.250 ms verify=41.000 ms"
SHAPES = {
    MISS: ("missed", 1, 1, 0, 0, 0, 0, 1, 1),
    FOLD: ("folded", 2, 1, 1, 0, 0, 0, 2, 2),
    HIT: ("all_accepted", 2, 1, 1, 1, 1, 0, 3, 2),
    LOST: ("rejected", 2, 1, 1, 1, 0, 0, 2, 2),
    f"ds4: mtp timing micro drafted=2 committed=1 {TIMES} exact_replay=25.100 ms total=69.000 ms": (
        "rejected", 2, 1, 1, 1, 0, 0, 2, 3,
    ),
    f"ds4: mtp timing decode2 drafted=2 committed=2 {TIMES} total=44.000 ms": (
        "all_accepted", 2, 1, 1, 1, 1, 0, 3, 2,
    ),
    f"ds4: mtp timing decode2 drafted=2 committed=1 {TIMES} prefix=0.125 ms total=44.000 ms": (
        "rejected", 2, 1, 1, 1, 0, 0, 2, 2,
    ),
    f"ds4: mtp timing micro drafted=1 committed=1 {TIMES} total=44.000 ms": (
        "unverified", 1, 1, 1, 0, 0, 0, 2, 2,
    ),
    f"ds4: mtp timing micro drafted=5 committed=5 {TIMES} total=44.000 ms": (
        "all_accepted", 5, 1, 1, 4, 4, 0, 6, 2,
    ),
    f"ds4: mtp timing micro drafted=5 committed=3 {TIMES} replay=30.500 ms total=75.000 ms": (
        "partial", 5, 1, 1, 4, 2, 0, 4, 3,
    ),
    f"ds4: mtp timing micro drafted=5 committed=1 {TIMES} prefix=0.500 ms total=44.000 ms": (
        "rejected", 5, 1, 1, 4, 0, 0, 2, 2,
    ),
    "ds4: mtp timing seq drafted=4 verified=2 draft=7.000 ms verify=51.000 ms total=99.000 ms": (
        "fallback", 4, 1, 1, 2, 1, 0, 3, 4,
    ),
    "ds4: mtp timing seq drafted=2 verified=2 draft=7.000 ms verify=51.000 ms total=99.000 ms": (
        "fallback", 2, 1, 1, 1, 1, 0, 3, 4,
    ),
    "ds4: mtp timing combined drafted=3 committed=2 total=88.000 ms": (
        "partial", 3, 0, 0, 3, 2, 0, 3, 1,
    ),
    "ds4: mtp timing combined drafted=3 committed=0 total=88.000 ms": (
        "rejected", 3, 0, 0, 3, 0, 0, 1, 1,
    ),
    "ds4: mtp timing sample drafted=3 committed=1 resampled=1 total=88.000 ms": (
        "partial", 3, 0, 0, 3, 1, 1, 3, 2,
    ),
    "ds4: mtp timing sample drafted=2 committed=2 resampled=0 total=88.000 ms": (
        "all_accepted", 2, 0, 0, 2, 2, 0, 3, 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("line", SHAPES, ids=lambda line: line[9:60])
def test_counts_of_every_shape(line: str):
    assert counts(line) == SHAPES[line]


def test_a_fold_decodes_and_does_not_verify():
    row = parse(FOLD).cycle()
    assert (row["decode_ms"], row["verify_ms"], row["draft_ms"]) == (26.3, None, 2.1)
    assert (row["reported_ms"], row["wall_ms"], row["base_ms"]) == (28.5, None, None)
    assert (row["margin"], row["threshold"]) == (1.25, 3.0)
    assert row["path"] == "margin-skip"


def test_times_of_a_bet():
    row = parse(LOST).cycle()
    assert (row["draft_ms"], row["snapshot_ms"], row["verify_ms"]) == (2.3, 0.0, 39.9)
    assert (row["commit_ms"], row["reported_ms"], row["wall_ms"]) == (0.4, 42.8, None)
    assert row["path"] == "micro" and row["replayed"] is False and row["threshold"] is None


@pytest.mark.parametrize("key", ["replay", "exact_replay"])
def test_a_replay_is_commit_time(key: str):
    row = parse(
        f"ds4: mtp timing micro drafted=2 committed=1 {TIMES} {key}=25.100 ms total=69.000 ms"
    ).cycle()
    assert (row["commit_ms"], row["replayed"]) == (25.1, True)


def test_one_pass_kinds_time_the_whole_cycle():
    row = parse("ds4: mtp timing combined drafted=3 committed=2 total=88.000 ms").cycle()
    assert (row["wall_ms"], row["reported_ms"]) == (88.0, 88.0)


def test_conf_and_timing_are_one_cycle():
    log = parse("\n".join([CONF_HIT, HIT, MISS, CONF_LOST, LOST, FOLD]))
    assert log.outcomes() == ["all_accepted", "missed", "rejected", "folded"]
    assert log.cycles["cycle"].to_list() == [0, 1, 2, 3]
    assert log.cycles["margin"].to_list() == [5.125, None, 3.0625, 1.25]
    assert log.cycles["draft_token"].to_list() == [71, 811, 72, None]
    assert log.cycles["next_token"].to_list() == [71, None, 90, None]
    assert log.cycles["line"].to_list() == [2, 3, 5, 6]
    assert log.cycles["first_line"].to_list() == [1, 3, 4, 6]
    assert log.cycles["last_line"].to_list() == [2, 3, 5, 6]


def test_events_may_stand_between_conf_and_timing():
    log = parse("\n".join([CONF_HIT, "ds4: mtp probe token=4 draft=4 hit=3/7", HIT]))
    assert log.outcomes() == ["all_accepted"]


def test_conf_alone_is_the_cycle():
    log = parse("\n".join([CONF_HIT, CONF_LOST]))
    assert log.outcomes() == ["all_accepted", "rejected"]
    first, second = log.cycles.iter_rows(named=True)
    assert (first["verified"], first["accepted"], first["emitted"]) == (1, 1, 3)
    assert (second["verified"], second["accepted"], second["emitted"]) == (1, 0, 2)
    assert first["reported_ms"] is None and first["verify_ms"] is None
    assert first["target_forwards"] == 2
    # Whether the reject was replayed is printed in the timing line only.
    assert second["target_forwards"] is None and second["replayed"] is None


def test_conf_of_another_cycle_does_not_join():
    log = parse("\n".join([CONF_LOST, HIT]))
    assert log.outcomes() == ["rejected", "all_accepted"]
    assert log.cycles["margin"].to_list() == [3.0625, None]


def test_conf_of_a_capped_cycle_has_no_gate():
    conf = (
        "ds4: mtp conf drafted=1 committed=1 mtp_top=-1 runner=-1 margin=0.000000 "
        "target_next=-1 draft_next=-1"
    )
    micro = f"ds4: mtp timing micro drafted=1 committed=1 {TIMES} total=44.000 ms"
    for text in (conf, f"{conf}\n{micro}"):
        log = parse(text)
        assert log.outcomes() == ["unverified"]
        row = log.cycle()
        assert (row["margin"], row["draft_token"], row["next_token"]) == (None, None, None)


def test_conf_of_a_deep_cycle_shows_the_last_draft():
    conf = (
        "ds4: mtp conf drafted=4 committed=4 mtp_top=7 runner=8 margin=2.500000 "
        "target_next=7 draft_next=7"
    )
    micro = f"ds4: mtp timing micro drafted=4 committed=4 {TIMES} total=44.000 ms"
    row = parse(f"{conf}\n{micro}").cycle()
    assert row["margin"] is None and row["draft_token"] is None
    assert json.loads(row["extra"]) == {"conf_margin": 2.5, "conf_top": 7, "conf_next": 7}


def test_a_sequential_fallback_is_one_cycle_however_much_of_it_is_logged():
    timing = (
        "ds4: mtp timing seq drafted=3 verified=1 draft=1.000 ms verify=2.000 ms total=3.000 ms"
    )
    failed = "ds4: mtp decode2 verifier failed, falling back to sequential"
    miss = "ds4: mtp spec seq miss at=1 draft=5 base=6 drafted=3 accepted=2"
    end = "ds4: mtp spec seq partial drafted=3 verified=1 accepted=2"
    for lines in ([timing], [failed, miss, timing, end], [failed, miss, end], [end]):
        log = parse("\n".join(lines))
        assert log.outcomes() == ["fallback"], lines
        row = log.cycle()
        assert (row["drafted"], row["verified"], row["accepted"]) == (3, 1, 0)
        assert (row["emitted"], row["target_forwards"], row["path"]) == (2, 3, "seq")
        assert log.run["unfit_lines"] == 0
    full = parse("ds4: mtp spec seq accept drafted=3 accepted=4").cycle()
    assert (full["verified"], full["accepted"], full["emitted"]) == (2, 2, 4)


def test_known_lines_that_are_no_cycle():
    log = parse(
        "ds4: mtp probe token=4 draft=4 hit=3/7\n"
        "ds4: mtp probe draft failed\n"
        "ds4: mtp spec micro verifier failed, falling back to sequential\n"
        "ds4: mtp spec seq miss at=1 draft=5 base=6 drafted=3 accepted=2\n"
    )
    assert log.cycles.height == 0 and log.run["unfit_lines"] == 0
    assert {"name": "mtp_probe", "value": "3/7", "line": 1} in log.run["facts"]


def test_extra_fields_are_kept():
    row = parse(
        "ds4: mtp timing combined drafted=2 committed=1 cap=2 ewma_p1=0.53 total=70.000 ms"
    ).cycle()
    assert row["outcome"] == "partial" and json.loads(row["extra"]) == {"cap": 2, "ewma_p1": 0.53}
    row = parse(
        "ds4: mtp timing decode2 drafted=2 committed=2 draft=2.000 ms snapshot=0.000 ms "
        "verify=41.000 ms target=39.000 ms head=2.000 ms target_calls=2 emitted=3 total=43.500 ms"
    ).cycle()
    assert row["outcome"] == "all_accepted"
    assert json.loads(row["extra"]) == {"target_ms": 39.0, "head_ms": 2.0}


@pytest.mark.parametrize(
    ("said", "reason"), [("emitted=4", "emitted=4"), ("target_calls=5", "target_calls=5")]
)
def test_a_line_that_contradicts_itself_is_refused(said: str, reason: str):
    log = parse(
        "ds4: mtp timing decode2 drafted=2 committed=2 draft=2.000 ms snapshot=0.000 ms "
        f"verify=41.000 ms {said} total=43.500 ms"
    )
    assert log.cycles.height == 0 and log.run["refused_rows"] == 1
    assert reason in log.refused["reason"][0]


def test_an_unknown_kind_keeps_what_it_printed():
    log = parse(
        "ds4: mtp timing tree-3 drafted=9 committed=4 draft=5.000 ms total=91.500 ms mode=a/b"
    )
    row = log.cycle()
    assert (row["outcome"], row["path"], row["reported_ms"]) == ("unknown", "tree-3", 91.5)
    assert row["draft_ms"] == 5.0
    for name in ("drafted", "free_checked", "verified", "accepted", "emitted", "target_forwards"):
        assert row[name] is None
    printed = json.loads(row["extra"])
    assert printed["drafted"] == 9 and printed["committed"] == 4 and printed["mode"] == "a/b"
    assert log.run["unknown_kinds"] == ["tree-3"]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (HIT.replace("committed=2", "committed=3"), "accepted 2 > verified 1"),
        (HIT.replace("committed=2", "committed=0"), "accepted -1 < 0"),
        (FOLD.replace("committed=1", "committed=2"), "accepted 1 > verified 0"),
        (LOST.replace("total=42.800", "total=-1.000"), "reported_ms -1.0 < 0"),
        (HIT.replace("drafted=2", "drafted=-2"), "drafted -2 < 0"),
    ],
)
def test_a_row_that_breaks_a_bound_is_refused(line: str, rule: str):
    log = parse(f"{MISS}\n{line}\n{MISS}")
    assert log.outcomes() == ["missed", "missed"]
    assert log.cycles["cycle"].to_list() == [0, 2]
    assert log.refused["reason"].to_list() == [rule]
    assert log.refused["line"].to_list() == [2] and log.run["refused_rows"] == 1


@pytest.mark.parametrize(
    "line",
    [
        "ds4: mtp timing",
        "ds4: mtp timing mic",
        "ds4: mtp timing micro drafted=2 com",
        "ds4: mtp timing micro drafted=2 committed=2",
        HIT[:-3],
        HIT + " and more",
        HIT.replace("draft=2.200", "draft=2.2.0"),
        HIT.replace("draft=2.200", "draft=inf"),
        HIT.replace("drafted=2", "drafted=99999999999999999999"),
        HIT.replace("drafted=2", "drafted=2000000"),
        FOLD.replace("margin=1.250 ", ""),
        CONF_HIT.replace(" draft_next=71", ""),
        "ds4: mtp spec miss first draft=",
        "ds4: mtp spec miss first draft=٣",
        "ds4: mtp something new",
    ],
)
def test_a_line_that_fits_no_shape_is_counted_and_shown(line: str):
    log = parse(f"{MISS}\n{line}\n{FOLD}")
    assert log.outcomes() == ["missed", "folded"]
    assert log.run["unfit_lines"] == 1
    assert log.run["unfit_examples"] == [{"line": 2, "text": line}]


def test_ten_cycles():
    log = parse("\n".join([MISS] * 5 + [FOLD] + [CONF_HIT, HIT] * 2 + [CONF_LOST, LOST] * 2))
    assert log.cycles.height == 10 and log.cycles["emitted"].sum() == 17
    assert (log.cycles["verified"].sum(), log.cycles["accepted"].sum()) == (4, 2)
    assert log.cycles["drafted"].sum() == 15
