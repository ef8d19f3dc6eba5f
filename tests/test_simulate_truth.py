"""What a simulation draws is what its model states: margins, luck, costs and their noise."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import polars as pl
import pytest

from tauscope.simulate import Model, simulate, texts
from tauscope.simulate.model import Workload

STATED = {
    "name": "agent",
    "prompts": 1,
    "tokens": 1000,
    "margin_mean": 2.0,
    "margin_sd": 2.5,
    "right_floor": 0.4,
    "right_ceiling": 0.95,
    "right_middle": 2.0,
    "right_slope": 1.5,
}


def drawn(prompts: int = 200, **changes: object) -> texts.Texts:
    return texts.draw(msgspec.convert(STATED | changes, Workload), 11, range(prompts))


def below(bar: float, mean: float, sd: float) -> float:
    """P(|normal| < bar)."""
    phi = lambda x: (1 + math.erf(x / math.sqrt(2))) / 2  # noqa: E731
    return phi((bar - mean) / sd) - phi((-bar - mean) / sd)


@pytest.mark.parametrize("bar", [0.5, 2.0, 3.0, 6.0])
def test_margins_have_the_stated_distribution(bar: float) -> None:
    margin = drawn().margin
    assert (margin < bar).mean() == pytest.approx(below(bar, 2.0, 2.5), abs=0.005)
    assert margin.min() >= 0
    assert np.array_equal(margin, np.round(margin, 3))


def test_prompts_differ_as_stated() -> None:
    margin = drawn(400, margin_mean=50.0, margin_between_prompts=0.3).margin
    # What differs between prompts is their shift and the mean of 1000 draws.
    assert margin.mean(axis=1).std() == pytest.approx(math.hypot(0.3, 2.5 / 1000**0.5), rel=0.1)


@pytest.mark.parametrize("stated", [0.0, 0.3, 0.9])
def test_margins_follow_on_each_other_as_stated(stated: float) -> None:
    margin = drawn(margin_mean=50.0, margin_autocorrelation=stated).margin - 50
    for lag in (1, 2):
        measured = (margin[:, lag:] * margin[:, :-lag]).mean() / margin.var()
        assert measured == pytest.approx(stated**lag, abs=0.02)
    assert margin.std() == pytest.approx(2.5, rel=0.02)
    # The first position is drawn like any other.
    assert margin[:, 0].std() == pytest.approx(2.5, rel=0.2)


@pytest.mark.parametrize("chained", [0.0, 0.6])
def test_drafts_are_right_as_often_as_their_margin_says(chained: float) -> None:
    text = drawn(right_autocorrelation=chained)
    for low in (0.0, 1.0, 1.5, 2.0, 3.0, 5.0):
        here = (text.margin >= low) & (text.margin < low + 0.2)
        says = 0.4 + 0.55 / (1 + math.exp(-1.5 * (low + 0.1 - 2)))
        se = math.sqrt(says * (1 - says) / here.sum())
        assert here.sum() > 500
        assert text.right[here].mean() == pytest.approx(says, abs=4 * se + 0.003)


def test_luck_follows_on_itself_only_where_stated() -> None:
    def follows(right: np.ndarray) -> float:
        return right[:, 1:][right[:, :-1]].mean() - right.mean()

    flat = {"right_floor": 0.5, "right_ceiling": 0.5}
    assert abs(follows(drawn(**flat).right)) < 0.01
    # Half of a bivariate normal with correlation r: P(both) = 1/4 + asin(r) / 2π.
    more = follows(drawn(**flat, right_autocorrelation=0.6).right)
    assert more == pytest.approx(math.asin(0.6) / math.pi, abs=0.01)


def test_a_flat_drafter_is_flat() -> None:
    text = drawn(right_floor=0.45, right_ceiling=0.45)
    for low in (0, 2, 5):
        assert text.right[text.margin >= low].mean() == pytest.approx(0.45, abs=0.02)


def test_wrong_drafts_are_other_tokens() -> None:
    text = drawn(20)
    following = text.next_token()
    assert (following[:, -1] == -1).all()
    assert np.array_equal(following[:, :-1], text.token[:, 1:])
    assert (text.wrong != following).all()
    assert text.token.min() >= 1
    assert text.token.max() < texts.VOCABULARY


def test_deeper_drafts_are_right_less_often() -> None:
    flat = STATED | {"right_floor": 0.8, "right_ceiling": 0.8, "prompts": 100, "depth_decay": 0.9}
    block = {"arm": "b", "path": "continuous", "depth": 3}
    (part,) = simulate(built(block, {"forward_ms": [1, 1, 1, 1]}, flat))
    full = part.cycles.filter(pl.col("verified") == 3)
    reached, before = full.height, 0.0
    for ahead in range(3):
        got = full.filter(pl.col("accepted") > ahead).height
        # Given that the one before it was right there is nothing else to know.
        says = 0.8 * 0.9**ahead
        assert got / reached == pytest.approx(says, abs=0.01), ahead
        reached, before = got, got / reached
    assert before > 0


def built(run: dict, costs: dict, workload: dict = STATED, **more: object) -> Model:
    stated = {
        "name": "m",
        "seed": 5,
        "costs": {"draft_ms": 4.0} | costs,
        "workloads": [workload],
        "runs": [run],
    }
    return msgspec.convert(stated | more, Model)


OFF = {"arm": "off", "path": "off"}
GATED = {"arm": "mtp1", "path": "continuous", "threshold": 2.0}


def test_times_scatter_about_what_is_stated() -> None:
    costs = {"forward_ms": [60.0, 90.0], "other_ms": 0.5, "cycle_noise": 0.05}
    (part,) = simulate(built(GATED, costs, STATED | {"prompts": 40}))
    for outcome, name, stated in (
        ("folded", "decode_ms", 60.0),
        ("folded", "draft_ms", 4.0),
        ("folded", "wall_ms", 64.5),
        ("all_accepted", "verify_ms", 90.0),
        ("all_accepted", "wall_ms", 94.5),
        ("rejected", "verify_ms", 90.0),
    ):
        times = part.cycles.filter(pl.col("outcome") == outcome)[name]
        assert times.len() > 500
        assert times.mean() == pytest.approx(stated, rel=4 * 0.05 / times.len() ** 0.5)
        if name != "wall_ms":
            assert times.log().std() == pytest.approx(0.05, rel=0.1)


def test_the_two_stages_of_a_cycle_scatter_apart() -> None:
    costs = {"forward_ms": [60.0, 90.0], "cycle_noise": 0.05}
    (part,) = simulate(built(GATED, costs, STATED | {"prompts": 40}))
    folds = part.cycles.filter(pl.col("outcome") == "folded")
    assert abs(folds.select(pl.corr("draft_ms", "decode_ms")).item()) < 0.05


def test_runs_scatter_as_stated() -> None:
    one = STATED | {"tokens": 1}
    costs = {"forward_ms": [1000.0], "run_noise": 0.02}
    walls = [
        part.cycles["wall_ms"].item()
        for seed in range(300)
        for part in simulate(built(OFF, costs, one), seed=seed)
    ]
    assert np.mean(walls) == pytest.approx(1000, rel=0.005)
    assert np.std(np.log(walls)) == pytest.approx(0.02, rel=0.15)


def test_warm_up_fades_over_the_first_cycles_of_the_run_only() -> None:
    costs = {"forward_ms": [100.0], "warmup_cycles": 4, "warmup_slowdown": 0.4}
    (part,) = simulate(built(OFF, costs, STATED | {"prompts": 2, "tokens": 6}))
    assert part.cycles["wall_ms"].to_list() == [140.0, 130.0, 120.0, 110.0] + [100.0] * 8


def test_drift_follows_the_hours() -> None:
    costs = {"forward_ms": [36_000.0], "drift_per_hour": 0.1, "prefill_tokens_per_s": 1e9}
    (part,) = simulate(built(OFF, costs, STATED | {"tokens": 201, "prompt_tokens": 1}))
    wall = part.cycles["wall_ms"]
    # A hundred undrifted steps of 36 s are an hour.
    assert wall[0] == pytest.approx(36_000)
    assert wall[100] == pytest.approx(36_000 * 1.1)
    assert wall[200] == pytest.approx(36_000 * 1.2)


def test_a_longer_context_is_slower() -> None:
    costs = {"forward_ms": [100.0], "per_1k_tokens": 0.05}
    (part,) = simulate(built(OFF, costs, STATED | {"tokens": 3000}))
    c = part.cycles.with_columns(says=(100 * (1 + 0.05 * pl.col("pos") / 1000)).round(3))
    assert (c["wall_ms"] - c["says"]).abs().max() < 0.002


def test_the_clock_counts_prefill_and_cycles() -> None:
    costs = {"forward_ms": [50.0], "prefill_tokens_per_s": 1000.0}
    (part,) = simulate(built(OFF, costs, STATED | {"prompts": 2, "tokens": 2}))
    first, second = part.requests["prefill_ms"]
    assert [first, second] == part.requests["prompt_tokens"].to_list()
    assert part.cycles["t_ms"].to_list() == [
        first,
        first + 50,
        first + 100 + second,
        first + 150 + second,
    ]
