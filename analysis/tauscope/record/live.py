"""How a run is going, in a few numbers: the last minute against the whole run."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import polars as pl

WINDOW_S = 60.0
# Nothing for so long between two looks means that the engine waited, not that it was slow.
IDLE_S = 2.0


@dataclass(slots=True)
class Sums:
    """Numerators and denominators, as sql/macros.sql has them; None where one is unknown."""

    cycles: int = 0
    emitted: int | None = 0
    verified: int | None = 0
    accepted: int | None = 0
    folded: int | None = 0
    wall_ms: float | None = 0.0
    # Tokens that came in so many seconds of the clock, pauses left out.
    clocked: int | None = 0
    busy_s: float = 0.0

    def add(self, other: Sums) -> None:
        """Add `other`; what is unknown in one of them is unknown in the sum."""
        for name in ("emitted", "verified", "accepted", "folded", "wall_ms", "clocked"):
            mine, theirs = getattr(self, name), getattr(other, name)
            setattr(self, name, None if mine is None or theirs is None else mine + theirs)
        self.cycles += other.cycles
        self.busy_s += other.busy_s

    @property
    def tau(self) -> float | None:
        """τ, tokens a cycle."""
        return _ratio(self.emitted, self.cycles)

    @property
    def acceptance(self) -> float | None:
        """Committed-draft acceptance."""
        return _ratio(self.accepted, self.verified)

    @property
    def fold_rate(self) -> float | None:
        """Folded cycles over all cycles."""
        return _ratio(self.folded, self.cycles)

    @property
    def tokens_per_s(self) -> float | None:
        """By the cycles' own times where they are logged, else by the clock while cycles came."""
        if self.wall_ms:
            return _ratio(self.emitted, self.wall_ms / 1000)
        return _ratio(self.clocked, self.busy_s)


def _ratio(num: float | None, den: float | None) -> float | None:
    return None if num is None or not den else num / den


def sums(cycles: pl.DataFrame, busy_s: float = 0.0) -> Sums:
    """Sums over rows of `cycles`; one unknown value makes its sum unknown."""
    kept = pl.col("outcome") != "fallback"
    unknown = pl.col("outcome") == "unknown"
    # Counts are Int32, and so would their sums be.
    wide = {name: pl.col(name).cast(pl.Int64) for name in ("emitted", "verified", "accepted")}
    exact = [
        pl.when(value.null_count() == 0).then(value.sum()).alias(name)
        for name, value in (("emitted", wide["emitted"]), ("wall_ms", pl.col("wall_ms")))
    ]
    paid = [
        pl.when(wide[name].filter(kept).null_count() == 0)
        .then(wide[name].filter(kept).sum())
        .alias(name)
        for name in ("verified", "accepted")
    ]
    folded = pl.when(~unknown.any()).then((pl.col("outcome") == "folded").sum()).alias("folded")
    row = cycles.select(*exact, *paid, folded).row(0, named=True)
    clocked = row["emitted"] if busy_s else 0
    return Sums(cycles=cycles.height, busy_s=busy_s, clocked=clocked, **row)


@dataclass(slots=True)
class Gauge:
    """Takes cycles as they come; keeps a sum of all and one for each look of the last minute."""

    whole: Sums = field(default_factory=Sums)
    _looks: deque[tuple[float, Sums]] = field(default_factory=deque)
    _before: float | None = None

    def take(self, cycles: pl.DataFrame, now: float) -> None:
        """New rows of `cycles`, seen at `now` (seconds, any clock that only runs forward)."""
        if cycles.height:
            since = now - self._before if self._before is not None else 0.0
            new = sums(cycles, since if since <= IDLE_S else 0.0)
            self.whole.add(new)
            self._looks.append((now, new))
            self._before = now

    def minute(self, now: float) -> Sums:
        """The sums of the minute before `now`."""
        while self._looks and self._looks[0][0] < now - WINDOW_S:
            self._looks.popleft()
        total = Sums()
        for _, new in self._looks:
            total.add(new)
        return total

    def line(self, now: float, width: int = 79) -> str:
        """One line for a terminal: each number over the last minute, then over the whole run."""
        minute, whole = self.minute(now), self.whole
        text = "1 min (run):"
        for part in (
            f"{_number(minute.tokens_per_s)} ({_number(whole.tokens_per_s)}) tok/s",
            f"τ {_number(minute.tau, '.2f')} ({_number(whole.tau, '.2f')})",
            f"acc {_share(minute.acceptance)} ({_share(whole.acceptance)}) %",
            f"folds {_share(minute.fold_rate)} ({_share(whole.fold_rate)}) %",
            f"{whole.cycles} cycles",
        ):
            # A part that doesn't fit is left out whole.
            text = f"{text}  {part}" if len(text) + 2 + len(part) <= width else text
        return text


def _number(value: float | None, form: str = ".1f") -> str:
    return "–" if value is None else format(value, form)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f}"
