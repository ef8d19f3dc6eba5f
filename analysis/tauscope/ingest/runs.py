"""What is known of a run while its log is read; bounded, however long the log is."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from tauscope.ingest.records import Rule
from tauscope.ingest.startup import LAST
from tauscope.schema import RUNS

EXAMPLES = 3
NAMES = 64  # facts and unknown kinds kept a run


@dataclass
class Run:
    """Counters and facts of one run; `row` makes its row of `runs`."""

    index: int
    first_line: int
    last_line: int
    told: int = 0  # lines that said something
    unfit: int = 0
    examples: list[dict] = field(default_factory=list)
    facts: dict[str, tuple[str, int]] = field(default_factory=dict)
    dialects: set[str] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    requests: int = 0
    cycles: int = 0
    refused: int = 0
    unlogged: int = 0
    emitted: int = 0
    uncounted: int = 0  # cycles that don't say what they emitted
    speculated: int = 0
    misses: int = 0
    timed: int = 0  # legacy timing lines other than `sample`
    sampled: int = 0
    silent: int = 0  # legacy cycles of the path whose misses and folds may print nothing
    miss_lines: int = 0
    told_tokens: int = 0  # tokens of the requests that the engine counted
    told_requests: int = 0
    exact: int | None = None  # the count given for the run's only request
    threshold: float | None = None
    spoke: bool = False  # a speed or request line was seen

    def tell(self, name: str, value: str, line: int, keep: str) -> None:
        """Take a fact; the first or the last of a name stays."""
        if name not in self.facts:
            if len(self.facts) < NAMES:
                self.facts[name] = (value, line)
        elif keep == LAST and line >= self.facts[name][1]:
            self.facts[name] = (value, line)

    def _fact(self, name: str) -> str | None:
        found = self.facts.get(name)
        return found[0] if found else None

    @property
    def baseline_drafts(self) -> bool | None:
        """A drafter deeper than 1 is loaded and nothing was speculated; null when unknown."""
        depth = self._fact("draft_depth")
        if self.speculated:
            return False
        if self._fact("drafter") is not None:
            if depth is None or not self.spoke:
                return None
            return int(depth) > 1
        if depth is not None or "started" not in self.facts:
            return None
        return False

    @property
    def hidden_cycles(self) -> bool | None:
        """Whether cycles may be missing that printed nothing; null when that can't be told.

        On the legacy path a miss and a fold each need a switch of their own to be
        printed. That both were on, or an exact count of tokens that the cycles add
        up to, shows that none is missing (ds4-logs.md, dark cycles). A refused row is a
        cycle that is missing from the counts, in any dialect.
        """
        if self.refused:
            return True
        if not self.cycles:
            return None
        if self.silent and not (self.timed and (self.miss_lines or self._adds_up)):
            return True
        return None if "dspark" in self.dialects else False

    @property
    def _adds_up(self) -> bool:
        """Whether every token of an exact count is that of a known cycle."""
        if self.uncounted:
            return False
        emitted = self.emitted + self.unlogged
        if self.exact is not None:
            return self.exact == emitted
        return 0 < self.requests == self.told_requests and self.told_tokens == emitted

    def row(self, log_id: str, index: int) -> dict:
        """The run's row of `runs`, `index` its place; what the log can't tell is left out."""
        depth, ctx = self._fact("draft_depth"), self._fact("ctx")
        device = self._fact("device")
        lines = max(0, self.last_line - self.first_line + 1)
        return {
            "run_id": f"{log_id}-{index}",
            "log_id": log_id,
            "run_index": index,
            "baseline_drafts": self.baseline_drafts,
            "machine": self._fact("machine"),
            "model": self._fact("model"),
            "drafter": self._fact("drafter"),
            "draft_depth": None if depth is None else int(depth),
            "threshold": self.threshold,
            "ctx": None if ctx is None else int(ctx),
            "backend": self._fact("backend") or (device.lower() if device else None),
            "dialects": sorted(self.dialects),
            "facts": [
                {"name": name, "value": value, "line": line}
                for name, (value, line) in sorted(self.facts.items(), key=lambda fact: fact[1][1])
                if name != "started"
            ],
            "lines": lines,
            "first_line": self.first_line,
            "last_line": self.last_line,
            "ignored_lines": lines - self.told,
            "unfit_lines": self.unfit,
            "unfit_examples": self.examples,
            "unknown_kinds": sorted(self.kinds),
            "refused_rows": self.refused,
            "unlogged_cycles": self.unlogged,
            "hidden_cycles": self.hidden_cycles,
        }


def frame(rows: list[dict]) -> pl.DataFrame:
    """Rows of `runs`."""
    names = RUNS.names
    return pl.DataFrame(
        [{name: row.get(name) for name in names} for row in rows], schema=RUNS.polars()
    )


_SUMS = (
    "cycles", "emitted", "uncounted", "speculated", "misses", "timed", "sampled", "silent",
    "miss_lines",
)  # fmt: skip


def count_requests(runs: dict[int, Run], requests: pl.DataFrame) -> None:
    """Add a block's requests (new or changed, with `run`); a count comes once, at the end."""
    if not requests.height:
        return
    if "generated_tokens" not in requests.columns:
        requests = requests.with_columns(generated_tokens=pl.lit(None, pl.Int64))
    told = pl.col("generated_tokens")
    table = requests.group_by("run").agg(
        pl.col("request_id").max() + 1, told.sum().alias("sum"), told.count().alias("count")
    )
    for index, known, tokens, counted in table.iter_rows():
        run = runs[index]
        run.requests = max(run.requests, known)
        run.told_tokens += tokens
        run.told_requests += counted


