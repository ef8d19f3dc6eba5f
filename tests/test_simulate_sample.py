"""The sample's model: what its draw has to show, worked out here without the analysis."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest
from scipy.stats import t as student

from tauscope.simulate import Model, Simulated, load_model, simulate

MODEL = Path(__file__).resolve().parents[1] / "traces" / "sample" / "model.toml"
PUBLISHED = {"agent": 9.4, "code": 6.5, "technical": 4.4, "prose": -3.6, "chat": -3.7}
PAYS = ("agent", "code", "technical")
LOSES = ("prose", "chat")
WARM = 12  # cycles that the model states as slower


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model(MODEL)


@pytest.fixture(scope="module")
def parts(model: Model) -> dict[tuple[str, str | None], Simulated]:
    return {
        (part.runs["arm"].item(), part.runs["workload"].item()): part for part in simulate(model)
    }


def cycles(part: Simulated, workload: str) -> pl.DataFrame:
    labels = part.requests.select("request_id", "workload", "prompt_id")
    return part.cycles.join(labels, on="request_id").filter(pl.col("workload") == workload)


def speed_up(off: Simulated, treated: Simulated, workload: str) -> tuple[float, ...]:
    """Speed-up in percent, its 95 % interval, and the sd of a prompt's own speed-up."""
    sums = []
    for part in (off, treated):
        warm = cycles(part, workload).filter(pl.col("cycle") >= WARM)
        sums.append(
            warm.group_by("prompt_id").agg(pl.sum("wall_ms"), pl.sum("emitted")).sort("prompt_id")
        )
    assert sums[0]["prompt_id"].equals(sums[1]["prompt_id"])
    (ms0, n0), (ms1, n1) = (s.select("wall_ms", "emitted").to_numpy().T for s in sums)
    r0, r1 = ms0.sum() / n0.sum(), ms1.sum() / n1.sum()
    pairs = len(ms0)
    bent = (r0 / r1) * ((ms0 - r0 * n0) / ms0.sum() - (ms1 - r1 * n1) / ms1.sum())
    half = student.ppf(0.975, pairs - 1) * np.sqrt(pairs / (pairs - 1) * (bent**2).sum())
    s = r0 / r1
    spread = ((ms0 / n0) / (ms1 / n1)).std(ddof=1)
    return tuple(100 * x for x in (s - 1, s - 1 - half, s - 1 + half, spread))


def test_three_arms_of_five_workloads_and_one_run_of_its_own(parts: dict) -> None:
    assert set(parts) == {("off", None), ("mtp1", None), ("shadow", None), ("mtp1", "seed231")}
    for part in (parts["off", None], parts["mtp1", None], parts["shadow", None]):
        by = part.requests.group_by("workload").agg(pl.len(), pl.col("generated_tokens").min())
        assert set(by["workload"]) == set(PUBLISHED)
        assert by["len"].min() >= 12
        assert by["generated_tokens"].min() >= 400
    hashes = [parts[arm, None].requests["output_hash"] for arm in ("off", "mtp1", "shadow")]
    assert hashes[0].equals(hashes[1])
    assert hashes[0].equals(hashes[2])


def test_speed_ups_are_the_published_ones(parts: dict) -> None:
    measured = {w: speed_up(parts["off", None], parts["mtp1", None], w) for w in PUBLISHED}
    for workload, (s, low, high, spread) in measured.items():
        assert s == pytest.approx(PUBLISHED[workload], abs=0.5)
        assert spread <= 1.8
        assert (low > 0) if workload in PAYS else (high < 0)
    in_order = [measured[w][0] for w in (*PAYS, "prose")]
    assert in_order == sorted(in_order, reverse=True)
    assert measured["technical"][0] > measured["chat"][0]
    prose, chat = measured["prose"], measured["chat"]
    assert prose[1] < chat[2]
    assert chat[1] < prose[2]


