"""What cycles cost: the stated parts, and what makes them vary."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from tauscope.simulate import walk
from tauscope.simulate.model import Costs
from tauscope.simulate.texts import DECIMALS
from tauscope.simulate.walk import Cycles

HOUR_MS = 3_600_000


@dataclass(slots=True)
class Stages:
    """Times of some cycles in ms, arrays of one shape; NaN where a stage didn't take place.

    `unlogged` is what stands in no stage's column: a decode that no gate asked for,
    draft 1 of the legacy path, `other_ms`.
    """

    draft: np.ndarray
    snapshot: np.ndarray
    verify: np.ndarray
    commit: np.ndarray
    decode: np.ndarray
    unlogged: np.ndarray

    def logged(self) -> np.ndarray:
        """Sum of the stages that have a column; NaN where there was none."""
        stages = np.stack([self.draft, self.snapshot, self.verify, self.commit, self.decode])
        return np.where(np.isnan(stages).all(axis=0), np.nan, np.nansum(stages, axis=0))

    def whole(self) -> np.ndarray:
        """The whole cycle."""
        return np.nan_to_num(self.logged()) + self.unlogged

    def scaled(self, factor: np.ndarray) -> Stages:
        return Stages(*(getattr(self, field.name) * factor for field in fields(self)))

    def rounded(self) -> Stages:
        return Stages(*(np.round(getattr(self, field.name), DECIMALS) for field in fields(self)))


def stages(costs: Costs, cycles: Cycles, noise: np.ndarray, *, legacy: bool) -> Stages:
    """Stated times of `cycles`, each with its noise.

    `noise` (2, cycles) are standard normals: one for target passes, one for drafting. The
    lognormal factors have mean 1, so that a stated time is the mean time.
    """
    target, drafting = np.exp(costs.cycle_noise * noise - costs.cycle_noise**2 / 2)
    passes = np.array(costs.forward_ms)
    bet = cycles.verified > 0
    folded = cycles.outcome == walk.FOLDED
    alone = cycles.outcome == walk.UNVERIFIED  # draft 1 goes through the verifier by itself
    paid = bet | alone
    # The continuous pass scores the base token beside the drafts, and pays for draft 1;
    # the legacy one scores the free draft 1 beside those that are verified.
    scored = np.where(paid, cycles.verified, 0)
    timed = cycles.drafted - cycles.free_checked
    cut = bet & (cycles.accepted < cycles.verified)
    base = np.ones_like(bet) if legacy else ~bet & ~folded
    return Stages(
        draft=np.where((timed > 0) | paid, costs.draft_ms * timed * drafting, np.nan),
        snapshot=np.where(paid, costs.snapshot_ms, np.nan),
        verify=np.where(paid, passes[scored] * target, np.nan),
        commit=np.where(paid, np.where(cut, costs.replay_ms, 0.0) * target, np.nan),
        decode=np.where(folded, passes[0] * target, np.nan),
        unlogged=costs.other_ms
        + np.where(base, passes[0], 0.0) * target
        + costs.draft_ms * cycles.free_checked * drafting,
    )


@dataclass(slots=True)
class Clock:
    """Where a run stands: cycles done and ms gone, with drift and without."""

    factor: float  # of the run as a whole
    cycles: int = 0
    ms: float = 0.0
    undrifted_ms: float = 0.0

    def advance(
        self, costs: Costs, stated: Stages, pos: np.ndarray, before: np.ndarray
    ) -> tuple[Stages, np.ndarray]:
        """Times as the run's course makes them, rounded, and ms since it began at each start.

        `pos` is the context position of each cycle, `before` the prefill right before it
        (0 but for the first of a request). Drift follows the hours that would have gone
        without it; the clock moves on to the end.
        """
        order = self.cycles + np.arange(pos.size)
        fade = np.maximum(0.0, 1 - order / costs.warmup_cycles) if costs.warmup_cycles else 0.0
        level = self.factor * (1 + costs.warmup_slowdown * fade)
        steady = stated.scaled(level * (1 + costs.per_1k_tokens * pos / 1000))
        took = steady.whole() + before
        hours = (self.undrifted_ms + np.cumsum(took) - took) / HOUR_MS
        # A clock that speeds up for ever would end at no time at all.
        times = steady.scaled(np.maximum(0.1, 1 + costs.drift_per_hour * hours)).rounded()
        gone = np.cumsum(times.whole() + before)
        began = self.ms + gone - times.whole()
        self.cycles += pos.size
        self.undrifted_ms += float(took.sum())
        self.ms += float(gone[-1]) if gone.size else 0.0
        return times, np.round(began, DECIMALS)


def run_factor(costs: Costs, seed: int, run: int) -> float:
    """How much slower or faster one whole run is than stated: lognormal, mean 1."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(run,))))
    return float(np.exp(costs.run_noise * rng.standard_normal() - costs.run_noise**2 / 2))
