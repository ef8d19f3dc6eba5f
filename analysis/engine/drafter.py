"""An n-gram drafter: what followed these tokens before, here or in a table of English and code.

Its probabilities depend on the tokens before the draft and on nothing else, so a shadow
run tells what any other gate would have done. Orders are mixed from the shortest context
up, each seen count weighed against the shorter order's word (Dirichlet smoothing, as in
MacKay and Peto 1995); the margin is the logarithm of first over second choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ORDER = 4  # tokens of context, at most
WEIGHT = 0.5  # how many sightings the shorter context's word is worth
FLOOR = 1e-6  # probability of what was never seen
OTHERS = -1
TABLE = Path(__file__).with_name("table.npz")

Counts = dict[tuple[int, ...], dict[int, int]]


def load_table(path: Path = TABLE) -> Counts:
    """The static table: contexts of 0 to 2 tokens, their likely successors and counts.

    Successor OTHERS stands for all that were too rare to be kept.
    """
    with np.load(path) as file:
        rows = file["rows"]  # int32 (n, 4): two tokens of context or -1, successor, count
    table: Counts = {}
    for first, second, token, count in rows.tolist():
        context = tuple(part for part in (first, second) if part >= 0)
        table.setdefault(context, {})[token] = count
    return table


class Drafter:
    """Drafts from the text so far and from a static table.

    `extend` takes confirmed tokens only: a draft that was rejected leaves no mark.
    """

    def __init__(self, table: Counts) -> None:
        self._table = table
        self._seen: Counts = {}
        self._text: list[int] = []

    def extend(self, tokens: Sequence[int]) -> None:
        """Append confirmed tokens to the text and count what they follow."""
        for token in tokens:
            tail = tuple(self._text[-ORDER:])
            for start in range(len(tail)):
                after = self._seen.setdefault(tail[start:], {})
                after[token] = after.get(token, 0) + 1
            self._text.append(token)

    def draft(self, depth: int) -> tuple[list[int], float]:
        """At most `depth` tokens to come, and the margin of the first; ([], 0.0) for none."""
        drafts: list[int] = []
        margin = 0.0
        context = self._text[-ORDER:]
        for number in range(depth):
            best = self._best(tuple(context))
            if best is None:
                break
            token, lead = best
            if number == 0:
                margin = lead
            drafts.append(token)
            context = [*context, token][-ORDER:]
        return drafts, margin

    def _best(self, context: tuple[int, ...]) -> tuple[int, float] | None:
        """The likeliest token after `context`, and its lead over the next; None: nothing known."""
        tails = [context[start:] for start in range(len(context), -1, -1)]
        levels = [self._table.get(tail) for tail in tails] + [self._seen.get(t) for t in tails]
        odds: dict[int, float] = {}
        for level in filter(None, levels):
            odds.update(dict.fromkeys(level, FLOOR))
        odds.pop(OTHERS, None)
        for level in filter(None, levels):
            whole = sum(level.values()) + WEIGHT
            for token, shorter in odds.items():
                odds[token] = (level.get(token, 0) + WEIGHT * shorter) / whole
        if not odds:
            return None
        # Of equals the smaller id goes first, so that a repeat drafts the same.
        ranked = sorted(odds.items(), key=lambda item: (-item[1], item[0]))[:2]
        first = ranked[0]
        second = ranked[1][1] if len(ranked) > 1 else FLOOR
        return first[0], math.log(first[1] / second)
