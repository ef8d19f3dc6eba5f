"""The check for CI: each exit by data, and what is missing when it can't tell."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import simulated
from conftest import Command
from frames import add_run, cycle

from tauscope import check
from tauscope.errors import Problem


def sides(tmp_path: Path, **costs: Any) -> tuple[Path, Path]:
    """The same experiment twice, the candidate's costs changed."""
    for name, change in (("main", {}), ("branch", costs)):
        simulated.made(tmp_path / name, [simulated.MTP1], {"agent": {}, "code": {}}, change)
    return tmp_path / "main", tmp_path / "branch"


def test_no_loss_passes(command: Command, tmp_path: Path) -> None:
    code, out, err = command("check", *sides(tmp_path), "--max-loss", "2%", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert (told["state"], told["exit_code"], told["max_loss"]) == ("pass", 0, 0.02)
    assert all(case["loss_hi"] <= 0.02 for case in told["cases"])
    assert len(told["cases"]) == 2


def test_a_loss_beyond_the_limit_fails(command: Command, tmp_path: Path) -> None:
    """A pass of two tokens 10 % dearer: bets are half of the cycles, 5 % of the time."""
    slower = sides(tmp_path, forward_ms=[67.8, 118.6])
    code, out, _ = command("check", *slower, "--max-loss", "0.02")
    assert code == 1
    assert "fail: loss" in out
    assert command("check", *slower, "--max-loss", "20%")[0] == 0


def test_a_loss_at_the_limit_can_not_be_told(command: Command, tmp_path: Path) -> None:
    slower = sides(tmp_path, forward_ms=[67.8, 118.6])
    _, out, _ = command("check", *slower, "--json")
    loss = max(case["loss"] for case in json.loads(out)["cases"])
    code, out, _ = command("check", *slower, "--max-loss", f"{100 * loss:.6f}%", "--json")
    assert code == 3
    assert json.loads(out)["state"] == "can't tell"


PLAIN = cycle("plain", wall_ms=68.0)


def arms(
    root: Path, ms: float = 68.0, prompts: int = 6, workload: str = "code", **request: Any
) -> Path:
    cycles = [[{**PLAIN, "wall_ms": ms * (1 + n / 10000)}] * 80 for n in range(prompts)]
    told = [{"prompt_id": f"p{n}", "generated_tokens": 80, "output_hash": "h", **request}
            for n in range(prompts)]  # fmt: skip
    add_run(root, f"r{workload}", cycles, told, arm="off", workload=workload,
            baseline_drafts=False)  # fmt: skip
    return root


def test_two_off_arms_need_no_bets(command: Command, tmp_path: Path) -> None:
    pair = arms(tmp_path / "a"), arms(tmp_path / "b", 69.0)
    assert command("check", *pair)[0] == 0
    assert command("check", *pair, "--max-loss", "1%")[0] == 1


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"prompts": 4}, check.REMEDIES["pairs"]),
        ({"output_hash": None}, check.REMEDIES["outputs"]),
        ({"generated_tokens": None}, check.REMEDIES["tokens"]),
        ({"generated_tokens": 90}, check.REMEDIES["tokens"]),
        ({"prompt_id": None}, check.REMEDIES["pairs"]),
    ],
)
def test_what_is_missing_is_named(
    command: Command, tmp_path: Path, change: dict, missing: str
) -> None:
    pair = arms(tmp_path / "a"), arms(tmp_path / "b", **change)
    code, out, _ = command("check", *pair, "--json")
    assert code == 3
    assert missing in json.loads(out)["cases"][0]["missing"]


def test_a_workload_that_the_candidate_lacks_is_not_passed(
    command: Command, tmp_path: Path
) -> None:
    base = arms(arms(tmp_path / "a"), workload="chat")
    code, out, _ = command("check", base, arms(tmp_path / "b"))
    assert code == 3
    assert "the candidate has nothing like it" in out


def test_a_workload_that_is_new_is_no_fault(command: Command, tmp_path: Path) -> None:
    more = arms(arms(tmp_path / "b"), workload="chat")
    code, _, err = command("check", arms(tmp_path / "a"), more)
    assert code == 0
    assert err.startswith("only in") and "workload chat" in err


def test_a_failure_outweighs_what_can_not_be_told(command: Command, tmp_path: Path) -> None:
    base = arms(arms(tmp_path / "a"), workload="chat")
    code, _, _ = command("check", base, arms(tmp_path / "b", 75.0))
    assert code == 1


