"""The analysis, over the sample whose truth is known, arrives at the published figures."""

from __future__ import annotations

import filecmp
from pathlib import Path

import msgspec
import pytest

from tauscope import catalog, metrics, simulate, speedup

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "traces" / "sample"
PUBLISHED = {"agent": 9.4, "code": 6.5, "technical": 4.4, "prose": -3.6, "chat": -3.7}
VERDICTS = {"agent": "on", "code": "on", "technical": "on", "prose": "off", "chat": "off"}


@pytest.fixture(scope="module")
def sample() -> catalog.Catalog:
    return catalog.Catalog([SAMPLE])


def test_speed_ups_are_the_published_ones_within_half_a_point(sample: catalog.Catalog) -> None:
    rows = speedup.table(sample)
    found = {w: 100 * (s - 1) for w, s in rows.select("workload", "speedup").iter_rows() if s}
    assert found == pytest.approx(PUBLISHED, abs=0.5)


def test_the_ranking_and_what_it_does_not_tell_apart(sample: catalog.Catalog) -> None:
    rows = {r["workload"]: r for r in speedup.table(sample).iter_rows(named=True)}
    order = ["agent", "code", "technical"]
    gains = [rows[name]["speedup"] for name in order]
    assert gains == sorted(gains, reverse=True)
    assert min(gains) > max(rows["prose"]["speedup"], rows["chat"]["speedup"])
    assert rows["prose"]["speedup_lo"] < rows["chat"]["speedup_hi"]
    assert rows["chat"]["speedup_lo"] < rows["prose"]["speedup_hi"]


def test_verdicts_have_no_reason_left(sample: catalog.Catalog) -> None:
    rows = speedup.table(sample).filter(speedup.table(sample)["speedup"].is_not_null())
    assert dict(rows.select("workload", "verdict").iter_rows()) == VERDICTS
    assert rows["reasons"].to_list() == [[]] * 5
    assert rows["pairs"].to_list() == [12] * 5
    assert rows["outputs_equal"].all()


def test_the_pooled_figure_hides_a_flip(sample: catalog.Catalog) -> None:
    flips = speedup.flips(speedup.table(sample))
    assert set(flips.select("gains", "loses").iter_rows()) == {
        (gain, loss) for gain in ("agent", "code", "technical") for loss in ("prose", "chat")
    }
    pooled = speedup.pooled(sample).row(0, named=True)["speedup"]
    assert 1.0 < pooled < 1.044  # about +2 %: true of the mix and of nothing in it


def test_the_run_of_231_cycles(sample: catalog.Catalog) -> None:
    row = metrics.table(sample, where={"workload": "seed231"}).row(0, named=True)
    counts = [row[name] for name in ("cycles", "folded", "all_accepted", "rejected")]
    assert counts == [231, 102, 125, 4]
    assert row["tau"] == pytest.approx(356 / 231)
    assert row["committed_acceptance"] == pytest.approx(125 / 129)
    assert row["fold_rate"] == pytest.approx(102 / 231)
    assert row["tau"] == pytest.approx(1 + (1 - row["fold_rate"]) * row["committed_acceptance"])


def test_it_is_made_again_byte_for_byte(tmp_path: Path) -> None:
    simulate.write(simulate.load_model(SAMPLE / "model.toml"), tmp_path)
    made = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.parquet")}
    kept = {str(p.relative_to(SAMPLE)) for p in SAMPLE.rglob("*.parquet")}
    assert made == kept
    assert not [name for name in made if not filecmp.cmp(tmp_path / name, SAMPLE / name, False)]


def test_it_is_small_and_marked(sample: catalog.Catalog) -> None:
    size = sum(path.stat().st_size for path in SAMPLE.rglob("*") if path.is_file())
    assert size < 2_000_000
    assert sample.query("SELECT BOOL_AND(simulated) FROM runs").item()
    assert sample.damaged == []


@pytest.mark.timeout(1200)
def test_other_seeds_lead_to_the_same_verdicts(tmp_path: Path) -> None:
    model = simulate.load_model(SAMPLE / "model.toml")
    arms = [run for run in model.runs if run.arm in ("off", "mtp1") and "agent" in run.workloads]
    assert [run.arm for run in arms] == ["off", "mtp1"]
    model = msgspec.structs.replace(model, runs=arms)
    right = 0
    for seed in range(100):
        root = tmp_path / str(seed)
        simulate.write(model, root, seed=seed)
        rows = speedup.table(catalog.Catalog([root]))
        right += dict(rows.select("workload", "verdict").iter_rows()) == VERDICTS
    assert right >= 95
