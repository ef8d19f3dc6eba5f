"""What holds of every interval, whatever the numbers."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauscope import stats, within

COUNTS = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(0, 5000)).map(lambda two: (min(two), max(two))),
    max_size=12,
)
TIMES = st.lists(
    st.tuples(st.floats(0, 1e9), st.floats(0, 1e6), st.floats(0, 1e9), st.floats(0, 1e6)),
    max_size=12,
)
MAYBE = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True), st.integers(-9, 9))


def columns(rows: list[tuple], width: int) -> list[np.ndarray]:
    return list(np.array(rows, dtype=float).reshape(-1, width).T)


def sound(found: stats.Interval) -> None:
    for number in (found.value, found.lo, found.hi):
        assert number is None or math.isfinite(number)
    assert (found.lo is None) == (found.hi is None) == (found.method is None)
    assert (found.reason is None) == (found.lo is not None)
    if found.lo is not None:
        assert found.lo <= found.value <= found.hi


@given(COUNTS)
def test_shares_lie_within_0_and_1_and_hold_their_value(rows):
    found = stats.proportion(*columns(rows, 2))
    sound(found)
    if found.lo is not None:
        assert 0 <= found.lo <= found.hi <= 1
        assert found.lo < found.hi


@given(COUNTS)
def test_ratios_hold_their_value(rows):
    sound(stats.ratio(*columns(rows, 2)))


@given(TIMES, st.booleans())
def test_speedups_hold_their_value(rows, paired):
    sound(stats.speedup(*columns(rows, 4), paired=paired))


@given(COUNTS, st.floats(0.001, 1000))
def test_a_unit_is_only_a_factor(rows, factor):
    num, den = columns(rows, 2)
    plain, scaled = stats.ratio(num, den), stats.ratio(num * factor, den)
    for one, other in zip(
        (plain.value, plain.lo, plain.hi), (scaled.value, scaled.lo, scaled.hi), strict=True
    ):
        assert other == (None if one is None else pytest.approx(one * factor, abs=1e-6 * factor))


@given(COUNTS, st.randoms(use_true_random=False))
def test_the_order_of_clusters_is_nothing(rows, shuffler):
    mixed = list(rows)
    shuffler.shuffle(mixed)
    first, second = (stats.proportion(*columns(some, 2)) for some in (rows, mixed))
    for one, other in zip((first.lo, first.hi), (second.lo, second.hi), strict=True):
        assert other == (None if one is None else pytest.approx(one, abs=1e-9))


@given(st.lists(st.tuples(st.sampled_from("ab"), MAYBE, MAYBE), max_size=12))
def test_grouped_gives_null_with_a_reason_and_never_nan(rows):
    schema = {"g": pl.String, "x_num": pl.Float64, "x_den": pl.Float64}
    frame = pl.DataFrame(
        [(g, *(None if v is None else float(v) for v in pair)) for g, *pair in rows],
        schema=schema,
        orient="row",
    )
    for kind in stats.KINDS:
        found = stats.grouped(frame, ["g"], {"x": kind})
        for row in found.iter_rows(named=True):
            for name in ("x", "x_num", "x_den", "x_lo", "x_hi"):
                assert row[name] is None or not math.isnan(row[name])
            assert (row["x_lo"] is None) == (row["x_why"] is not None)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=40))
def test_a_run_of_any_cycles_is_sound(rows):
    num, den = columns(rows, 2)
    sound(within.within_run(num, den))
    sound(within.within_run(np.minimum(num, den), den, "proportion"))
