"""Intervals over clusters, against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from tauscope import stats

# Student's t, 97.5 %, from the printed tables.
T = {1: 12.7062, 2: 4.30265, 3: 3.18245, 4: 2.77645}


def test_ratio_of_sums_not_mean_of_ratios():
    # 10/10 and 30/10 and 40/20: Σ 80/40 = 2, while the mean of ratios is 2 as well only
    # by chance of the first two; residuals -10, +10, 0; se = sqrt(3/2 · 200)/40.
    found = stats.ratio([10, 30, 40], [10, 10, 20])
    half = T[2] * math.sqrt(300) / 40
    assert found.value == 2
    assert found.hi == pytest.approx(2 + half, rel=1e-5)
    assert found.lo == pytest.approx(2 - half, rel=1e-5)
    assert (found.clusters, found.method, found.reason) == (3, "ratio-t", None)


def test_ratio_weighs_long_prompts_more():
    found = stats.ratio([10, 300], [10, 100])
    assert found.value == pytest.approx(310 / 110)


def test_ratio_of_nothing_negative_stays_above_zero():
    found = stats.ratio([1, 9], [5, 5])  # t on one degree of freedom is wide
    assert found.lo == 0
    assert found.hi == pytest.approx(1 + T[1] * math.sqrt(2 * 32) / 10, rel=1e-5)


def test_a_signed_ratio_may_have_a_negative_bound():
    found = stats.ratio([-1, -9], [5, 5])
    assert found.value == -1
    assert found.lo < -1


def test_share_on_the_logit_scale():
    # 90/100 and 70/100: p = 0.8, residuals ±10, se = sqrt(2 · 200)/200 = 0.1;
    # logit 0.8 = ln 4, reach t · 0.1 / 0.16.
    found = stats.proportion([90, 70], [100, 100])
    reach = T[1] * 0.1 / 0.16
    assert found.value == pytest.approx(0.8)
    assert found.lo == pytest.approx(1 / (1 + math.exp(-math.log(4) + reach)), rel=1e-4)
    assert found.hi == pytest.approx(1 / (1 + math.exp(-math.log(4) - reach)), rel=1e-4)
    assert found.method == "logit-t"


@pytest.mark.parametrize(("num", "value", "lo", "hi"), [
    ([10, 20], 1.0, 0.025 ** (1 / 30), 1.0),
    ([0, 0], 0.0, 0.0, 1 - 0.025 ** (1 / 30)),
])  # fmt: skip
def test_all_or_none_is_exact_on_the_counts(num, value, lo, hi):
    found = stats.proportion(num, [10, 20])
    assert found.value == value
    assert (found.lo, found.hi) == (pytest.approx(lo), pytest.approx(hi))
    assert found.method == "clopper-pearson"


def test_clusters_that_agree_have_the_width_of_their_counts():
    # 5 of 10 by Clopper and Pearson: 0.187 to 0.813 in the printed tables.
    found = stats.proportion([1] * 5, [2] * 5)
    assert (found.lo, found.hi) == (
        pytest.approx(0.1871, abs=1e-4),
        pytest.approx(0.8129, abs=1e-4),
    )
    assert found.method == "clopper-pearson"


def test_one_cluster_has_a_value_and_no_interval():
    for found in (stats.ratio([356], [231]), stats.proportion([125], [129])):
        assert found.value is not None
        assert found.lo is found.hi is found.method is None
        assert found.reason == "one cluster: no spread between clusters to see"


def test_a_prompt_without_bets_says_nothing_of_acceptance():
    found = stats.proportion([90, 0, 70], [100, 0, 100])
    assert found == stats.proportion([90, 70], [100, 100])
    assert found.clusters == 2


def test_nothing_in_the_denominator_is_null():
    for found in (stats.ratio([], []), stats.ratio([0, 0], [0, 0]), stats.proportion([0], [0])):
        assert found.value is found.lo is found.hi is None
        assert found.reason == "nothing in the denominator"


def test_unknown_in_one_cluster_is_unknown_in_the_whole():
    found = stats.ratio([400, math.nan, 410], [260, 250, 240])
    assert found.value is found.lo is found.hi is None
    assert found.reason == "unknown in 1 of 3 clusters"


def test_more_accepted_than_verified_is_no_share():
    found = stats.proportion([11, 12], [10, 10])
    assert found.value == pytest.approx(1.15)
    assert found.lo is None
    assert "not a share" in found.reason


def test_shapes_must_match():
    with pytest.raises(ValueError, match="don't match"):
        stats.ratio([1, 2], [1])


def test_the_231_cycles_in_three_prompts():
    emitted, cycles = [120, 118, 118], [77, 77, 77]
    assert stats.ratio(emitted, cycles).value == pytest.approx(1.541, abs=5e-4)
    assert stats.proportion([42, 42, 41], [43, 43, 43]).value == pytest.approx(0.969, abs=5e-4)


def test_grouped_agrees_with_one_at_a_time():
    rng = np.random.default_rng(5)
    cycles = rng.integers(50, 300, 24)
    frame = pl.DataFrame(
        {
            "workload": np.repeat(["代码", "prose"], 12),
            "prompt_id": np.arange(24),
            "tau_num": cycles + rng.integers(0, 50, 24),
            "tau_den": cycles,
            "fold_rate_num": rng.binomial(cycles, 0.4),
            "fold_rate_den": cycles,
        }
    )
    kinds = {"tau": "ratio", "fold_rate": "proportion"}
    found = stats.grouped(frame, ["workload"], kinds)
    assert found["workload"].to_list() == ["代码", "prose"]
    for row in found.iter_rows(named=True):
        part = frame.filter(workload=row["workload"])
        for name, kind in kinds.items():
            num, den = part[f"{name}_num"], part[f"{name}_den"]
            alone = getattr(stats, kind)(num, den)
            assert row[name] == pytest.approx(alone.value)
            assert row[f"{name}_lo"] == pytest.approx(alone.lo)
            assert row[f"{name}_hi"] == pytest.approx(alone.hi)
            assert row[f"{name}_method"] == alone.method
            assert (row[f"{name}_num"], row[f"{name}_den"]) == (num.sum(), den.sum())
            assert row[f"{name}_why"] is None
        assert row["clusters"] == 12


def test_grouped_says_why_a_cell_is_null():
    frame = pl.DataFrame(
        {
            "arm": ["one", "none", "none", "gap", "gap"],
            "x_num": [3.0, 0.0, 0.0, None, 1.0],
            "x_den": [5, 0, 0, 2, 2],
        }
    )
    rows = {row["arm"]: row for row in stats.grouped(frame, ["arm"], {"x": "ratio"}).to_dicts()}
    assert rows["one"]["x"] == 0.6
    assert rows["one"]["x_why"].startswith("one cluster")
    assert rows["none"]["x"] is None
    assert rows["none"]["x_why"] == "nothing in the denominator"
    assert rows["gap"]["x"] is rows["gap"]["x_num"] is None
    assert rows["gap"]["x_why"] == "unknown in 1 of 2 clusters"
    assert all(row["x_lo"] is row["x_hi"] is row["x_method"] is None for row in rows.values())


def test_grouped_by_nothing_is_one_row_and_empty_is_none():
    frame = pl.DataFrame({"g": ["a", "b"], "x_num": [1, 3], "x_den": [2, 2]})
    assert stats.grouped(frame, [], {"x": "ratio"})["x"].to_list() == [1.0]
    empty = stats.grouped(frame.clear(), ["g"], {"x": "ratio"})
    assert empty.height == 0
    assert empty.schema["x_lo"] == pl.Float64
    assert empty.schema["x_why"] == pl.String


def test_grouped_takes_only_known_kinds():
    with pytest.raises(ValueError, match="share is no kind"):
        stats.grouped(pl.DataFrame({"x_num": [1], "x_den": [1]}), [], {"x": "share"})
