"""The decode loop: draft, ask the gate, score base and drafts in one pass, keep what holds.

A cycle begins with its base token already decided, by the logits of the cycle before.
A bet scores `[base, drafts…]` together; the cache then loses what was rejected. A fold
scores the base alone. Greedy throughout: a draft is accepted when the target would
have said the same.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.drafter import Drafter
from engine.gate import Gate
from tauscope.trace import Request, Trace


class Model(Protocol):
    """A target model with a cache of the tokens it has seen."""

    stops: Collection[int]
    """Tokens that end a text."""

    def prefill(self, tokens: Sequence[int]) -> NDArray:
        """Put a prompt into the empty cache; logits after its last token, shape (vocabulary,)."""
        ...

    def score(self, tokens: Sequence[int]) -> NDArray:
        """Append tokens to the cache; logits after each of them, shape (tokens, vocabulary)."""
        ...

    def forget(self, count: int) -> None:
        """Take the last `count` tokens out of the cache again."""
        ...


@dataclass(slots=True)
class Text:
    """What was generated, the end-of-text token left out, and why it ended."""

    tokens: list[int]
    finish: str
    prefill_ms: float
    decode_ms: float


@dataclass(slots=True)
class Turn:
    """What one cycle did, before it is written down."""

    drafts: list[int]
    margin: float
    bet: bool
    said: list[int]
    accepted: int
    kept: list[int]
    ends: bool


def generate(
    model: Model,
    drafter: Drafter,
    gate: Gate,
    prompt: Sequence[int],
    most: int,
    trace: Trace,
    request: Request,
) -> Text:
    """Up to `most` tokens after `prompt`, every cycle recorded in `trace` under `request`.

    Raises ValueError for an empty prompt.
    """
    if not prompt:
        raise ValueError("the prompt has no tokens")
    began = _ms()
    base = int(np.argmax(model.prefill(prompt)))
    drafter.extend(prompt)
    first = mark = _ms()
    out: list[int] = []
    ended = base in model.stops
    while not ended and len(out) < most:
        pos = len(prompt) + len(out)
        asked = _ms()
        drafter.extend([base])
        drafts, margin = drafter.draft(min(gate.depth, most - len(out) - 1))
        drafted = _ms()
        bet = bool(drafts) and gate.bets(margin)
        said = np.argmax(model.score([base, *drafts] if bet else [base]), axis=1).tolist()
        scored = _ms()
        turn = _judged(drafts, margin, bet, said, model.stops)
        if bet and turn.accepted < len(drafts):
            model.forget(len(drafts) - turn.accepted)
        drafter.extend(turn.kept)
        kept = _ms()
        out += [base, *turn.kept]
        for token in (base, *turn.kept):
            trace.token(request, token)
        ended = turn.ends or said[turn.accepted] in model.stops
        base = said[turn.accepted]
        # From mark to mark, so that the cycles add up to the whole: what writing a record takes
        # falls into the next cycle's wall time, and into no stage of it.
        start, mark = mark, _ms()
        _record(trace, request, gate, turn, pos, (start, asked, drafted, scored, kept, mark))
    return Text(out, "stop" if ended else "length", first - began, mark - first)


def _judged(
    drafts: list[int], margin: float, bet: bool, said: list[int], stops: Collection[int]
) -> Turn:
    accepted = 0
    if bet:
        while accepted < len(drafts) and drafts[accepted] == said[accepted]:
            accepted += 1
    kept = drafts[:accepted]
    end = next((place for place, token in enumerate(kept) if token in stops), None)
    return Turn(drafts, margin, bet, said, accepted, kept[:end], end is not None)


def _record(
    trace: Trace, request: Request, gate: Gate, turn: Turn, pos: int, marks: tuple[float, ...]
) -> None:
    start, asked, drafted, scored, kept, now = marks
    some, bet = bool(turn.drafts), turn.bet
    trace.record(
        request,
        outcome=None if bet else "folded" if some else "undrafted",
        path="verify" if bet else "decode",
        pos=pos,
        drafted=len(turn.drafts),
        verified=len(turn.drafts) if bet else 0,
        accepted=turn.accepted,
        emitted=1 + len(turn.kept),
        truncated=turn.ends,
        target_forwards=1,
        margin=turn.margin if some else None,
        threshold=gate.bar if some else None,
        draft_token=turn.drafts[0] if some else None,
        next_token=turn.said[0] if some else None,
        draft_ms=drafted - asked if some else None,
        verify_ms=scored - drafted if bet else None,
        decode_ms=None if bet else scored - drafted,
        commit_ms=kept - scored if bet else None,
        wall_ms=now - start,
    )


def _ms() -> float:
    return time.perf_counter_ns() / 1e6
