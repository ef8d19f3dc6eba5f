"""What the bundled sample must show of causes and of routing."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT

from tauscope import catalog, doctor
from tauscope.economics import bottleneck, costs, routing, waterfall
from tauscope.simulate import load_model, write


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> catalog.Catalog:
    root: Path = tmp_path_factory.mktemp("sample")
    write(load_model(ROOT / "traces" / "sample" / "model.toml"), root)
    return catalog.Catalog([root])


@pytest.fixture(scope="module")
def found(sample: catalog.Catalog) -> list[costs.Costs]:
    return costs.each(sample)


def test_the_gate_holds_back_what_is_predictable_and_the_drafter_the_rest(
    sample: catalog.Catalog, found: list[costs.Costs]
) -> None:
    rows = {r["workload"]: r for r in bottleneck.table(sample, found).iter_rows(named=True)}
    for workload in ("agent", "code", "technical", "seed231"):
        assert rows[workload]["bottleneck"] == "gate"
        assert rows[workload]["folds_right"] == "no"
    for workload in ("prose", "chat"):
        assert rows[workload]["bottleneck"] == "drafter"
        assert rows[workload]["folds_right"] == "yes"


def test_routing_is_on_on_on_off_off(sample: catalog.Catalog) -> None:
    rows = {r["workload"]: r for r in routing.table(sample).iter_rows(named=True)}
    assert [rows[w]["decision"] for w in ("agent", "code", "technical", "prose", "chat")] == [
        "on", "on", "on", "off", "off",
    ]  # fmt: skip
    assert rows["seed231"]["decision"] == "undecided"


def test_the_stated_costs_are_told(found: list[costs.Costs]) -> None:
    rows = costs.table(found).filter(arm="mtp1")
    assert rows["step_ms"].to_list() == pytest.approx([68.0] * rows.height, rel=0.008)
    assert rows["verify_ms"].to_list() == pytest.approx([107.8] * rows.height, rel=0.008)
    assert rows["draft_ms"].to_list() == pytest.approx([4.0] * rows.height, rel=0.008)
    assert (rows["step_gap"].drop_nulls().abs() < 0.005).all()


def test_the_waterfall_leaves_next_to_nothing(found: list[costs.Costs]) -> None:
    rows = waterfall.table(found).filter(arm="mtp1", part="unattributed")
    assert (rows["ms_each_token"].abs() / rows["ms_per_token"] < 0.01).all()


def test_the_doctor_finds_nothing(sample: catalog.Catalog) -> None:
    assert doctor.examine(sample) == []