def test_drift_that_could_change_the_answer_takes_it(command: Command, tmp_path: Path) -> None:
    """A steady arm, and one that slows by 4 % in its course; its loss is 2 % on average."""
    arms(tmp_path / "a", prompts=5)
    cycles = [[{**PLAIN, "wall_ms": 68.0 * (1 + 0.01 * n)} for _ in range(80)] for n in range(5)]
    told = [{"prompt_id": f"p{n}", "generated_tokens": 80, "output_hash": "h"} for n in range(5)]
    add_run(tmp_path / "b", "r", cycles, told, arm="off", workload="code", baseline_drafts=False)
    code, out, _ = command("check", tmp_path / "a", tmp_path / "b", "--max-loss", "3%", "--json")
    assert code == 3
    assert check.REMEDIES["drift"] in json.loads(out)["cases"][0]["missing"]
    # With so wide a limit it doesn't matter.
    assert command("check", tmp_path / "a", tmp_path / "b", "--max-loss", "20%")[0] == 0


def test_junit_tells_failures_from_errors(command: Command, tmp_path: Path) -> None:
    base = arms(arms(arms(tmp_path / "a"), workload="chat"), workload="<pr\x01ose>&")
    other = arms(arms(tmp_path / "b"), 75.0, workload="chat")
    file = tmp_path / "out.xml"
    code, _, _ = command("check", base, other, "--junit", file)
    assert code == 1
    suite = ET.parse(file).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    cases = {case.get("name"): [child.tag for child in case] for case in suite}
    assert cases["code: off"] == []
    assert cases["chat: off"] == ["failure"]
    assert [tags for name, tags in cases.items() if "ose>&" in name] == [["error"]]


def test_a_junit_file_that_can_not_be_written_is_one_line(command: Command, tmp_path: Path) -> None:
    pair = arms(tmp_path / "a"), arms(tmp_path / "b")
    code, _, err = command("check", *pair, "--junit", tmp_path / "no" / "out.xml")
    assert code == 3
    assert err.count("\n") == 1 and "name a file that can be written" in err


def test_what_is_mistyped_is_no_loss(command: Command, tmp_path: Path) -> None:
    base = arms(tmp_path / "a")
    for wrong in (f"{base}:arm=none", tmp_path / "nowhere"):
        assert command("check", base, wrong)[0] == 3
        assert command("check", wrong, base)[0] == 3


@pytest.mark.parametrize(("text", "value"), [("2%", 0.02), ("0.5 %", 0.005), (".1", 0.1)])
def test_limits(text: str, value: float) -> None:
    assert check.fraction(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["2", "-1%", "two", "", "100%", "1e-2"])
def test_limits_that_say_nothing(text: str) -> None:
    with pytest.raises(Problem) as problem:
        check.fraction(text)
    assert problem.value.code == 2


def test_drift_falls_on_interleaved_arms_alike(command: Command, tmp_path: Path) -> None:
    """The same slowing arm, its runs in turn with the steady one's: the drift is shared."""
    for arm, step in (("off", 0.0), ("mtp1", 0.01)):
        for n in range(5):
            slowing = [{**PLAIN, "wall_ms": 68.0 * (1 + step * i / 60)} for i in range(300)]
            told = [{"prompt_id": f"p{n}", "generated_tokens": 300, "output_hash": "h"}]
            place = 2 * n + (arm == "mtp1")
            drafted = [{**row, "drafted": 1, "verified": 1, "outcome": "rejected"}
                       for row in slowing]  # fmt: skip
            order = [{"name": "experiment_order", "value": str(place), "line": None}]
            add_run(tmp_path, f"{arm}{n}", [slowing if arm == "off" else drafted], told, arm=arm,
                    workload="code", experiment="e", baseline_drafts=False,
                    facts=order)  # fmt: skip
    sides = f"{tmp_path}:arm=off", f"{tmp_path}:arm=mtp1"
    code, out, _ = command("check", *sides, "--max-loss", "4%", "--json")
    assert (code, json.loads(out)["cases"][0]["missing"]) == (0, [])


def test_a_gain_is_no_negative_loss(command: Command, tmp_path: Path) -> None:
    _, out, _ = command("check", arms(tmp_path / "a"), arms(tmp_path / "b", 60.0))
    assert "gain " in out and "loss −" not in out
    assert "limit a loss of 2.0 %" in out