def test_bets_are_accepted_and_folds_are_right_as_told(parts: dict) -> None:
    part = parts["mtp1", None]
    for workload in PUBLISHED:
        c = cycles(part, workload)
        bets, folds = c.filter(pl.col("verified") > 0), c.filter(pl.col("outcome") == "folded")
        assert bets["accepted"].sum() / bets.height == pytest.approx(0.97, abs=0.015)
        assert bets.height >= 30
        assert folds.height / c.height >= 0.3
        right = folds["draft_token"] == folds["next_token"]
        if workload in PAYS:
            assert right.mean() >= 0.75
        else:
            assert right.mean() <= 0.5
            # Flat: neither third of the margins is righter than chance differences allow.
            thirds = folds.select(
                third=(pl.col("margin").rank("ordinal") * 3 / (folds.height + 1)).floor(),
                right=right,
            )
            shares = thirds.group_by("third").agg(pl.mean("right"))["right"]
            assert shares.max() - shares.min() < 3.5 * np.sqrt(0.25 * 2 / (folds.height / 3))
            assert shares.max() <= 0.5


def test_the_run_of_231_cycles(parts: dict) -> None:
    c = parts["mtp1", "seed231"].cycles
    assert c.height == 231
    assert c.filter(pl.col("outcome") == "folded").height == 102
    assert c["verified"].sum() == 129
    assert c["accepted"].sum() == 125
    assert c["emitted"].sum() == 356
    right = c.filter(pl.col("outcome") == "folded").select(
        pl.col("draft_token") == pl.col("next_token")
    )
    assert right.to_series().mean() >= 0.75


def ms_per_token(shadow: pl.DataFrame, bar: float) -> float:
    """A walk over the positions of a shadow run under another bar, with the stated costs."""
    ms = tokens = 0
    skip = False
    for margin, hit in shadow.select(
        "margin", (pl.col("draft_token") == pl.col("next_token")).fill_null(False)
    ).iter_rows():
        if skip:
            skip = False
            continue
        tried = margin is not None
        bet = tried and margin >= bar
        skip = bet and hit
        ms += 68.0 + 4.0 * tried + 40.0 * bet
        tokens += 1 + skip
    return ms / tokens


def test_no_bar_pays_where_speculation_loses_and_a_lower_one_where_it_pays(
    model: Model, parts: dict
) -> None:
    # So that the 68, 4 and 40 above are the model's.
    assert model.costs.forward_ms[0] + model.costs.other_ms == 68.0
    assert model.costs.forward_ms[1] - model.costs.forward_ms[0] == 40.0
    assert model.costs.draft_ms == 4.0
    bars = [*np.arange(0, 8, 0.5), 2.97, 3.01, 100.0]
    for workload in PUBLISHED:
        shadow = cycles(parts["shadow", None], workload)
        costs = {float(bar): ms_per_token(shadow, bar) for bar in bars}
        if workload in LOSES:
            assert min(costs.values()) > 68.0 * 1.01
        else:
            assert min(costs.values()) < costs[3.0] < 68.0
            assert min(costs, key=costs.get) < 3.0
        assert costs[100.0] == pytest.approx(72.0, abs=0.02)


@pytest.fixture(scope="module")
def others(model: Model) -> list[list[tuple[float, ...]]]:
    """Speed-ups of the five workloads under a hundred other seeds."""
    paired = msgspec.structs.replace(model, runs=model.runs[:2])
    assert [run.arm for run in paired.runs] == ["off", "mtp1"]
    return [
        [speed_up(*pair, workload) for workload in PUBLISHED]
        for pair in (tuple(simulate(paired, seed=seed)) for seed in range(100))
    ]


def test_other_seeds_tell_the_same_story(others: list) -> None:
    right = 0
    for measured in others:
        signs = [1 if low > 0 else -1 if high < 0 else 0 for _, low, high, _ in measured]
        right += signs == [1, 1, 1, -1, -1]
    assert right >= 95


def test_the_expected_speed_ups_are_the_published_ones(others: list) -> None:
    """So the sample's figures are the model's, not the luck of its seed (standard error 0.04)."""
    for number, (workload, published) in enumerate(PUBLISHED.items()):
        mean = np.mean([measured[number][0] for measured in others])
        assert mean == pytest.approx(published, abs=0.2), workload
