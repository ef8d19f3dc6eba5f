"""What a report costs beyond its kernels: python analysis/bench/report.py [--rounds N]

Ten pages (two notebooks, all of the data and four workloads apart) over a simulated store,
in turns:

- bare: the ten notebooks through papermill, as many at a time as the report would run
- report: `tauscope report` as a whole process, from start to the written index

Exits 1 when the median report takes over 1.3 times the median of the bare kernels.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[2]
MOST = 1.3
WORKLOADS = ("agent", "code", "prose", "chat")
NOTEBOOKS = ("workloads", "ledger")


def store(root: Path) -> None:
    """The sample's model, four of its workloads."""
    import polars as pl

    from tauscope import schema, store
    from tauscope.simulate import load_model, simulate

    model = load_model(ROOT / "traces" / "sample" / "model.toml")
    for part in simulate(model, workloads=WORKLOADS):
        writer = store.LogWriter(root, part.runs.item(0, "log_id"), "b")
        writer.add(schema.CYCLES, part.cycles)
        writer.commit(part.runs, pl.concat([part.requests]))


def bare(traces: str, work: str) -> None:
    """Run the ten notebooks and nothing else; print the seconds."""
    from tauscope.batch import kernels, params

    pages = [
        (params.Page(f"{source.name}-{number}", source), {"traces": [traces], "workload": name})
        for source in params.find(NOTEBOOKS)
        for number, name in enumerate(("", *WORKLOADS))
    ]
    failed: list[str] = []
    began = perf_counter()
    kernels.run(pages, Path(work), lambda done: failed.append(done.error) if done.error else None)
    print(json.dumps({"seconds": perf_counter() - began, "pages": len(pages), "failed": failed}))


def report(traces: Path, out: Path) -> float:
    """Seconds of the command that makes the ten pages."""
    names = [word for name in NOTEBOOKS for word in ("--notebook", name)]
    code = "from tauscope.cli import main; main()"
    began = perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, "report", "--traces", str(traces), "--out", str(out),
         "--each", "workload", "--json", *names],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    seconds = perf_counter() - began
    assert len(json.loads(done.stdout)["pages"]) == 10
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bare", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.bare:
        bare(*asked.bare)
        return 0
    found: dict[str, list[float]] = {"bare": [], "report": []}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        store(root / "store")
        for number in range(asked.rounds):
            work = root / f"bare{number}"
            work.mkdir()
            done = subprocess.run(
                [sys.executable, __file__, "--bare", str(root / "store"), str(work)],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            told = json.loads(done.stdout)
            assert told["pages"] == 10 and not told["failed"], told
            found["bare"].append(told["seconds"])
            found["report"].append(report(root / "store", root / f"out{number}"))
    for name, seconds in found.items():
        spread = f"{min(seconds):.1f} to {max(seconds):.1f}"
        print(f"{name:8} {statistics.median(seconds):6.1f} s  ({spread}, {len(seconds)} rounds)")
    ratio = statistics.median(found["report"]) / statistics.median(found["bare"])
    print(f"ratio    {ratio:6.2f}    (at most {MOST})")
    return int(ratio > MOST)


if __name__ == "__main__":
    sys.exit(main())
