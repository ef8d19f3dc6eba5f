"""The gate: is the drafter's lead worth a bet?

Every arm is one `Gate`: off drafts nothing, depth 1 is the continuous path, deeper
ones verify a block, and shadow is a gate whose bar nothing reaches.
"""

from __future__ import annotations

from dataclasses import dataclass

SHUT = 1e9  # a bar that no margin reaches: everything is drafted, nothing is bet on


@dataclass(frozen=True, slots=True)
class Gate:
    """At most `depth` draft tokens a cycle, verified when the first one's margin reaches `bar`.

    The margin is a difference of natural logarithms of probability, as logits are.
    """

    depth: int = 0
    bar: float = 3.0

    def bets(self, margin: float) -> bool:
        """Whether a draft with this margin goes to verification."""
        return margin >= self.bar
