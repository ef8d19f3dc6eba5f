"""What intervals add to a metrics query: python analysis/bench/intervals.py

Ten million simulated cycles, five workloads of 2,000 prompts each in two arms, asked in one
process, warm. The plain query is the sums of every metric by workload and arm; what is
added is the sums by prompt, the interval of every metric and the speed-ups over pairs.
Exits 1 when that adds more than 3 times the plain query.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from metrics import HEAD, RUNS, WORKLOAD, median_s
from rich.console import Console
from rich.table import Table

from tauscope import arms, catalog, metrics, simulate, stats

MOST = 3.0
BY = ("workload", "arm", "simulated")
# The macros of the metrics over whole groups: what one asks who wants no intervals.
PLAIN = """
SELECT workload, arm, {measures}
FROM cycles
GROUP BY workload, arm
"""


def generate(root: Path, prompts: int, tokens: int) -> int:
    """A store at `root` of five workloads, each `prompts` texts; returns its cycles."""
    text = HEAD + RUNS
    margins = {"agent": 2.9, "code": 2.1, "technical": 2.0, "prose": 1.0, "chat": 1.0}
    for name, margin in margins.items():
        stated = WORKLOAD.format(name=name, prompts=prompts, margin=margin)
        text += stated.replace("tokens = 1000", f"tokens = {tokens}")
    path = root.parent / "bench.toml"
    path.write_text(text, encoding="utf-8")
    return int(simulate.write(simulate.load_model(path), root)["cycles"].sum())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=2000, help="prompts a workload")
    parser.add_argument("--tokens", type=int, default=600, help="tokens a prompt")
    parser.add_argument("--times", type=int, default=5, help="counted calls of each")
    chosen = parser.parse_args()
    kinds = {m.name: m.kind for m in metrics.METRICS}
    with tempfile.TemporaryDirectory(prefix="tauscope-bench-") as folder:
        root = Path(folder) / "store"
        cycles = generate(root, chosen.prompts, chosen.tokens)
        data = catalog.Catalog([root])
        measures = "\n".join(
            line for line in catalog.sql_text("measures").splitlines() if not line.startswith("--")
        )
        text = PLAIN.replace("{measures}", measures)
        sums = metrics.clusters(data, BY)

        def speedups() -> None:
            for _, rows in sums.group_by("workload"):
                arms.interval(rows.filter(arm="off"), rows.filter(arm="mtp1"))

        plain = median_s(lambda: data.query(text), chosen.times)
        by_prompt = median_s(lambda: metrics.clusters(data, BY), chosen.times)
        intervals = median_s(lambda: stats.grouped(sums, BY, kinds), chosen.times)
        pairs = median_s(speedups, chosen.times)
        whole = median_s(lambda: metrics.table(data), chosen.times)
    added = (max(whole, by_prompt + intervals) + pairs - plain) / plain
    table = Table(title=f"{cycles:,} cycles, {chosen.prompts:,} prompts a workload, "
                        f"median of {chosen.times}, warm, in process")  # fmt: skip
    for column in ("step", "seconds", "times the plain query"):
        table.add_column(column, justify="left" if column == "step" else "right")
    for name, spent in (
        ("plain query: every metric by workload and arm", plain),
        ("the same sums by prompt", by_prompt),
        ("intervals of every metric from those", intervals),
        ("speed-ups of the pairs, with intervals", pairs),
        ("metrics.table: query, counts and intervals", whole),
    ):
        table.add_row(name, f"{spent:.3f}", f"{spent / plain:.2f}")
    Console().print(table)
    Console().print(f"intervals add {added:.2f} times the plain query; {MOST:.0f} may be added")
    return int(added > MOST)


if __name__ == "__main__":
    sys.exit(main())
