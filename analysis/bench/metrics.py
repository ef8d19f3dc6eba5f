"""How much a metrics query costs over a hand-written one: python analysis/bench/metrics.py

Generates a store of 20 million simulated cycles in a temporary folder, asks it twice in
one process, warm, and prints the ratio of the medians:

- `metrics.table` without intervals' bootstrap: every metric by workload and arm, with its
  interval over prompts
- a query written by hand for the same sums over the same files, with no nulls looked after,
  no labels resolved and no clusters
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
from rich.console import Console
from rich.table import Table

from tauscope import catalog, metrics, simulate

WORKLOAD = """
[[workloads]]
name = "{name}"
prompts = {prompts}
tokens = 1000
margin_mean = {margin}
margin_sd = 2.4
margin_between_prompts = 0.3
margin_autocorrelation = 0.3
right_floor = 0.62
right_ceiling = 0.98
right_middle = 1.5
right_slope = 1.5
right_autocorrelation = 0.2
"""
HEAD = """
name = "bench"
seed = 1
[costs]
forward_ms = [68.0, 108.0]
draft_ms = 4.0
cycle_noise = 0.02
"""
RUNS = """
[[runs]]
arm = "off"
path = "off"
[[runs]]
arm = "mtp1"
path = "continuous"
threshold = 3.0
"""
BY_HAND = """
SELECT workload, arm,
  COUNT(*) AS cycles, SUM(emitted) AS emitted, SUM(target_forwards) AS forwards,
  SUM(accepted) FILTER (outcome <> 'fallback') AS accepted,
  SUM(verified) FILTER (outcome <> 'fallback') AS verified,
  COUNT(*) FILTER (outcome = 'folded') AS folded,
  COUNT(*) FILTER (outcome = 'folded' AND margin IS NOT NULL) AS gated_folded,
  COUNT(margin) AS gated,
  SUM(free_accepted + accepted) AS hits, SUM(free_checked + verified) AS tested,
  SUM(drafted) AS drafted, COUNT(*) FILTER (drafted > 0) AS drafting,
  COUNT(*) FILTER (drafted > 0 AND draft_token = next_token) AS first_right,
  COUNT(*) FILTER (drafted > 0 AND next_token IS NOT NULL) AS first_known,
  SUM(verify_ms) FILTER (verified > 0) AS verify_ms,
  SUM(draft_ms) FILTER (verified > 0) AS draft_ms,
  SUM(wall_ms) AS wall_ms,
  COUNT(*) FILTER (outcome = 'all_accepted'), COUNT(*) FILTER (outcome = 'partial'),
  COUNT(*) FILTER (outcome = 'rejected'), COUNT(*) FILTER (outcome = 'missed'),
  COUNT(*) FILTER (outcome = 'bypassed'), COUNT(*) FILTER (outcome = 'undrafted'),
  COUNT(*) FILTER (outcome = 'unverified'), COUNT(*) FILTER (outcome = 'unlogged'),
  COUNT(*) FILTER (outcome = 'unknown'), COUNT(*) FILTER (outcome = 'fallback')
FROM read_parquet($cycles)
JOIN (SELECT run_id, request_id, workload FROM read_parquet($requests)) USING (run_id, request_id)
JOIN (SELECT run_id, arm FROM read_parquet($runs)) USING (run_id)
GROUP BY workload, arm
"""


def median_s(work: Callable[[], object], times: int) -> float:
    """Median seconds of `work` over `times` calls, after one that isn't counted."""
    work()
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return statistics.median(spent)


def generate(root: Path, millions: float) -> int:
    """A store at `root` with about so many million cycles; returns how many it became."""
    prompts = max(int(millions * 1e6 / (5 * 1000 * 1.68)), 1)
    margins = {"agent": 2.9, "code": 2.1, "technical": 2.0, "prose": 1.0, "chat": 1.0}
    text = HEAD + RUNS
    for name, margin in margins.items():
        text += WORKLOAD.format(name=name, prompts=prompts, margin=margin)
    path = root.parent / "bench.toml"
    path.write_text(text, encoding="utf-8")
    return int(simulate.write(simulate.load_model(path), root)["cycles"].sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--millions", type=float, default=20.0, help="cycles to generate")
    parser.add_argument("--times", type=int, default=5, help="counted calls of each")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tauscope-bench-") as folder:
        root = Path(folder) / "store"
        cycles = generate(root, chosen.millions)
        data = catalog.Catalog([root])
        plain = duckdb.connect()
        files = {name: [str(p) for p in (root / name).glob("*.parquet")]
                 for name in ("cycles", "requests", "runs")}  # fmt: skip
        ours = median_s(lambda: metrics.table(data), chosen.times)
        sums = median_s(lambda: metrics.clusters(data), chosen.times)
        hand = median_s(lambda: plain.execute(BY_HAND, files).fetchall(), chosen.times)
    table = Table(title=f"{cycles:,} cycles, median of {chosen.times}, warm, in process")
    for column in ("query", "seconds", "times the hand-written"):
        table.add_column(column, justify="left" if column == "query" else "right")
    for name, spent in (
        ("by hand, sums by workload and arm", hand),
        ("sums by prompt (metrics.clusters)", sums),
        ("every metric with intervals (metrics.table)", ours),
    ):
        table.add_row(name, f"{spent:.2f}", f"{spent / hand:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
