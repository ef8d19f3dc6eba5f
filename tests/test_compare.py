"""Two selections held against each other: pairs, speed, costs, outputs, what moved."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import simulated
from conftest import Command
from frames import add_run, cycle

from tauscope import compare, pasted, select
from tauscope.errors import Problem

PLAIN = cycle("plain", wall_ms=68.0)
BET = cycle("bet+", wall_ms=112.0, draft_ms=4.0, verify_ms=108.0)
OFF = {"arm": "off", "workload": "code", "baseline_drafts": False}
MTP = {"arm": "mtp1", "workload": "code"}


def held(a: str | Path, b: str | Path) -> compare.Comparison:
    return compare.compare(select.opened(str(a)), select.opened(str(b)))


def asked(n: int, tokens: int, **columns: Any) -> list[dict]:
    return [{"prompt_id": f"p{i}", "generated_tokens": tokens, "output_hash": f"h{i}", **columns}
            for i in range(n)]  # fmt: skip


@pytest.fixture
def two_arms(store: Path) -> Path:
    """Six prompts of 80 tokens: 68 ms a token, and 56 ms and a little more with each prompt."""
    add_run(store, "off", [[PLAIN] * 80] * 6, asked(6, 80), **OFF)
    bets = [[{**BET, "wall_ms": 112.0 + n / 10}] * 40 for n in range(6)]
    add_run(store, "mtp", bets, asked(6, 80), **MTP)
    return store


def test_speed_outcomes_costs_and_outputs_by_hand(two_arms: Path) -> None:
    found = held(f"{two_arms}:arm=off", f"{two_arms}:arm=mtp1")
    row = found.speedups.row(0, named=True)
    assert row["speedup"] == pytest.approx(68 / (112.25 / 2))
    assert (row["pairs"], row["said"], row["failed"]) == (6, "faster", [])
    mix = {r["outcome"]: (r["cycles_a"], r["cycles_b"]) for r in found.outcomes.to_dicts()}
    assert mix == {"all_accepted": (0, 240), "undrafted": (480, 0)}
    values = {r["metric"]: (r["a"], r["b"]) for r in found.metrics.to_dicts()}
    assert values["tau"] == (1, 2)
    assert values["committed_acceptance"] == (None, 1)
    costs = {r["cost"]: (r["a"], r["b"]) for r in found.costs.to_dicts()}
    assert costs["plain step"] == (68, 68)  # the candidate's own store has the off arm
    assert costs["one verification"] == (None, 108)
    outputs = found.outputs.row(0, named=True)
    assert (outputs["prompts"], outputs["equal"], outputs["lengths_differ"]) == (6, 6, 0)


def test_what_moved_adds_up_to_the_time_won(two_arms: Path) -> None:
    found = held(f"{two_arms}:arm=off", f"{two_arms}:arm=mtp1")
    speed = found.speedups.row(0, named=True)
    assert found.parts["moved"].sum() == pytest.approx(
        speed["ms_per_token_a"] - speed["ms_per_token_b"]
    )
    most = next(iter(pasted.moved_most(found.parts).values()))
    assert (most["part"], most["moved"]) == ("accepted", 34)


def test_a_slower_machine_moves_the_plain_step(tmp_path: Path) -> None:
    for name, ms in (("a", 67.8), ("b", 69.8)):
        simulated.made(tmp_path / name, [simulated.OFF], None, {"forward_ms": [ms, 107.8]})
    found = held(tmp_path / "a", tmp_path / "b")
    most = next(iter(pasted.moved_most(found.parts).values()))
    assert (most["part"], most["moved"]) == ("step", pytest.approx(-2.0, abs=0.05))
    assert found.speedups["said"].to_list() == ["slower"]


def test_only_prompts_in_both_count_everywhere(store: Path) -> None:
    add_run(store, "off", [[PLAIN] * 80] * 3, asked(3, 80), **OFF)
    slow = {**PLAIN, "wall_ms": 500.0}
    add_run(store, "off2", [[slow] * 80], [{"prompt_id": "alone"}], **OFF)
    add_run(store, "mtp", [[BET] * 40] * 3, asked(3, 80), **MTP)
    found = held(f"{store}:arm=off", f"{store}:arm=mtp1")
    row = found.speedups.row(0, named=True)
    assert (row["ms_per_token_a"], row["pairs"]) == (68, 3)
    assert row["failed"] == ["clusters", "pairs"]
    assert found.parts.filter(part="step")["a"].to_list() == [68]
    assert found.outcomes.filter(outcome="undrafted")["cycles_a"].to_list() == [240]


def test_without_names_it_goes_by_request(store: Path) -> None:
    add_run(store, "off", [[PLAIN] * 80] * 6, **OFF)
    add_run(store, "mtp", [[BET] * 40] * 5, **MTP)
    found = held(f"{store}:arm=off", f"{store}:arm=mtp1")
    row = found.speedups.row(0, named=True)
    assert (row["paired"], row["clusters"]) == (False, 5)
    assert "pairs" in row["failed"]
    assert found.outputs["prompts"].to_list() == [0]


def test_lengths_go_before_hashes(store: Path) -> None:
    add_run(store, "off", [[PLAIN] * 80] * 4, asked(4, 80), **OFF)
    changed = asked(4, 80)
    changed[0]["generated_tokens"] = 79  # the same hash: a cut output that begins alike
    changed[1]["output_hash"] = "else"
    changed[2]["output_hash"] = None
    add_run(store, "mtp", [[BET] * 40] * 4, changed, **MTP)
    row = held(f"{store}:arm=off", f"{store}:arm=mtp1").outputs.row(0, named=True)
    assert (row["lengths_differ"], row["equal"], row["unequal"], row["unknown"]) == (1, 1, 2, 1)
    assert row["differing"] == ["code/p0", "code/p1"]


def test_two_stores_compare_arm_by_arm(tmp_path: Path) -> None:
    runs = [simulated.OFF, simulated.MTP1, simulated.SHADOW]
    simulated.made(tmp_path / "a", runs)
    simulated.made(tmp_path / "b", runs, None, {"draft_ms": 8.0})
    found = held(tmp_path / "a", tmp_path / "b")
    rows = {row["arm_a"]: row for row in found.speedups.iter_rows(named=True)}
    assert set(rows) == {"off", "mtp1"}  # the shadow arm measures, and is never compared
    assert rows["mtp1"]["said"] == "slower"
    drafting = found.parts.filter(part="drafting", arm_a="mtp1").row(0, named=True)
    assert drafting["moved"] == pytest.approx(-4 * 1 / 1.46, rel=0.05)  # 4 ms a cycle of τ 1.46


def test_a_baseline_that_drafts_is_a_failed_condition(store: Path) -> None:
    add_run(store, "off", [[PLAIN] * 80] * 6, asked(6, 80), **{**OFF, "baseline_drafts": True})
    add_run(store, "mtp", [[BET] * 40] * 6, asked(6, 80), **MTP)
    row = held(f"{store}:arm=off", f"{store}:arm=mtp1").speedups.row(0, named=True)
    assert (row["said"], row["failed"]) == ("undecided", ["baseline"])


def test_cells_of_one_side_are_named(two_arms: Path) -> None:
    add_run(two_arms, "prose", [[BET] * 40], arm="mtp1", workload="prose")
    found = held(f"{two_arms}:arm=off", f"{two_arms}:arm=mtp1")
    assert found.only_a == []
    assert found.only_b == [f"only in {two_arms}:arm=mtp1: workload prose"]


def test_another_machine_is_not_compared(tmp_path: Path) -> None:
    add_run(tmp_path / "a", "r", [[PLAIN]], **OFF, machine="M5")
    add_run(tmp_path / "b", "r", [[PLAIN]], **OFF, machine="GB10")
    with pytest.raises(Problem, match="no workload with the same model and machine in both"):
        held(tmp_path / "a", tmp_path / "b")


def test_selectors(two_arms: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert select.split(f"{two_arms}:arm=mtp1,workload=code,workload=chat") == (
        str(two_arms), {"arm": ["mtp1"], "workload": ["code", "chat"]},
    )  # fmt: skip
    odd = two_arms.parent / "a:arm=off"
    odd.mkdir()
    assert select.split(str(odd)) == (str(odd), {})  # what exists is meant as it is
    assert select.split(":arm=off") == ("", {"arm": ["off"]})
    monkeypatch.setenv("TAUSCOPE_TRACES", str(two_arms))
    assert held(":arm=off", ":arm=mtp1").speedups.height == 1


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ("{}", "{}", "both read the same store and more than one arm; pick one each"),
        ("{}:arm=none", "{}", "no cycle, request or speed in this selection"),
        ("{}:colour=red", "{}", "colour: not a column to group or pick by"),
        ("arm=off", "{}", "write STORE:COLUMN=VALUE"),
        ("{}/nowhere", "{}", "no such store"),
    ],
)
def test_wrong_selectors_say_what_to_do(
    command: Command, two_arms: Path, a: str, b: str, words: str
) -> None:
    code, out, err = command("compare", a.format(two_arms), b.format(two_arms))
    assert (code in (1, 2), out) == (True, "")
    assert words in err and err.count("\n") == 1


def test_the_command_prints_tables_and_json(command: Command, two_arms: Path) -> None:
    sides = f"{two_arms}:arm=off", f"{two_arms}:arm=mtp1"
    code, out, err = command("compare", *sides)
    assert (code, err) == (0, "")
    assert "+21.2 %" in out and "gain of accepted drafts +34.00 ms/token" in out
    code, out, _ = command("compare", *sides, "--json")
    assert (code, json.loads(out)["speedups"][0]["pairs"]) == (0, 6)


HOSTILE = "a|b`c`<script>alert(1)</script>[x](http://e.example)@user #1 ![i](x)\n| --- |\x1b[31m‮"


def test_markdown_keeps_hostile_labels_as_text(command: Command, store: Path) -> None:
    facts = {"workload": HOSTILE}
    add_run(store, "off", [[PLAIN] * 80] * 6, asked(6, 80), **{**OFF, **facts})
    add_run(store, "mtp", [[BET] * 40] * 6, asked(6, 80), **{**MTP, **facts})
    code, out, _ = command("compare", f"{store}:arm=off", f"{store}:arm=mtp1", "--markdown")
    assert code == 0
    assert not re.search(r"<script|\]\(|@user|`|\x1b|‮|!\[", out)
    # Every table row has as many cells as its head: no label broke out of its cell.
    tables = re.findall(r"(?m)(?:^\|.*\|\n?)+", out)
    assert len(tables) == 6
    for table in tables:
        assert len({line.count("|") for line in table.strip().split("\n")}) == 1
    shown = re.search(r"<code>(a.*?)</code>", out)[1]
    assert shown.startswith("a&#124;b&#96;c&#96;&#60;script&#62;")


def test_markdown_has_the_answer_first(two_arms: Path) -> None:
    a, b = f"{two_arms}:arm=off", f"{two_arms}:arm=mtp1"
    text = pasted.markdown(held(a, b), a, b)
    assert "| <code>code</code>, <code>off</code> → <code>mtp1</code> | +21.2 %" in text
    assert text.index("+21.2 %") < text.index("Outputs") < text.index("<details>")


def test_what_only_one_side_has_is_named_whole(command: Command, two_arms: Path) -> None:
    machine = "a machine with a name of its own, 128 GiB, and then some more words behind it"
    add_run(two_arms, "more", [[PLAIN] * 80], asked(1, 80), **{**OFF, "machine": machine})
    sides = (f"{two_arms}:arm=off", f"{two_arms}:arm=mtp1")
    _, out, _ = command("compare", *sides, "--markdown")
    (line,) = [line for line in out.splitlines() if line.startswith("- <code>only in")]
    assert machine in line and "characters" not in line
    _, out, _ = command("compare", *sides)
    assert machine in out
