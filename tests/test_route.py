"""Routing: decisions, the blend of a mix, what wrong labels cost, and the policy file."""

from __future__ import annotations

import json
import tomllib
import zlib
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from frames import add_run, cycle, opened

from tauscope.economics import policy, routing
from tauscope.errors import Problem

BET = cycle("bet+", wall_ms=112.0, draft_ms=4.0, verify_ms=108.0)


def arms(store: Path, workload: str, off: float, mtp: float, arm: str = "mtp1", n: int = 6,
         **run: Any) -> None:  # fmt: skip
    """`n` prompts of 80 tokens: `off` and `mtp` ms a token, a little more with each prompt."""
    asked = [{"prompt_id": f"p{i}", "generated_tokens": 80, "output_hash": "h"} for i in range(n)]
    facts = {"workload": workload, "machine": "m", **run}
    log = f"{zlib.crc32(workload.encode())}"
    if off:
        plain = [[cycle("plain", wall_ms=off)] * 80] * n
        add_run(store, f"{log}-off", plain, asked, arm="off", baseline_drafts=False,
                raw_sha256="abc", **facts)  # fmt: skip
    bets = [[{**BET, "wall_ms": 2 * mtp * (1 + i / 2000)} for _ in range(40)] for i in range(n)]
    add_run(store, f"{log}-{arm}", bets, asked, arm=arm, **facts)


@pytest.fixture
def store3(store: Path) -> Path:
    """Code gains, prose loses, chat is undecided for want of prompts."""
    arms(store, "code", 60.0, 50.0)
    arms(store, "prose", 60.0, 63.0)
    arms(store, "chat", 60.0, 50.0, n=3)
    return store


def decided(store: Path, **kwargs: Any) -> dict[str, tuple[str, str | None]]:
    rows = routing.table(opened(store), **kwargs)
    return {r["workload"]: (r["decision"], r["send_to"]) for r in rows.iter_rows(named=True)}


def test_decisions_follow_the_verdicts(store3: Path) -> None:
    assert decided(store3) == {
        "code": ("on", "mtp1"), "prose": ("off", "off"), "chat": ("undecided", None),
    }  # fmt: skip


def test_seconds_saved_and_reasons_stand_beside(store3: Path) -> None:
    rows = {r["workload"]: r for r in routing.table(opened(store3)).iter_rows(named=True)}
    # 80 tokens, 60 against 50 ms and half a thousandth more per prompt.
    assert rows["code"]["saved_s"] == pytest.approx(80 * (60 - 50 * (1 + 2.5 / 2000)) / 1000)
    assert rows["prose"]["saved_s"] < 0
    assert rows["chat"]["reasons"] == ["clusters", "pairs"]


def test_another_arm_that_gains_is_elsewhere(store: Path) -> None:
    arms(store, "prose", 60.0, 63.0)
    arms(store, "prose", 0, 50.0, arm="mtp3")
    arms(store, "code", 60.0, 55.0)
    arms(store, "code", 0, 50.0, arm="mtp3")
    assert decided(store, arm="mtp1") == {
        "prose": ("elsewhere", "mtp3"), "code": ("elsewhere", "mtp3"),
    }  # fmt: skip
    assert decided(store, arm="mtp3") == {"prose": ("on", "mtp3"), "code": ("on", "mtp3")}


def test_an_arm_that_never_ran_is_refused(store3: Path) -> None:
    with pytest.raises(Problem, match="--arm mtp9: no such treated arm; use mtp1"):
        routing.table(opened(store3), arm="mtp9")


def test_without_an_off_arm_the_model_decides_in_columns_of_its_own(store: Path) -> None:
    fold = cycle("fold", wall_ms=72.0, draft_ms=4.0)
    cycles = [[fold] * 9 + [BET] * (30 + n) for n in range(6)]
    told = [{"prompt_id": f"p{n}", "generated_tokens": 9 + 2 * (30 + n)} for n in range(6)]
    add_run(store, "r", cycles, told, arm="mtp1", workload="code")
    row = routing.table(opened(store)).row(0, named=True)
    assert (row["decision"], row["basis"], row["speedup"]) == ("on", "modelled", None)
    assert row["modelled"] > 1
    assert row["saved_s"] is None


