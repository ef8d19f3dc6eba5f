"""What an experiment does with failures, its time budget and outputs, and what it finds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from experiments import cells, environment, write_plan
from polars.testing import assert_frame_equal

from tauscope import arms, speedup
from tauscope import compare as comparing
from tauscope.catalog import Catalog
from tauscope.experiment import Plan, Result, Watcher, load_plan, run
from tauscope.experiment.cell import Desk
from tauscope.experiment.outputs import compare, first_difference
from tauscope.experiment.report import report
from tauscope.select import opened

ARMS = {"off": [], "draft": ["--draft"]}


class Heard(Watcher):
    def __init__(self) -> None:
        self.said: list[str] = []
        self.started: list[tuple[str, bool]] = []

    def starts(self, cell: object, warming: bool) -> None:
        self.started.append((cell.key, warming))

    def says(self, text: str) -> None:
        self.said.append(text)


def done(path: Path, store: Path) -> tuple[Plan, Result, Heard]:
    plan, heard = load_plan(path), Heard()
    return plan, run(plan, store, heard), heard


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    monkeypatch.setenv("TAUSCOPE_TRACE", "/dev/null")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Path]:
    """Five prompts of an easy workload and five of a hard one, under two arms."""
    folder = tmp_path_factory.mktemp("finished")
    command = [sys.executable, str(Path(__file__).with_name("fake_engine.py")),
               "--prompt-file", "{prompt_file}", "--tokens-file", "{tokens_file}",
               "--most", "{max_tokens}"]  # fmt: skip
    path = write_plan(folder / "plan.toml", 5, ARMS, ("code", "chat"), command=command,
                      max_tokens=40)  # fmt: skip
    plan = load_plan(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
        assert run(plan, folder / "store").complete
    return plan, folder / "store"


def test_the_paired_table_holds_the_stated_costs(finished: tuple[Plan, Path]) -> None:
    plan, store = finished
    found = report(store, plan).speedups
    rows = {row["workload"]: row for row in found.iter_rows(named=True)}
    # 10 ms a token against 12.5 ms a cycle of two tokens, or of one.
    assert rows["code"]["speedup"] == pytest.approx(1.6)
    assert rows["chat"]["speedup"] == pytest.approx(0.8)
    assert {row["pairs"] for row in rows.values()} == {5}
    assert rows["code"]["verdict"] == "on"
    assert rows["chat"]["verdict"] == "off"
    assert rows["code"]["outputs_equal"] is True
    assert set(found["experiment"]) == {plan.id}


def test_the_run_row_says_what_it_was_part_of(finished: tuple[Plan, Path]) -> None:
    plan, store = finished
    data = Catalog([store])
    facts = data.query("SELECT run_id, name, value FROM facts")
    told = {name: set(rows["value"]) for (name,), rows in facts.group_by("name")}
    assert told["experiment_plan"] == {plan.digest}
    assert told["experiment_order"] == {str(n) for n in range(20)}
    assert told["experiment_cells"] == {"20"}
    assert len(told["machine_cpu"]) == len(told["machine_system"]) == 1
    assert all(float(load) >= 0 for load in told["machine_load"])
    runs = data.query("SELECT * FROM runs")
    assert set(runs["experiment"]) == {plan.id}
    assert set(runs["source_kind"]) == {"record"}
    assert set(runs["state"]) == {"complete"}
    assert all((store / name).is_file() for name in runs["raw_file"])


def test_arms_that_took_turns_are_known_to_have(finished: tuple[Plan, Path]) -> None:
    _, store = finished
    order = arms.orders(Catalog([store]), {})
    key = {name: order[name][0] for name in speedup.CELL}
    pair = ("off", "draft")
    assert arms.interleaved(order, key, pair)
    assert not arms.interleaved(order, key, ("off", "other"))
    blocks = order.sort("arm", "place").with_columns(place=pl.int_range(pl.len()))
    assert not arms.interleaved(blocks, key, pair), "all of one arm, then all of the other"
    unplaced = order.with_columns(place=pl.lit(None, pl.Int64))
    assert not arms.interleaved(unplaced, key, pair)


def test_compare_says_what_the_experiment_says(finished: tuple[Plan, Path]) -> None:
    plan, store = finished
    table = report(store, plan).speedups.sort("workload")
    sides = [opened(f"{store}:arm={arm}") for arm in ("off", "draft")]
    held = comparing.compare(*sides).speedups.sort("workload")
    columns = ["workload", "speedup", "speedup_lo", "speedup_hi", "pairs"]
    assert_frame_equal(held.select(columns), table.select(columns))


def test_outputs_are_kept_and_compared_token_by_token(tmp_path: Path, store: Path) -> None:
    command = [sys.executable, str(Path(__file__).with_name("fake_engine.py")),
               "--prompt-file", "{prompt_file}", "--tokens-file", "{tokens_file}"]  # fmt: skip
    more = {"off": [], "same": ["--draft"], "wrong": ["--draft", "--wrong-at", "5"],
            "short": ["--draft", "--most", "6"]}  # fmt: skip
    path = write_plan(tmp_path / "p.toml", 1, more, ("code",), command=command, repeats=2)
    plan, result, _ = done(path, store)
    assert result.complete
    rows = compare(Desk(store, plan.id), plan).sort("arm", "repeat").to_dicts()
    text = "code 0 easy"
    token = sum(text.encode()) + 5
    assert [(r["arm"], r["repeat"], r["equal"], r["first_difference"]) for r in rows] == [
        ("off", 1, True, None),
        ("same", 0, True, None), ("same", 1, True, None),
        ("short", 0, False, 6), ("short", 1, False, 6),
        ("wrong", 0, False, 5), ("wrong", 1, False, 5),
    ]  # fmt: skip
    assert {r["unit"] for r in rows} == {"token"}
    wrong, short = rows[-1], rows[3]
    assert (wrong["base_said"], wrong["said"]) == (str(token), str(token + 1))
    assert (short["base_length"], short["length"], short["said"]) == (8, 6, "(end)")


def test_lengths_are_looked_at_first() -> None:
    assert first_difference("abc", "abc") is None
    assert first_difference("abc", "ab") == 2
    assert first_difference("", "a") == 0
    assert first_difference("abc", "axc") == 1
    assert first_difference("", "") is None


def test_without_token_ids_words_are_compared(tmp_path: Path, store: Path) -> None:
    more = {"off": [], "wrong": ["--draft", "--wrong-at", "2"]}
    plan, _, _ = done(write_plan(tmp_path / "p.toml", 1, more, ("code",)), store)
    (row,) = compare(Desk(store, plan.id), plan).to_dicts()
    assert (row["unit"], row["first_difference"], row["equal"]) == ("word", 2, False)


def test_an_arm_that_fails_three_times_is_stopped_and_named(tmp_path: Path, store: Path) -> None:
    more = {"off": [], "bad": ["--draft", "--fail-on", "code 1"], "draft": ["--draft"]}
    path = write_plan(tmp_path / "plan.toml", 4, more, ("code",))
    plan, result, heard = done(path, store)
    assert not result.complete
    assert list(result.stopped) == ["bad"]
    assert "ended with code 7: fake: out of luck" in result.stopped["bad"]
    assert sum("failures of its arm" in text for text in heard.said) == 3
    assert sum("arm bad: stopped" in text for text in heard.said) == 1
    kept = cells(store)["key"].to_list()
    assert sorted(kept) == sorted(
        [f"code/code-{n}/{arm}" for n in range(4) for arm in ("off", "draft")] + ["code/code-0/bad"]
    )
    (log,) = (store / "experiments" / plan.id / "failed").iterdir()
    assert "out of luck" in log.read_text()
    # What failed can be mended: the next call tries the arm again, and only that arm.
    _, again, heard = done(path, store)
    assert list(again.stopped) == ["bad"]
    assert {key for key, _ in heard.started} == {"code/code-1/bad/0"}


def test_a_run_that_takes_too_long_has_failed(tmp_path: Path, store: Path) -> None:
    (tmp_path / "hold").touch()
    more = {"off": ["--hold", str(tmp_path / "hold")], "draft": ["--hold", str(tmp_path / "hold")]}
    path = write_plan(tmp_path / "plan.toml", 1, more, ("code",), timeout_s=0.2)
    _, result, _ = done(path, store)
    assert set(result.stopped) == {"off", "draft"}
    assert "not done after 0.2 s" in result.stopped["off"]
    assert not list((store / "runs").glob("*"))


def test_an_engine_that_logs_nothing_has_failed(tmp_path: Path, store: Path) -> None:
    path = write_plan(tmp_path / "p.toml", 1, ARMS, ("code",), command=["true", "{prompt_file}"])
    _, result, _ = done(path, store)
    assert set(result.stopped) == {"off", "draft"}
    assert "logged no cycle, request or speed" in result.stopped["off"]


def test_the_budget_ends_after_a_whole_prompt_and_the_rest_follows(
    tmp_path: Path, store: Path
) -> None:
    def path(**keys: float) -> Path:
        return write_plan(tmp_path / "plan.toml", 3, ARMS, ("code",), **keys)

    _, result, _ = done(path(budget_min=1e-6), store)
    assert result.out_of_time
    assert cells(store)["key"].str.strip_suffix("/off").str.strip_suffix("/draft").n_unique() <= 1
    assert cells(store).height in (0, 2)
    _, result, _ = done(path(), store)
    assert result.complete and cells(store).height == 6


def test_warm_up_runs_are_nobodys_evidence(tmp_path: Path, store: Path) -> None:
    path = write_plan(tmp_path / "plan.toml", 1, ARMS, ("code",), warmup=2)
    _, result, heard = done(path, store)
    assert [warming for _, warming in heard.started] == [True] * 4 + [False] * 2
    assert result.complete and cells(store).height == 2


def test_hostile_names_stay_text(tmp_path: Path, store: Path) -> None:
    evil = "../../evil'); DROP TABLE runs; -- <b>\u202e坏"
    plan = tmp_path / "plan.toml"
    command = json.dumps([sys.executable, str(Path(__file__).with_name("fake_engine.py")),
                          "--prompt-file", "{prompt_file}"])  # fmt: skip
    name = json.dumps(evil)
    plan.write_text(
        f"name = {name}\ncommand = {command}\nwarmup = 0\n[arms.off]\n[arms.{name}]\n"
        f'arguments = ["--draft"]\n[[prompt]]\nid = {name}\nworkload = {name}\ntext = "$(id)"\n',
        encoding="utf-8",
    )
    main = [sys.executable, "-c", "from tauscope.cli import main; main()", "experiment"]
    ran = subprocess.run(
        [*main, str(plan), "--traces", str(store)], env=environment(), capture_output=True,
        text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "\u202e" not in ran.stdout and "\\u202e" in ran.stdout
    inside = {path.name for path in store.parent.iterdir()}
    assert inside == {store.name, "plan.toml"}
    assert cells(store)["key"].str.starts_with(f"{evil}/{evil}/").all()