def count_cycles(runs: dict[int, Run], good: pl.DataFrame, refused: pl.DataFrame) -> None:
    """Add a block's cycles (with `run` and `rule`) to the runs' counters."""
    rule, outcome = pl.col("rule"), pl.col("outcome")
    timing = [int(r) for r in (Rule.FOLD, Rule.MICRO, Rule.DECODE2, Rule.SEQ, Rule.COMBINED)]
    table = good.group_by("run").agg(
        pl.len().alias("cycles"),
        pl.col("emitted").cast(pl.Int64).sum(),
        pl.col("emitted").null_count().alias("uncounted"),
        (~outcome.is_in(["bypassed", "undrafted", "unlogged"])).sum().alias("speculated"),
        (outcome == "missed").sum().alias("misses"),
        rule.is_in([*timing, int(Rule.OTHER)]).sum().alias("timed"),
        (rule == Rule.SAMPLE).sum().alias("sampled"),
        ((pl.col("dialect") == "legacy") & ~rule.is_in([int(Rule.COMBINED), int(Rule.SAMPLE)]))
        .sum()
        .alias("silent"),
        (rule == Rule.MISS).sum().alias("miss_lines"),
        pl.col("threshold").drop_nulls().first(),
        pl.col("dialect").unique(),
        pl.col("path")
        .filter(rule.is_in([int(Rule.OTHER), int(Rule.QWEN_OTHER)]))
        .unique()
        .sort()
        .head(NAMES)
        .alias("kinds"),
    )
    for row in table.iter_rows(named=True):
        run = runs[row["run"]]
        for name in _SUMS:
            setattr(run, name, getattr(run, name) + row[name])
        if run.threshold is None:
            run.threshold = row["threshold"]
        run.dialects |= set(row["dialect"])
        for kind in row["kinds"]:
            if len(run.kinds) < NAMES:
                run.kinds.add(kind)
    lost = refused.group_by("run").agg(
        pl.len(), (pl.col("outcome") == "missed").sum(), pl.col("dialect").unique()
    )
    for index, count, misses, dialects in lost.iter_rows():
        runs[index].refused += count
        runs[index].misses += misses
        runs[index].dialects |= set(dialects)
