"""Every notebook says what it can on any store, and answers before all else."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Command
from notebook_runs import executed, texts
from report_stores import NOTEBOOKS, SCENARIOS, build, real_store

from tauscope.batch import render


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("stores")
    return {name: build(name, root / name) for name in SCENARIOS}


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_runs_and_opens_with_its_answer(
    name: str, scenario: str, stores: dict[str, Path], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    notebook = executed(name, traces=[str(stores[scenario])])
    first = next(cell["outputs"][0] for cell in notebook["cells"] if cell.get("outputs"))
    assert 'class="ts-answer"' in first["data"]["text/html"]
    assert first["data"]["text/plain"].endswith(".")
    assert not any(text.startswith("<") for text in texts(notebook))


def test_the_sample_is_told_as_it_was_stated(stores: dict[str, Path]) -> None:
    answer = texts(executed("workloads", traces=[str(stores["sample"])]))[0]
    plain = answer.replace("\u2068", "").replace("\u2069", "")
    for name in ("agent", "code", "technical"):
        assert f"{name} (+" in plain
    for name in ("prose", "chat"):
        assert f"{name} (−" in plain
    assert plain.startswith("In the simulated runs: speculation pays for agent")
    assert "pooled" in plain


def test_an_empty_store_is_said_to_be_empty(stores: dict[str, Path]) -> None:
    said = {name: texts(executed(name, traces=[str(stores["empty"])])) for name in NOTEBOOKS}
    assert said["workloads"][0].startswith("No run with speculation is here")
    assert said["ledger"][0] == "No run is here, so there is nothing to add up."
    assert said["rosetta"][0].startswith("No cycle of a treated arm is here")


def test_one_arm_has_metrics_but_no_verdict(stores: dict[str, Path]) -> None:
    said = texts(executed("workloads", traces=[str(stores["one_arm"])]))
    assert "no verdict: no off arm with the same workload" in said[0]
    assert any(text.startswith("τ, tokens per cycle: from ") for text in said)


def test_an_old_store_says_what_it_lacks(stores: dict[str, Path]) -> None:
    said = texts(executed("workloads", traces=[str(stores["old"])]))
    assert "No margins to draw: no cycle here logged the gate's reading." in said


def test_a_parameter_picks_its_rows(stores: dict[str, Path]) -> None:
    notebook = executed("workloads", traces=[str(stores["sample"])], workload="chat")
    found = {
        row["workload"]
        for table in render.tables(notebook)
        for row in table["rows"]
        if "workload" in row
    }
    assert found == {"chat"}


def test_real_logs_are_told(corpus: Path, command: Command, tmp_path: Path) -> None:
    root = real_store(corpus, command, tmp_path / "real")
    said = (texts(executed(name, traces=[str(root)])) for name in NOTEBOOKS[:3])
    workloads, ledger, rosetta = said
    # The off arms of these logs have a drafter loaded: a speed-up, but no verdict.
    assert "ndecided" in workloads[0]
    assert "the off arm drafts" in workloads[0]
    assert "runs with" in ledger[0]
    assert "of arm \u2068mtp2\u2069 emit" in rosetta[0]
