"""The cycles that arise when an engine walks the positions of its texts.

Everything here is worked out for *every* position, as if a cycle began there; then the
positions where one does begin are picked. So no loop runs over cycles.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from tauscope.simulate.model import Continuous, Legacy, Run, Shadow, Workload, draft_depth
from tauscope.simulate.texts import Texts

OUTCOMES = (
    "undrafted",
    "folded",
    "rejected",
    "partial",
    "all_accepted",
    "missed",
    "unverified",
)
UNDRAFTED, FOLDED, REJECTED, PARTIAL, ALL_ACCEPTED, MISSED, UNVERIFIED = range(len(OUTCOMES))


@dataclass(slots=True)
class Cycles:
    """Arrays of one shape: cycles that begin at some positions. Times are not in it."""

    outcome: np.ndarray  # place in OUTCOMES
    drafted: np.ndarray
    free_checked: np.ndarray
    free_accepted: np.ndarray
    verified: np.ndarray
    accepted: np.ndarray
    emitted: np.ndarray
    margin: np.ndarray  # NaN where no gate read one
    draft_token: np.ndarray  # −1 where not logged
    next_token: np.ndarray  # −1 where not logged

    def at(self, positions: np.ndarray) -> Cycles:
        """The cycles at some places of the flattened arrays."""
        return Cycles(*(getattr(self, field.name).ravel()[positions] for field in fields(self)))


def plan(run: Run, workload: Workload, texts: Texts) -> Cycles:
    """The cycle that would begin at each position, arrays of (prompts, tokens)."""
    if isinstance(run, Legacy):
        return _legacy(run, workload, texts)
    return _continuous(run, workload, texts)


def starts(emitted: np.ndarray) -> np.ndarray:
    """Flat places where a cycle begins, in order.

    `emitted` (prompts, tokens) is what a cycle would emit from each position; it never
    reaches past its text. Pointer doubling: after round r the set holds the first 2^r
    cycles of every text, so the rounds are the logarithm of the longest text's cycles.
    """
    prompts, tokens = emitted.shape
    end = prompts * tokens
    place = np.arange(end).reshape(prompts, tokens)
    jump = place + emitted
    jump[jump >= place[:, :1] + tokens] = end  # a text's end is no other text's start
    jump = np.append(jump, end)
    found = place[:, 0]
    begun = np.zeros(end + 1, dtype=bool)
    while found.size:
        begun[found] = True
        reached = jump[np.flatnonzero(begun[:end])]
        found = reached[~begun[reached] & (reached < end)]
        if found.size:
            jump = jump[jump]
    return np.flatnonzero(begun[:end])


def _continuous(run: Run, workload: Workload, texts: Texts) -> Cycles:
    """Base token and drafts in one pass; the target's next token is known after any of them."""
    depth = draft_depth(run)
    fits = np.minimum(depth, _room(texts))
    tried = fits > 0
    if isinstance(run, Shadow):
        folded, gated = tried, tried
    elif isinstance(run, Continuous) and run.threshold is not None:
        folded, gated = tried & (texts.margin < run.threshold), tried
    else:
        folded = gated = np.zeros_like(tried)
    verified = np.where(folded, 0, fits)
    accepted = np.zeros_like(verified)
    going = np.ones_like(tried)
    for ahead in range(depth):
        going &= (verified > ahead) & _right(workload, texts, ahead)
        accepted += going
    outcome = np.where(tried, REJECTED, UNDRAFTED)
    outcome[folded] = FOLDED
    outcome[accepted > 0] = PARTIAL
    outcome[(accepted > 0) & (accepted == verified)] = ALL_ACCEPTED
    zero = np.zeros_like(verified)
    following = texts.next_token()
    return Cycles(
        outcome=outcome,
        drafted=np.where(folded, 1, fits),
        free_checked=zero,
        free_accepted=zero,
        verified=verified,
        accepted=accepted,
        emitted=1 + accepted,
        margin=np.where(gated, texts.margin, np.nan),
        draft_token=np.where(tried, np.where(texts.right, following, texts.wrong), -1),
        next_token=np.where(tried, following, -1),
    )


def _legacy(run: Legacy, workload: Workload, texts: Texts) -> Cycles:
    """Base decode, which judges draft 1 for free; the gate and the bet are about draft 2."""
    room = _room(texts)
    tried = room > 0
    first = tried & texts.right
    second = first & (room > 1)  # else a cap leaves draft 1 alone
    margin = _shifted(texts.margin, 1, np.nan)
    folded = np.zeros_like(second) if run.threshold is None else second & (margin < run.threshold)
    bet = second & ~folded
    accepted = bet & _right(workload, texts, 1)
    outcome = np.where(tried, MISSED, UNDRAFTED)
    outcome[first] = UNVERIFIED
    outcome[folded] = FOLDED
    outcome[bet] = REJECTED
    outcome[accepted] = ALL_ACCEPTED
    said = _shifted(texts.next_token(), 1, -1)
    proposed = np.where(accepted, said, _shifted(texts.wrong, 1, -1))
    return Cycles(
        outcome=outcome,
        drafted=tried.astype(np.int64) + second,
        free_checked=tried.astype(np.int64),
        free_accepted=first.astype(np.int64),
        verified=bet.astype(np.int64),
        accepted=accepted.astype(np.int64),
        emitted=1 + first.astype(np.int64) + accepted,
        margin=np.where(second & (run.threshold is not None), margin, np.nan),
        draft_token=np.where(bet, proposed, -1),
        next_token=np.where(bet, said, -1),
    )


def _room(texts: Texts) -> np.ndarray:
    """Draft tokens that still fit behind the base token of each position."""
    tokens = texts.margin.shape[1]
    return np.broadcast_to(np.arange(tokens - 1, -1, -1), texts.margin.shape)


def _right(workload: Workload, texts: Texts, ahead: int) -> np.ndarray:
    """Whether the draft that is `ahead` steps behind the first one, made at p, is right."""
    if not ahead:
        return texts.right
    right = texts.right & (texts.luck < workload.depth_decay**ahead)
    return _shifted(right, ahead, False)


def _shifted(values: np.ndarray, steps: int, fill: float) -> np.ndarray:
    """What stands `steps` positions on in the same text; `fill` beyond its end."""
    moved = np.full_like(values, fill)
    moved[:, : max(0, values.shape[1] - steps)] = values[:, steps:]
    return moved
