"""The model file: what is stated about workloads, costs and runs, checked on reading."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tauscope.errors import Problem

# Upper bounds only catch slips (ms for µs, a count for a ratio): NaN and infinity too.
Ms = Annotated[float, Meta(ge=0, le=1e6)]
PositiveMs = Annotated[float, Meta(gt=0, le=1e6)]
Logits = Annotated[float, Meta(ge=-1000, le=1000)]
Spread = Annotated[float, Meta(ge=0, le=1000)]
Share = Annotated[float, Meta(ge=0, le=1)]
Correlation = Annotated[float, Meta(ge=0, le=0.999)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Depth = Annotated[int, Meta(ge=1, le=64)]
Name = Annotated[str, Meta(min_length=1, max_length=80, pattern=r"^[^\x00-\x1f\x7f]+\Z")]


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An unknown key is a typing error, never to be passed over."""


class Costs(Strict, kw_only=True):
    """What a cycle's parts take, common to all workloads, in ms.

    `forward_ms[i]` is one target pass that scores i + 1 tokens together: the first
    entry is the one-token decode, the second verifies one draft beside its base token.
    `other_ms` is the rest of every cycle (sampling, printing) and stands in no stage's
    column, so an undrafted cycle takes `forward_ms[0] + other_ms`. A bet of which a
    draft is rejected pays `replay_ms`, and one more target pass where that isn't 0.
    """

    forward_ms: Annotated[list[PositiveMs], Meta(min_length=1, max_length=65)]
    draft_ms: Ms  # one draft token
    snapshot_ms: Ms = 0.0
    replay_ms: Ms = 0.0
    other_ms: Ms = 0.0
    per_1k_tokens: Annotated[float, Meta(ge=0, le=10)] = 0.0  # slower by this share per 1000
    cycle_noise: Annotated[float, Meta(ge=0, le=1)] = 0.0  # sd of log time, each stage apart
    run_noise: Annotated[float, Meta(ge=0, le=1)] = 0.0  # sd of log time, one factor a run
    drift_per_hour: Annotated[float, Meta(ge=-0.5, le=10)] = 0.0  # slower by this share an hour
    warmup_cycles: Annotated[int, Meta(ge=0, le=100_000)] = 0
    warmup_slowdown: Annotated[float, Meta(ge=0, le=100)] = 0.0  # share at first, fading to 0
    prefill_tokens_per_s: Annotated[float, Meta(gt=0, le=1e9)] = 500.0


class Workload(Strict, kw_only=True):
    """The texts of one workload: what the drafter's margin is at a position, and its luck.

    Margin: |mean + prompt's shift + sd · z|, z a standard normal AR(1) along the text: the
    lead of one candidate over another, whichever is ahead. P(right | margin) =
    floor + (ceiling − floor) / (1 + exp(−slope · (margin − middle))); floor = ceiling is
    flat. A draft further ahead than the first is right `depth_decay` times as often for
    every step.
    """

    name: Name
    prompts: Count
    tokens: Count  # of every text
    prompt_tokens: Count = 500  # on average; each prompt has between half and 1.5 times that
    margin_mean: Logits
    margin_sd: Spread
    margin_between_prompts: Spread = 0.0  # sd of the prompts' shifts
    margin_autocorrelation: Correlation = 0.0
    right_floor: Share
    right_ceiling: Share
    right_middle: Logits = 0.0
    right_slope: Annotated[float, Meta(ge=0, le=1000)] = 1.0  # per logit
    right_autocorrelation: Correlation = 0.0  # of the luck that is left, given the margin
    depth_decay: Share = 1.0


class Run(Strict, kw_only=True, tag_field="path"):
    """One engine process: `arm` is its label, `workloads` what it generates (absent: all)."""

    arm: Name
    workloads: list[Name] | None = None


class Off(Run, tag="off", kw_only=True):
    """No drafter: a clean baseline."""


class Shadow(Run, tag="shadow", kw_only=True):
    """One draft at every position, never bet on."""


class Continuous(Run, tag="continuous", kw_only=True):
    """Base token and up to `depth` drafts in one pass; no `threshold`, no gate.

    The gate reads the first draft's margin before a second one is made.
    """

    depth: Depth = 1
    threshold: Logits | None = None


class Legacy(Run, tag="legacy", kw_only=True):
    """Base decode, a free check of draft 1, then draft 2 folded or bet on."""

    threshold: Logits | None = 3.0


class Model(Strict, kw_only=True):
    """All that is stated; `simulate` draws from it."""

    name: Name
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    machine: Name = "simulated"
    experiment: Name | None = None  # absent: the model's name
    costs: Costs
    workloads: Annotated[list[Workload], Meta(min_length=1, max_length=1000)]
    runs: Annotated[list[Off | Shadow | Continuous | Legacy], Meta(min_length=1, max_length=1000)]


def load_model(path: str | Path) -> Model:
    """The model stated in the TOML file `path`.

    Raises Problem, in one line, when the file can't be read, isn't TOML, or states
    something unknown, of a wrong type, or out of range.
    """
    try:
        with Path(path).open("rb") as handle:
            stated = tomllib.load(handle)
    except OSError as error:
        raise Problem(f"{path}: {error.strerror or error}; name a readable model file") from None
    except (ValueError, RecursionError) as error:
        raise Problem(f"{path}: not TOML ({_one_line(error)}); correct the file") from None
    try:
        model = msgspec.convert(stated, Model)
        check(model)
    except (msgspec.ValidationError, Problem) as error:
        raise Problem(f"{path}: {_one_line(error)}; correct that entry") from None
    return model


def check(model: Model) -> None:
    """What types alone can't say. Raises Problem."""
    names = [workload.name for workload in model.workloads]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise Problem(f"workload {twice[0]!r} is stated twice")
    for workload in model.workloads:
        if workload.right_floor > workload.right_ceiling:
            raise Problem(f"workload {workload.name!r}: right_floor is above right_ceiling")
    for number, run in enumerate(model.runs, 1):
        where = f"run {number} ({run.arm!r})"
        chosen = names if run.workloads is None else run.workloads
        unknown = [name for name in chosen if name not in names]
        if unknown:
            raise Problem(f"{where}: no workload {unknown[0]!r} is stated")
        if not chosen or len(set(chosen)) < len(chosen):
            raise Problem(f"{where}: workloads must name each workload once, and at least one")
        needed = scored(run)
        if len(model.costs.forward_ms) < needed:
            raise Problem(
                f"{where}: scores {needed} tokens in a pass, but costs.forward_ms states "
                f"only {len(model.costs.forward_ms)}"
            )


def scored(run: Run) -> int:
    """The most tokens that one target pass of the run scores together."""
    if isinstance(run, Continuous):
        return run.depth + 1
    return 2 if isinstance(run, Legacy) else 1


def draft_depth(run: Run) -> int:
    """The most draft tokens that a cycle of the run can hold."""
    if isinstance(run, Continuous):
        return run.depth
    return {Off: 0, Shadow: 1, Legacy: 2}[type(run)]


def threshold(run: Run) -> float | None:
    """The gate's bar; null without a gate, and for a shadow run, whose gate is always shut."""
    return run.threshold if isinstance(run, Continuous | Legacy) else None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
