"""The frames of a simulation, run by run and in parts, so that memory doesn't grow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b

import msgspec
import numpy as np
import polars as pl

from tauscope import __version__, schema
from tauscope.errors import Problem
from tauscope.simulate import texts, walk
from tauscope.simulate.model import (
    Legacy,
    Model,
    Off,
    Run,
    Workload,
    draft_depth,
    threshold,
)
from tauscope.simulate.texts import DECIMALS, Texts
from tauscope.simulate.times import Clock, Stages, run_factor, stages
from tauscope.simulate.walk import Cycles

PART = 1_000_000  # positions


@dataclass(frozen=True, slots=True)
class Simulated:
    """One part of one run: frames of schema RUNS (one row), REQUESTS and CYCLES.

    A run of more than PART positions comes in several parts, in order, each with the
    same run row; requests are never cut.
    """

    runs: pl.DataFrame
    requests: pl.DataFrame
    cycles: pl.DataFrame


def simulate(
    model: Model, *, seed: int | None = None, workloads: Sequence[str] | None = None
) -> Iterator[Simulated]:
    """The model's runs, one after another.

    `seed` takes the place of the model's own; `workloads` keeps only those of that name.
    The same arguments give the same frames, and a text is the same in every run.
    Raises Problem for a name that the model doesn't state.
    """
    seed = model.seed if seed is None else seed
    by_name = {workload.name: workload for workload in model.workloads}
    for name in workloads or ():
        if name not in by_name:
            raise Problem(f"{model.name}: no workload {name!r}; name one of {', '.join(by_name)}")
    for number, run in enumerate(model.runs):
        chosen = [
            by_name[name]
            for name in run.workloads or by_name
            if workloads is None or name in workloads
        ]
        if chosen:
            yield from _run(model, seed, number, run, chosen)


def _run(
    model: Model, seed: int, number: int, run: Run, chosen: list[Workload]
) -> Iterator[Simulated]:
    identity = msgspec.json.encode([model, seed, number, [workload.name for workload in chosen]])
    log_id = "sim-" + blake2b(identity, digest_size=8).hexdigest()
    row = _run_row(model, run, chosen, log_id)
    clock = Clock(run_factor(model.costs, seed, number))
    request_id = 0
    rounds = max(workload.prompts for workload in chosen)
    step = max(1, PART // sum(workload.tokens for workload in chosen))
    for begin in range(0, rounds, step):
        batches = []
        for place, workload in enumerate(chosen):
            prompts = range(begin, min(begin + step, workload.prompts))
            if prompts:
                batches.append(_batch(model, seed, number, run, workload, place, prompts))
        part = _in_turn(batches, request_id)
        request_id += len(part.request["prompt"])
        yield Simulated(row, *_frames(model, run, row, part, clock))


@dataclass(slots=True)
class Batch:
    """Cycles of some prompts in order, their stated times, and facts of each request.

    `request` maps a name to one value a request, `owner` is each cycle's place in it.
    """

    cycles: Cycles
    stages: Stages
    offset: np.ndarray  # position in the text
    owner: np.ndarray
    request: dict[str, np.ndarray]
    first_id: int = 0


def _batch(
    model: Model,
    seed: int,
    number: int,
    run: Run,
    workload: Workload,
    place: int,
    prompts: range,
) -> Batch:
    drawn: Texts = texts.draw(workload, seed, prompts)
    everywhere = walk.plan(run, workload, drawn)
    begun = walk.starts(everywhere.emitted)
    cycles = everywhere.at(begun)
    noise = np.zeros((2, len(prompts), workload.tokens))
    if model.costs.cycle_noise:
        for i, rng in enumerate(texts.streams(seed, workload.name, prompts, number)):
            noise[:, i] = rng.standard_normal((2, workload.tokens))
    owner, offset = np.divmod(begun, workload.tokens)
    legacy = isinstance(run, Legacy)
    width = max(2, len(str(workload.prompts)))
    return Batch(
        cycles=cycles,
        stages=stages(model.costs, cycles, noise.reshape(2, -1)[:, begun], legacy=legacy),
        offset=offset,
        owner=owner,
        request={
            "prompt": np.array(prompts),
            "place": np.full(len(prompts), place),
            "tokens": np.full(len(prompts), workload.tokens),
            "prompt_tokens": drawn.prompt_tokens,
            "workload": np.full(len(prompts), workload.name, dtype=object),
            "prompt_id": np.array(
                [f"{workload.name}-{prompt + 1:0{width}d}" for prompt in prompts], dtype=object
            ),
            "output_hash": np.array(drawn.hashes(), dtype=object),
        },
    )


def _in_turn(batches: list[Batch], first_id: int) -> Batch:
    """One batch out of several, in rounds: the first prompt of each workload, the second, …

    So what changes in the course of a run falls on all workloads alike.
    """
    request = {
        name: np.concatenate([batch.request[name] for batch in batches])
        for name in batches[0].request
    }
    turn = np.lexsort((request["place"], request["prompt"]))
    rank = np.empty_like(turn)
    rank[turn] = np.arange(turn.size)
    sizes = np.array([batch.request["prompt"].size for batch in batches])
    before = np.cumsum(sizes) - sizes
    owner = np.concatenate(
        [rank[batch.owner + ahead] for batch, ahead in zip(batches, before, strict=True)]
    )
    order = np.argsort(owner, kind="stable")

    def joined(kind: type, attribute: str) -> object:
        parts = [getattr(batch, attribute) for batch in batches]
        return kind(
            *(
                np.concatenate([getattr(part, field.name) for part in parts])[order]
                for field in fields(kind)
            )
        )

    return Batch(
        cycles=joined(Cycles, "cycles"),
        stages=joined(Stages, "stages"),
        offset=np.concatenate([batch.offset for batch in batches])[order],
        owner=owner[order],
        request={name: values[turn] for name, values in request.items()},
        first_id=first_id,
    )


def _frames(
    model: Model, run: Run, row: pl.DataFrame, part: Batch, clock: Clock
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Frames of REQUESTS and CYCLES; moves `clock` on."""
    costs, cycles, request = model.costs, part.cycles, part.request
    legacy = isinstance(run, Legacy)
    run_id = row.item(0, "run_id")
    prefill = np.round(request["prompt_tokens"] / costs.prefill_tokens_per_s * 1000, DECIMALS)
    first = np.append(True, part.owner[1:] != part.owner[:-1])
    pos = request["prompt_tokens"][part.owner] + part.offset
    done = clock.cycles
    times, began = clock.advance(costs, part.stages, pos, np.where(first, prefill[part.owner], 0.0))
    wall = np.round(times.whole(), DECIMALS)
    decode = np.bincount(part.owner, weights=wall, minlength=prefill.size)
    replayed = (cycles.verified > cycles.accepted) & (costs.replay_ms > 0)
    frame = pl.DataFrame(
        {
            "request_id": part.first_id + part.owner,
            "cycle": done + np.arange(pos.size),
            "pos": pos,
            "t_ms": began,
            "outcome": pl.Series(walk.OUTCOMES)[cycles.outcome],
            "path": pl.Series(_paths(run))[cycles.outcome],
            "drafted": cycles.drafted,
            "free_checked": cycles.free_checked,
            "free_accepted": cycles.free_accepted,
            "verified": cycles.verified,
            "accepted": cycles.accepted,
            "emitted": cycles.emitted,
            "target_forwards": _forwards(cycles, legacy) + replayed,
            "replayed": replayed,
            "margin": cycles.margin,
            "draft_token": cycles.draft_token,
            "next_token": cycles.next_token,
            "draft_ms": times.draft,
            "snapshot_ms": times.snapshot,
            "verify_ms": times.verify,
            "commit_ms": times.commit,
            "decode_ms": times.decode,
            "reported_ms": np.round(times.logged(), DECIMALS),
            "wall_ms": wall,
        },
        nan_to_null=True,
    )
    bar = pl.lit(threshold(run), dtype=pl.Float64)
    logged_tokens = ("draft_token", "next_token")
    frame = frame.with_columns(
        pl.lit(run_id).alias("run_id"),
        pl.lit("legacy" if legacy else "native").alias("dialect"),
        pl.lit(0).alias("resampled"),
        pl.lit(False).alias("truncated"),
        pl.when(pl.col("margin").is_not_null()).then(bar).alias("threshold"),
        *(pl.when(pl.col(name) >= 0).then(name).alias(name) for name in logged_tokens),
        # What an engine of that path doesn't print.
        *(
            pl.lit(None).alias(name)
            for name in (("wall_ms", "t_ms") if legacy else ("reported_ms",))
        ),
    )
    requests = pl.DataFrame(
        {
            "request_id": part.first_id + np.arange(prefill.size),
            "workload": request["workload"].tolist(),
            "prompt_id": request["prompt_id"].tolist(),
            "output_hash": request["output_hash"].tolist(),
            "prompt_tokens": request["prompt_tokens"],
            "generated_tokens": request["tokens"],
            "prefill_ms": prefill,
            "decode_ms": np.round(decode, DECIMALS),
        }
    ).with_columns(
        pl.lit(run_id).alias("run_id"),
        pl.lit("native").alias("kind"),
        pl.lit("length").alias("finish"),
        pl.lit("cycles").alias("tokens_source"),
        pl.lit(False).alias("overlapped"),
    )
    return schema.conform(requests, schema.REQUESTS), schema.conform(frame, schema.CYCLES)


