"""The model file: what is refused, in one line that names the file and the entry."""

from __future__ import annotations

from pathlib import Path

import pytest

from tauscope.errors import Problem
from tauscope.simulate import load_model, simulate

GOOD = """
name = "small"
seed = 7
[costs]
forward_ms = [68, 108.0]
draft_ms = 4
[[workloads]]
name = "agent"
prompts = 2
tokens = 9
margin_mean = 3.0
margin_sd = 2.0
right_floor = 0.5
right_ceiling = 0.9
[[runs]]
arm = "off"
path = "off"
[[runs]]
arm = "mtp1"
path = "continuous"
threshold = 3
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "模型 model.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_good_file_is_read_with_its_defaults(tmp_path: Path) -> None:
    model = load_model(written(tmp_path, GOOD))
    assert model.costs.forward_ms == [68.0, 108.0]
    assert model.costs.replay_ms == 0
    assert [type(run).__name__ for run in model.runs] == ["Off", "Continuous"]
    assert model.runs[1].threshold == 3.0
    assert model.runs[1].depth == 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("draft_ms = 4", "draft_ms = 4\ndrafft_ms = 5", "drafft_ms"),
        ("draft_ms = 4", "", "draft_ms"),
        ("draft_ms = 4", "draft_ms = -1", "costs.draft_ms"),
        ("draft_ms = 4", "draft_ms = nan", "costs.draft_ms"),
        ("draft_ms = 4", "draft_ms = inf", "costs.draft_ms"),
        ("draft_ms = 4", 'draft_ms = "4"', "costs.draft_ms"),
        ("draft_ms = 4", "draft_ms = true", "costs.draft_ms"),
        ("forward_ms = [68, 108.0]", "forward_ms = []", "costs.forward_ms"),
        ("forward_ms = [68, 108.0]", "forward_ms = [68]", "scores 2 tokens"),
        ("forward_ms = [68, 108.0]", "forward_ms = [68, 0]", "costs.forward_ms"),
        ("seed = 7", "seed = -7", "seed"),
        ("seed = 7", "seed = 1.5", "seed"),
        ("tokens = 9", "tokens = 0", "tokens"),
        ("right_floor = 0.5", "right_floor = 1.5", "right_floor"),
        ("right_floor = 0.5", "right_floor = 0.95", "right_floor is above"),
        ("margin_sd = 2.0", "margin_sd = 2.0\nmargin_autocorrelation = 1.0", "autocorrelation"),
        ('path = "off"', 'path = "of"', "of"),
        ('path = "off"', 'path = "off"\nthreshold = 3', "threshold"),
        ('arm = "off"', 'arm = "off"\nworkloads = ["prose"]', "prose"),
        ('arm = "off"', 'arm = "off"\nworkloads = ["agent", "agent"]', "once"),
        ('arm = "off"', 'arm = "off"\nworkloads = []', "at least one"),
        ('name = "agent"', r'name = "a\ngent"', "name"),
        ('name = "small"', "name = ", "not TOML"),
        ('name = "small"', "name = 'small'\nname = 'x'", "not TOML"),
        ("prompts = 2", f"prompts = {'9' * 5000}", "模型"),
    ],
)
def test_a_bad_entry_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    path = written(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(Problem) as caught:
        load_model(path)
    text = str(caught.value)
    assert text.startswith(str(path))
    assert said in text
    assert "\n" not in text


def test_two_workloads_of_one_name_are_refused(tmp_path: Path) -> None:
    block = GOOD[GOOD.index("[[workloads]]") : GOOD.index("[[runs]]")]
    with pytest.raises(Problem, match="'agent' is stated twice"):
        load_model(written(tmp_path, GOOD + block))


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="No such file"):
        load_model(tmp_path / "absent.toml")
    with pytest.raises(Problem, match="directory"):
        load_model(tmp_path)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Problem, match="not TOML"):
        load_model(binary)


def test_a_workload_that_is_not_stated_can_not_be_chosen(tmp_path: Path) -> None:
    model = load_model(written(tmp_path, GOOD))
    with pytest.raises(Problem, match="no workload 'prose'; name one of agent"):
        list(simulate(model, workloads=["prose"]))
