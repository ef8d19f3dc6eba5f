"""One colour for each workload, outcome and verdict, the same in every chart and table.

The hues are those of Okabe and Ito (*Color Universal Design*, 2008) and of Paul Tol's
muted scheme (2021): they stay apart for readers who don't see red and green alike, and
on light and dark paper. Colour never stands alone: a label or a tooltip says the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from tauscope import schema

WORKLOADS = {
    "agent": "#0072B2",
    "code": "#D55E00",
    "technical": "#009E73",
    "prose": "#CC79A7",
    "chat": "#E69F00",
    schema.UNLABELLED: "#8C8C8C",
}
# For a user's own labels, picked by the label's hash: the same on every page and machine.
OWN = ("#56B4E9", "#AA4499", "#44AA99", "#999933", "#CC6677", "#7B68C8", "#B0885E")
OUTCOMES = {
    "all_accepted": "#009E73",
    "partial": "#56B4E9",
    "rejected": "#D55E00",
    "folded": "#E69F00",
    "missed": "#CC79A7",
    "bypassed": "#7B68C8",
    "undrafted": "#A8A8A8",
    "unverified": "#0072B2",
    "unlogged": "#6B6B6B",
    "unknown": "#AA4499",
    "fallback": "#B0885E",
}
STAGES = {
    "draft": "#56B4E9",
    "snapshot": "#7B68C8",
    "verify": "#D55E00",
    "commit": "#CC79A7",
    "decode of folds": "#E69F00",
    "base decode": "#0072B2",
    "plain step": "#009E73",
    "in no stage": "#A8A8A8",
}
# Parts of the waterfall (economics/waterfall.py), and the plain step where it moved.
PARTS = {
    "accepted": "#009E73",
    "drafting": "#56B4E9",
    "bets_won": "#D55E00",
    "bets_lost": "#CC79A7",
    "folds": "#E69F00",
    "base": "#0072B2",
    "step": "#7B68C8",
    "unattributed": "#A8A8A8",
}
VERDICTS = {"on": "#009E73", "off": "#D55E00", "undecided": "#8C8C8C"}


def workload(label: str) -> str:
    """The colour of a workload: fixed for the known ones, by hash for a user's own."""
    known = WORKLOADS.get(label)
    if known:
        return known
    digest = blake2b(label.encode("utf-8", "surrogatepass"), digest_size=2).digest()
    return OWN[int.from_bytes(digest, "big") % len(OWN)]


def in_order(labels: Iterable[str]) -> list[str]:
    """Workloads in the order they are always shown: the known ones, then by name."""
    rank = {label: place for place, label in enumerate(schema.WORKLOADS)}
    last = {schema.UNLABELLED: 1}
    return sorted(set(labels), key=lambda x: (last.get(x, 0), rank.get(x, len(rank)), x))
