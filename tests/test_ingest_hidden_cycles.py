"""What a log says of cycles that print nothing: `hidden_cycles` of its runs."""

from __future__ import annotations

import json

import pytest
from parsed import CONF_HIT, CONF_LOST, FOLD, HIT, LOST, MISS, SPEED, START, parse

COMBINED = "ds4: mtp timing combined drafted=3 committed=2 total=88.000 ms"
SAMPLE = "ds4: mtp timing sample drafted=3 committed=1 resampled=1 total=88.000 ms"
QWEN = "ds4: Qwen MTP timing drafted=7 accepted=3 target_tokens=4 cycle=91.250 ms verifier=block"
GLM = "ds4: glm mtp cycle: verify2 50.1 ms, head+draft 3.2 ms, ACCEPT (draft 1 'a' vs true 1 'a')"
DSPARK = (
    "ds4: dspark timing drafted=5 verify=4 verified=2 decode=9.000 ms draft=2.000 ms "
    "verify=30.000 ms total=41.000 ms"
)
BROKEN = HIT.replace("committed=2", "committed=9")
QWEN_BROKEN = QWEN.replace("target_tokens=4", "target_tokens=9")
TIMED = [FOLD, CONF_HIT, HIT, LOST]  # 1 + 1 + 3 + 2 tokens


@pytest.mark.parametrize(
    ("lines", "tokens", "expected"),
    [
        pytest.param([*TIMED, MISS], None, False, id="folds and misses are printed"),
        pytest.param(TIMED, None, True, id="misses need a switch of their own"),
        pytest.param([CONF_HIT, CONF_LOST], None, True, id="folds print as timing lines"),
        pytest.param([CONF_HIT, MISS], None, True, id="misses, and folds in the dark"),
        pytest.param([MISS, MISS], None, True, id="misses only"),
        pytest.param(TIMED, 7, False, id="the count adds up"),
        pytest.param(TIMED, 11, False, id="what was dark is recovered"),
        pytest.param(TIMED, 6, True, id="the count is below the cycles"),
        pytest.param([CONF_HIT], 3, True, id="a count without timing lines"),
        pytest.param([*TIMED, "ds4: mtp timing odd total=3.0 ms"], 7, True, id="an unknown kind"),
        pytest.param([COMBINED, SAMPLE], None, False, id="every combined pass prints"),
        pytest.param([COMBINED, FOLD], None, True, id="some folds among them"),
        pytest.param([QWEN], None, False, id="qwen"),
        pytest.param([GLM], None, False, id="glm"),
        pytest.param([DSPARK], None, None, id="dspark"),
        pytest.param([*TIMED, MISS, BROKEN], None, True, id="a refused row"),
        pytest.param([*TIMED, BROKEN], 7, True, id="a refused row beside a count that adds up"),
        pytest.param([BROKEN], 2, True, id="a refused row only"),
        pytest.param([QWEN, QWEN_BROKEN], None, True, id="qwen, a refused row"),
        pytest.param([], None, None, id="no cycles"),
        pytest.param([], 40, None, id="no cycles, counted"),
    ],
)
def test_hidden_cycles(lines: list[str], tokens: int | None, expected: bool | None):
    log = parse("\n".join([START, *lines, SPEED]), tokens=tokens)
    assert log.run["hidden_cycles"] is expected


def test_each_run_is_judged_by_its_own_lines():
    log = parse("\n".join([START, *TIMED, SPEED, START, *TIMED, MISS, SPEED, START, SPEED]))
    assert log.runs["hidden_cycles"].to_list() == [True, False, None]


def test_the_value_so_far_changes_with_the_first_miss():
    log = "\n".join([START, *TIMED, MISS, ""]).encode()
    parser = parse(b"").parser.__class__(log_id="log")
    cut = log.index(MISS.encode())
    assert parser.feed(log[:cut]).runs["hidden_cycles"].to_list() == [True]
    assert parser.feed(log[cut:]).runs["hidden_cycles"].to_list() == [False]
    assert parser.finish().runs["hidden_cycles"].to_list() == [False]


@pytest.mark.parametrize(("gen", "expected"), [(7, False), (8, True)])
def test_the_count_a_server_prints(gen: int, expected: bool):
    head = "ds4-server: chat ctx=0..20:20"
    lines = [
        f"{head} prompt start",
        *TIMED,
        f"{head} gen={gen} finish=stop 1.000s",
    ]
    log = parse("\n".join([START, *lines]))
    assert log.requests["generated_tokens"].to_list() == [gen]
    assert log.run["hidden_cycles"] is expected


def test_a_trace_has_every_cycle():
    run = {"tauscope": 1, "kind": "run", "run": "r", "engine": "x"}
    cycle = {
        "tauscope": 1, "kind": "cycle", "run": "r", "drafted": 1, "free_checked": 1,
        "free_accepted": 0, "verified": 0, "accepted": 0, "emitted": 1,
    }  # fmt: skip
    lines = [json.dumps(run)]
    assert parse("\n".join(lines)).run["hidden_cycles"] is None
    lines.append(json.dumps(cycle))
    log = parse("\n".join(lines))
    assert log.cycles.height == 1 and log.run["hidden_cycles"] is False
