"""The pages about causes, comparison and routing say what their frames say."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Command
from notebook_runs import executed, texts
from report_stores import build, real_store

from tauscope.batch import render


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build("sample", tmp_path_factory.mktemp("sample")))


def plain(text: str) -> str:
    return text.replace("\u2068", "").replace("\u2069", "")


def tables(name: str, **parameters: object) -> dict[str, list[dict]]:
    notebook = executed(name, **parameters)
    return {table["name"]: table["rows"] for table in render.tables(notebook)}


def test_timing_names_what_holds_speculation_back(sample: str) -> None:
    answer = plain(texts(executed("timing", traces=[sample]))[0])
    assert answer.startswith("In the simulated runs: one verification costs 1.58 to 1.59 plain")
    assert "the gate for agent, code, seed231 and technical" in answer
    assert "the drafter for chat and prose" in answer


def test_comparing_holds_the_treated_arm_against_the_off_arm(sample: str) -> None:
    answer = plain(texts(executed("compare", traces=[sample]))[0])
    assert answer.startswith("mtp1 against off (simulated): faster for agent (+9.5 %)")
    found = tables("compare", traces=[sample], workload="chat")
    moved = sum(row["moved"] for row in found["parts"])
    (row,) = found["compared"]
    assert moved == pytest.approx(row["ms_per_token_a"] - row["ms_per_token_b"])


def test_comparing_an_arm_that_is_not_there_is_said(sample: str) -> None:
    answer = texts(executed("compare", traces=[sample], after="mtp9"))[0]
    assert answer.startswith("Nothing to compare: arm mtp9: no run, request or cycle")


def test_routing_blends_a_mix_of_measured_workloads(sample: str) -> None:
    answer = plain(texts(executed("routing", traces=[sample]))[0])
    assert (
        "under mtp1, the arm that decides most, speculation is on for agent, code and technical; "
        "off for prose and chat; undecided for seed231" in answer
    )
    even = {row["traffic"]: row for row in tables("routing", traces=[sample])["blend"]}
    assert even["all on"]["speedup_lo"] < even["all on"]["speedup"] < even["routed"]["speedup"]
    mixed = tables("routing", traces=[sample], mix="agent=1")["blend"]
    assert mixed[0]["speedup"] == mixed[1]["speedup"] == pytest.approx(1.095, abs=1e-3)


def test_real_logs_are_undecided_because_of_the_verifier(
    corpus: Path, command: Command, tmp_path: Path
) -> None:
    root = [str(real_store(corpus, command, tmp_path / "real"))]
    timing, compare, routing = (
        plain(texts(executed(name, traces=root))[0]) for name in ("timing", "compare", "routing")
    )
    assert "What holds speculation back is the verifier for chat and code." in timing
    assert compare == "mtp2 against off: undecided for chat (+6.1 %) and code (+6.8 %)."
    assert routing == (
        "Under mtp2, the arm that decides most, speculation is undecided for code and chat."
    )
