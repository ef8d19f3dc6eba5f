"""A plan is checked on reading, and every mistake is told in one line that says what to do."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from experiments import environment, write_plan

from tauscope.errors import Problem
from tauscope.experiment import load_plan, starting_plan
from tauscope.experiment.schedule import cells
from tauscope.schema import WORKLOADS

ARMS = {"off": [], "draft": ["--draft"]}


def test_the_starting_plan_has_what_an_experiment_with_ds4_needs(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(starting_plan(), encoding="utf-8")
    plan = load_plan(path)
    counts = Counter(prompt.workload for prompt in plan.prompt)
    assert set(counts) == set(WORKLOADS)
    assert min(counts.values()) >= 12
    assert list(plan.arms) == ["off", "mtp1", "shadow"]
    assert "--mtp" not in [*plan.command, *plan.arms["off"].arguments]
    assert plan.command[plan.command.index("--temp") + 1] == "0"
    agent = [prompt.text for prompt in plan.prompt if prompt.workload == "agent"]
    assert all('"parameters"' in text and "Tool result:" in text for text in agent)
    assert sum(text.count("Tool result:") > 1 for text in agent) >= 9
    chat = "".join(prompt.text for prompt in plan.prompt if prompt.workload == "chat")
    assert sum("\u4e00" <= char <= "\u9fff" for char in chat) > len(chat) / 2
    assert len({prompt.text for prompt in plan.prompt}) == len(plan.prompt)
    # What its comments tell.
    text = starting_plan()
    assert f"{len(plan.prompt)} prompts × {len(plan.arms)} arms = {len(cells(plan))} runs" in text
    assert "are Chinese" in text and "[arms.mtp2]" in text


def test_init_writes_that_plan_and_never_over_a_file(tmp_path: Path) -> None:
    path = tmp_path / "计划.toml"
    command = [sys.executable, "-c", "from tauscope.cli import main; main()", "experiment"]
    command += [str(path), "--init"]
    first = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert first.returncode == 0, first.stderr
    assert path.read_text(encoding="utf-8") == starting_plan()
    again = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert again.returncode == 1
    assert again.stderr.count("\n") == 1 and "is there already" in again.stderr


PROMPT = '[[prompt]]\nid = "p"\nworkload = "code"\ntext = "t"\n'
HEAD = 'name = "n"\ncommand = ["true", "{prompt_file}"]\n'
OFF, ON = "[arms.off]\n", "[arms.on]\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name = ", "not TOML"),
        (HEAD + OFF + ON, "no prompts"),
        (HEAD + OFF + PROMPT, "length >= 2"),
        (HEAD + ON + "[arms.other]\n" + PROMPT, "no arm `off`"),
        (HEAD + OFF + ON + PROMPT + PROMPT, "'p' stands there twice"),
        (HEAD + "cooldown = 3\n" + OFF + ON + PROMPT, "`cooldown`"),
        (HEAD + "repeats = 0\n" + OFF + ON + PROMPT, "repeats"),
        (HEAD + "max_tokens = 'many'\n" + OFF + ON + PROMPT, "max_tokens"),
        ('name = "n"\ncommand = []\n' + OFF + ON + PROMPT, "command"),
        ('name = "n"\ncommand = ["true"]\n' + OFF + ON + PROMPT, "no {prompt_file}"),
        (HEAD + OFF + 'arguments = ["{promt}"]\n' + ON + PROMPT, "{promt} means nothing"),
        (HEAD + 'directory = "nowhere"\n' + OFF + ON + PROMPT, "is no folder"),
        (HEAD + 'prompts_from = "no.toml"\n' + OFF + ON, "no such file"),
        (HEAD + OFF + ON + PROMPT.replace('"t"', '""'), "text"),
        (HEAD + OFF + ON + PROMPT.replace('"code"', '"a\\u001bb"'), "workload"),
    ],
)
def test_a_mistake_is_told_in_one_line(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Problem) as caught:
        load_plan(path)
    said = str(caught.value)
    assert told in said and "\n" not in said
    assert said.startswith(str(tmp_path)) and ";" in said


def test_a_missing_engine_is_told_before_anything_runs(tmp_path: Path, store: Path) -> None:
    from tauscope.experiment import run

    path = write_plan(tmp_path / "p.toml", 1, ARMS, ("code",), command=["./ds4", "{prompt_file}"])
    with pytest.raises(Problem, match="no such program"):
        run(load_plan(path), store)
    assert not store.exists()


def test_prompts_may_come_from_another_file(tmp_path: Path) -> None:
    (tmp_path / "prompts.toml").write_text(PROMPT, encoding="utf-8")
    path = tmp_path / "plan.toml"
    path.write_text(HEAD + 'prompts_from = "prompts.toml"\n' + OFF + ON, encoding="utf-8")
    plan = load_plan(path)
    assert [prompt.id for prompt in plan.prompt] == ["p"]
    path.write_text(HEAD + OFF + ON + PROMPT, encoding="utf-8")
    assert load_plan(path).id == plan.id, "where the prompts stand doesn't change the experiment"


def test_a_plan_may_take_only_the_first_prompts_of_each_workload(tmp_path: Path) -> None:
    path = write_plan(tmp_path / "p.toml", 3, ARMS, ("code", "chat"), prompts_each=2)
    said = [prompt.id for prompt in load_plan(path).prompt]
    assert said == ["code-0", "code-1", "chat-0", "chat-1"]


def test_what_can_change_the_outcome_changes_the_name(tmp_path: Path) -> None:
    def name(**keys: object) -> str:
        return load_plan(write_plan(tmp_path / "p.toml", 1, ARMS, ("code",), **keys)).id

    same = {name(), name(budget_min=3.0), name(timeout_s=9.0)}
    assert len(same) == 1
    assert len({*same, name(max_tokens=9), name(repeats=2), name(cooldown_s=1.0)}) == 4


def test_arms_take_turns_and_the_turns_are_turned_round(tmp_path: Path) -> None:
    arms = {"off": [], "a": [], "b": []}
    path = write_plan(tmp_path / "plan.toml", 3, arms, ("code", "chat"), repeats=2)
    order = cells(load_plan(path))
    assert [cell.order for cell in order] == list(range(2 * 3 * 2 * 3))
    assert len({cell.key for cell in order}) == len(order)
    blocks = [order[start : start + 3] for start in range(0, len(order), 3)]
    assert all(len({(c.prompt.id, c.repeat, c.block) for c in block}) == 1 for block in blocks)
    assert [block[0].prompt.workload for block in blocks[:4]] == ["code", "chat", "code", "chat"]
    for workload in ("code", "chat"):
        mine = [b for b in blocks if b[0].prompt.workload == workload]
        ways = ["".join(cell.arm[0] for cell in block) for block in mine]
        assert ways in (["oab", "bao"] * 3, ["bao", "oab"] * 3)
        run = [cell.arm for block in mine for cell in block]
        places = {arm: [i for i, name in enumerate(run) if name == arm] for arm in arms}
        assert len({sum(p) for p in places.values()}) == 1, "a steady drift costs all arms alike"
