"""Whether speculation pays for a workload: on, off, or undecided and why.

The conditions and their bounds are those of "Uncertainty and verdicts". What
can't be shown is not assumed: an unknown input counts as its reason, with
three exceptions, told by `remarks`, where not knowing is not a fault:
drift in a log with one time a run, the gap between sources of the plain step
when there is only one source, and a baseline's drafter when no off arm exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tauscope.stats import Interval

REASONS = (
    "interval",
    "clusters",
    "bets",
    "treatment",
    "tokens",
    "baseline",
    "sources",
    "pairs",
    "outputs",
    "drift",
)
MEASURED, MODELLED = "measured", "modelled"
LEAST_CLUSTERS, LEAST_BETS, LEAST_PAIRS = 5, 30, 5
LEAST_SHARE = 0.5
TOKENS_SHARE, TOKENS_A_REQUEST = 0.01, 2
SOURCES_GAP, OUTPUTS_GAP = 0.03, 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a verdict on one workload and one treated arm rests on; None is unknown."""

    speedup: Interval
    basis: str
    """`measured` (both arms ran the prompts) or `modelled` (T from folds or a drafting arm)."""
    clusters: int
    """Prompts behind the speed-up; of unpaired arms the smaller number."""
    pairs: int | None = None
    """Prompts in both arms, repeats joined; looked at when measured."""
    verified: int | None = None
    """Draft tokens that a paid verification scored in the treated arm."""
    drafting_share: float | None = None
    """Cycles with a draft over cycles, treated arm."""
    unattributed_tokens: int | None = None
    """Tokens the engine says it generated less Σ emitted, both arms' worst; any sign."""
    generated_tokens: int | None = None
    requests: int | None = None
    baseline_drafts: bool | None = None
    """The off arm has a drafter loaded that drafts for nothing; None: no off arm, or not known."""
    sources_gap: float | None = None
    """Greatest relative difference between sources of T, as a fraction; None: one source."""
    outputs_equal: bool | None = None
    """None: the arms' outputs were not compared."""
    tokens_base: int | None = None
    tokens_treated: int | None = None
    drift: float | None = None
    """ms_per_token of one path, last third over first third of a run, less 1; None: no times."""
    interleaved: bool = False
    speedup_slower_step: Interval | None = None
    """S with T + 0.3 ms, where T comes from the decode_ms of folds; else None."""


def verdict(e: Evidence) -> tuple[str, list[str]]:
    """`on`, `off` or `undecided`, and the reasons in the order of REASONS.

    Raises ValueError for a basis that is neither measured nor modelled.
    """
    if e.basis not in (MEASURED, MODELLED):
        raise ValueError(f"verdict: basis {e.basis!r} is neither {MEASURED} nor {MODELLED}")
    side = _side(e.speedup)
    if e.speedup_slower_step is not None and _side(e.speedup_slower_step) != side:
        side = None
    measured = e.basis == MEASURED
    failed = {
        "interval": side is None,
        "clusters": e.clusters < LEAST_CLUSTERS,
        "bets": _under(e.verified, LEAST_BETS),
        "treatment": e.drafting_share is None or e.drafting_share <= LEAST_SHARE,
        "tokens": _tokens_open(e),
        "baseline": e.baseline_drafts is True or (measured and e.baseline_drafts is None),
        "sources": not measured and e.sources_gap is not None and abs(e.sources_gap) > SOURCES_GAP,
        "pairs": measured and _under(e.pairs, LEAST_PAIRS),
        "outputs": measured and _outputs_differ(e),
        "drift": _drifts(e),
    }
    reasons = [name for name in REASONS if failed[name]]
    return ("undecided" if reasons else str(side)), reasons


def remarks(e: Evidence) -> list[str]:
    """What was not known, or known and not held against the verdict, in words."""
    said = []
    if e.drift is None:
        said.append("drift can't be seen: no times within a run")
    elif e.interleaved and _moves(e):
        said.append(f"a path drifts by {e.drift:+.1%}; the arms were interleaved")
    if e.basis == MODELLED and e.sources_gap is None:
        said.append("one source of the plain step: nothing to hold it against")
    if e.basis == MEASURED and e.outputs_equal is False:
        said.append("the arms' outputs are not the same text")
    if e.baseline_drafts:
        said.append(
            "against a baseline that drafts: what speculation gains over drafting for nothing"
        )
    return said


def sign_flips(rows: Iterable[tuple[str, Interval]]) -> list[tuple[str, str]]:
    """Pairs (workload that gains, workload that loses), intervals on opposite sides of 1."""
    rows = list(rows)
    gains = [name for name, interval in rows if interval.above(1)]
    losses = [name for name, interval in rows if interval.below(1)]
    return [(gain, loss) for gain in gains for loss in losses]


def _side(interval: Interval) -> str | None:
    return "on" if interval.above(1) else "off" if interval.below(1) else None


def _under(count: int | None, least: int) -> bool:
    return count is None or count < least


def _tokens_open(e: Evidence) -> bool:
    if e.unattributed_tokens is None or e.generated_tokens is None or e.requests is None:
        return True  # a ledger without the engine's count may hide cycles that printed nothing
    open_ = abs(e.unattributed_tokens)
    return open_ > TOKENS_SHARE * e.generated_tokens and open_ > TOKENS_A_REQUEST * e.requests


def _outputs_differ(e: Evidence) -> bool:
    if e.outputs_equal is None or e.tokens_base is None or e.tokens_treated is None:
        return True
    return abs(e.tokens_treated - e.tokens_base) > OUTPUTS_GAP * e.tokens_base


def _moves(e: Evidence) -> bool:
    if e.drift is None or e.speedup.value is None:
        return False
    return abs(e.drift) > abs(e.speedup.value - 1) / 2


def _drifts(e: Evidence) -> bool:
    return not e.interleaved and _moves(e)
