"""What real logs say of costs and causes, against the figures known for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tauscope import catalog, speedup
from tauscope.economics import bottleneck, breakeven, costs, modelled, routing, waterfall
from tauscope.ingest import importer, source

WORKLOADS = ("chat", "code")


@pytest.fixture(scope="module")
def real(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> catalog.Catalog:
    root = tmp_path_factory.mktemp("corpus")
    for workload in WORKLOADS:
        for arm, name in (("mtp2", "mtp"), ("off", "off")):
            log = corpus / f"ds4-{name}-{workload}.log"
            labels = importer.Labels(workload, arm, f"{workload}-1")
            for done in importer.import_all(source.find([str(log)]), root, labels, tokens=256):
                assert isinstance(done, importer.Imported)
    return catalog.Catalog([root])


@pytest.fixture(scope="module")
def found(real: catalog.Catalog) -> list[costs.Costs]:
    return costs.each(real)


def test_base_and_fold_decodes(found: list[costs.Costs]) -> None:
    rows = {r["workload"]: r for r in costs.table(found).filter(arm="mtp2").iter_rows(named=True)}
    assert 27.8 <= rows["chat"]["base_ms"] <= 28.1
    assert rows["code"]["base_ms"] == pytest.approx(27.9, abs=0.05)
    for row in rows.values():
        assert row["base_derived"]
        assert row["step_source"] == "folds_decode"
        assert 25.7 <= row["step_ms"] <= 25.8
        assert row["step_ms_lo"] < row["step_ms"] < row["step_ms_hi"]  # within the run
        assert abs(row["step_gap"]) < 0.01  # base and drafting off arm, each less a draft


def test_even_full_acceptance_barely_pays(real: catalog.Catalog, found: list[costs.Costs]) -> None:
    assert breakeven.table(found)["breakeven"].to_list() == pytest.approx([1.03, 1.03], abs=0.02)
    rows = bottleneck.table(real, found)
    assert rows["bottleneck"].to_list() == ["verifier", "verifier"]
    assert rows["folds_right"].to_list() == ["unknown", "unknown"]


def test_modelled_losses_without_a_verdict(real: catalog.Catalog, found: list[costs.Costs]) -> None:
    rows = {r["workload"]: r for r in modelled.table(real, found).iter_rows(named=True)}
    chat, code = rows["chat"], rows["code"]
    assert (chat["speedup"], chat["slower_step_speedup"]) == pytest.approx((0.973, 0.984), abs=1e-3)
    assert (code["speedup"], code["slower_step_speedup"]) == pytest.approx((0.982, 0.994), abs=1e-3)
    for row in rows.values():
        assert row["verdict"] == "undecided"
        assert row["reasons"] == ["interval", "clusters", "baseline"]


def test_measured_gains_over_drafting_for_nothing(real: catalog.Catalog) -> None:
    rows = {r["workload"]: r for r in speedup.table(real).iter_rows(named=True)}
    assert rows["chat"]["speedup"] == pytest.approx(1.061, abs=5e-4)
    assert rows["code"]["speedup"] == pytest.approx(1.068, abs=5e-4)
    for row in rows.values():
        assert row["baseline_drafts"]
        assert row["reasons"] == ["interval", "clusters", "baseline", "pairs", "outputs"]
    routes = routing.table(real)
    assert routes["decision"].to_list() == ["undecided", "undecided"]


def test_at_most_one_percent_is_unattributed(found: list[costs.Costs]) -> None:
    rows = waterfall.table(found).filter(arm="mtp2")
    left = rows.filter(part="unattributed")
    assert (left["ms_each_token"].abs() / left["ms_per_token"] < 0.01).all()
    assert not left["derived"].any()
    assert rows.filter("derived")["part"].to_list() == ["base", "base"]
    for (_,), arm in rows.group_by("workload"):
        head = arm.row(0, named=True)
        assert arm["ms_each_token"].sum() == pytest.approx(head["step_ms"] - head["ms_per_token"])