def test_a_mix_by_hand(store3: Path) -> None:
    rows = routing.table(opened(store3))
    found = routing.blend(rows, {"code": 0.25, "prose": 0.75})
    times = {r["workload"]: r["ms_per_token"] for r in rows.iter_rows(named=True)}
    assert found.all_on.value == pytest.approx(60 / (0.25 * times["code"] + 0.75 * times["prose"]))
    assert found.routed.value == pytest.approx(60 / (0.25 * times["code"] + 0.75 * 60))
    assert found.losing_share == 0.75
    # (1 − x)(60 − code) = x (prose − 60)
    gain, loss = 60 - times["code"], times["prose"] - 60
    assert found.break_even_share == pytest.approx(gain / (gain + loss))
    even = routing.blend(rows, {"code": 1 - found.break_even_share,
                                "prose": found.break_even_share})  # fmt: skip
    assert even.all_on.value == pytest.approx(1)


def test_a_mix_of_one_workload_has_that_workload_s_interval(store3: Path) -> None:
    rows = routing.table(opened(store3))
    found = routing.blend(rows, {"code": 1.0})
    row = rows.filter(workload="code").row(0, named=True)
    assert (found.all_on.value, found.all_on.lo, found.all_on.hi) == pytest.approx(
        (row["speedup"], row["speedup_lo"], row["speedup_hi"])
    )
    assert (found.break_even_share, found.why) == (None, "no workload of the mix loses")


def test_undecided_traffic_counts_as_off(store3: Path) -> None:
    found = routing.blend(routing.table(opened(store3)), {"chat": 1.0})
    assert found.all_on.value > 1.1
    assert found.routed.value == 1


def test_wrong_labels_cost_what_the_other_path_takes(store3: Path) -> None:
    rows = routing.wrong_labels(routing.table(opened(store3))).to_dicts()
    assert {(r["workload"], r["taken_for"], r["goes_to"]) for r in rows} == {
        ("code", "prose", "off"), ("prose", "code", "mtp1"),
    }  # fmt: skip
    lost = {r["workload"]: r["ms_per_token"] for r in rows}
    assert lost["code"] == pytest.approx(60 - 50 * (1 + 2.5 / 2000))
    assert lost["prose"] == pytest.approx(63 * (1 + 2.5 / 2000) - 60)


@pytest.mark.parametrize("text", ["code", "code=x", "code=0.5", "code=0.5,code=0.5", "=1", "a=2"])
def test_mixes_that_are_none(text: str) -> None:
    with pytest.raises(Problem) as problem:
        routing.shares(text)
    assert problem.value.code == 2


def test_an_unknown_workload_in_a_mix_names_those_known(store3: Path) -> None:
    with pytest.raises(Problem, match=r"--mix agent: .* known are"):
        routing.blend(routing.table(opened(store3)), {"agent": 1.0})


def test_two_machines_are_two_tables_and_no_mix(store3: Path, command: Command) -> None:
    arms(store3, "agent", 60.0, 50.0, machine="other")
    rows = routing.table(opened(store3))
    assert rows["machine"].unique().sort().to_list() == ["m", "other"]
    code, _, err = command("route", "--traces", store3, "--mix", "code=1")
    assert (code, err.count("\n")) == (1, 1)
    assert "pick one with --where" in err