def _forwards(cycles: Cycles, legacy: bool) -> np.ndarray:
    """Target passes without replays: base and what follows, or the one pass for all."""
    return 1 + cycles.free_accepted if legacy else np.ones_like(cycles.emitted)


def _paths(run: Run) -> list[str]:
    """The engine's name for each of walk.OUTCOMES."""
    bet = "micro" if isinstance(run, Legacy) else f"verify{draft_depth(run) + 1}"
    named = {"undrafted": "decode", "folded": "margin-skip", "missed": "miss"}
    return [named.get(outcome, bet) for outcome in walk.OUTCOMES]


def _run_row(model: Model, run: Run, chosen: list[Workload], log_id: str) -> pl.DataFrame:
    row = {
        "run_id": f"{log_id}-0",
        "log_id": log_id,
        "run_index": 0,
        "source": f"{model.name} {run.arm}",
        "source_kind": "simulate",
        "state": "complete",
        "simulated": True,
        "baseline_drafts": False,
        "workload": chosen[0].name if len(chosen) == 1 else None,
        "arm": run.arm,
        "experiment": model.experiment or model.name,
        "machine": model.machine,
        "model": model.name,
        "drafter": None if isinstance(run, Off) else f"{model.name} drafter",
        "draft_depth": draft_depth(run),
        "threshold": threshold(run),
        "dialects": ["legacy" if isinstance(run, Legacy) else "native"],
        "refused_rows": 0,
        "unlogged_cycles": 0,
        "version": __version__,
        "schema_version": schema.SCHEMA_VERSION,
    }
    return schema.conform(pl.DataFrame([row]), schema.RUNS)