@pytest.mark.parametrize("end", ["toml", "json"])
def test_the_policy_holds_decisions_and_evidence(
    command: Command, store3: Path, tmp_path: Path, end: str
) -> None:
    file = tmp_path / f"policy.{end}"
    code, _, err = command("route", "--traces", store3, "--mix", "code=0.5,prose=0.5",
                           "--policy", file)  # fmt: skip
    assert (code, err) == (0, "")
    text = file.read_text()
    found = tomllib.loads(text) if end == "toml" else json.loads(text)
    assert {name: w["decision"] for name, w in found["workloads"].items()} == {
        "code": "on", "prose": "off", "chat": "undecided",
    }  # fmt: skip
    code_ = found["workloads"]["code"]
    assert code_["speedup_lo"] < code_["speedup"] < code_["speedup_hi"]
    assert (found["arm"], found["machine"], found["format"]) == ("mtp1", "m", 1)
    assert len(found["runs"]) == 6
    assert {run["raw_sha256"] for run in found["runs"] if run["arm"] == "off"} == {"abc"}
    assert found["blend"]["mix"] == {"code": 0.5, "prose": 0.5}
    assert found["made"].endswith("+00:00") and found["tauscope"]


HOSTILE = 'a"b\\c]\n[runs]\x7f\x00 = "中文" #‮\ud800'


def test_a_hostile_label_stays_a_key_of_the_policy(store: Path) -> None:
    name = HOSTILE.replace("\ud800", "")
    arms(store, name, 60.0, 50.0)
    data = opened(store)
    written = policy.document(data, routing.table(data), {}, None)
    found = tomllib.loads(policy.encoded(written, Path("p.toml")).decode())
    assert list(found["workloads"]) == [name]
    assert policy.encoded({HOSTILE: 1.5}, Path("p.toml"))  # a lone surrogate is no TOML
    assert list(json.loads(policy.encoded(written, Path("p.json")))["workloads"]) == [name]


def test_a_policy_of_another_kind_or_of_nothing_is_refused(
    command: Command, store3: Path, tmp_path: Path
) -> None:
    code, _, err = command("route", "--traces", store3, "--policy", tmp_path / "p.yaml")
    assert (code, ".toml or .json" in err) == (2, True)
    code, _, err = command("route", "--traces", store3, "--where", "arm=off",
                           "--policy", tmp_path / "p.toml")  # fmt: skip
    assert (code, "no treated arm" in err) == (1, True)
    assert not list(tmp_path.glob("p.*"))


def test_the_commands_print_tables_and_json(command: Command, store3: Path) -> None:
    code, out, err = command("route", "--traces", store3, "--mix", "code=0.5,prose=0.5")
    assert (code, err) == (0, "")
    assert "undecided" in out and "all on breaks even when" in out
    _, out, _ = command("route", "--traces", store3, "--json")
    assert len(json.loads(out)["routes"]) == 3
    code, out, err = command("cost", "--traces", store3)
    assert (code, err) == (0, "")
    assert "break-even, as committed acceptance" in out
    _, out, _ = command("cost", "--traces", store3, "--json")
    assert {"costs", "steps", "breakeven", "waterfall", "bottlenecks", "modelled", "course",
            "paths", "positions", "over_time"} == set(json.loads(out))  # fmt: skip


def test_what_is_not_routed_is_named_with_the_reason(command: Command, store3: Path) -> None:
    arms(store3, "poem", 60.0, 50.0, arm="mtp2")
    add_run(store3, "lone", [[cycle("plain", wall_ms=60.0)] * 9], workload="essay", arm="off",
            machine="m")  # fmt: skip
    _, out, _ = command("route", "--traces", store3)
    assert "not routed: poem: arm mtp1 did not run; mtp2 did: see --arm" in out
    assert "not routed: essay: no arm with speculation, only off" in out
    _, out, _ = command("route", "--traces", store3, "--json")
    assert [row["workload"] for row in json.loads(out)["left_out"]] == ["essay", "poem"]


def test_a_share_may_be_a_percentage() -> None:
    assert routing.shares("code=50%,prose=.5") == {"code": 0.5, "prose": 0.5}
    with pytest.raises(Problem, match="WORKLOAD=SHARE"):
        routing.shares("code=150%")


def test_a_mix_of_which_nothing_is_decided_is_all_off(command: Command, store3: Path) -> None:
    _, out, _ = command("route", "--traces", store3, "--mix", "chat=100%")
    assert "all off: nothing is decided for speculation" in out
