"""What one record of the native trace costs an engine: C header and Python twin.

    python analysis/bench/trace.py [RECORDS] [FILE]

Every record is timed, the writing of full buffers included. Of five rounds the best
counts: what other programs' turns on the processor add is not the record's cost.
Wanted of C: median under 2 µs, 99.9th percentile under 10 µs. Exit code 1 when C
misses either.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tauscope.trace import Trace

HERE = Path(__file__).resolve().parent
EMIT = HERE.parents[1] / "traces" / "emit"
MEDIAN_NS, TAIL_NS = 2_000, 10_000
ROUNDS = 5


def c_costs(records: int, file: Path, folder: Path) -> list[float]:
    """Nanoseconds: median, 99.9th percentile, greatest, one clock reading, one call while off."""
    program = folder / "trace"
    compiler = shutil.which("cc") or sys.exit("no C compiler `cc`; install one to measure")
    flags = ["-O2", "-std=c99", f"-I{EMIT}", str(HERE / "trace.c"), "-o", str(program)]
    subprocess.run([compiler, *flags, "-pthread"], check=True)
    rounds = []
    for _ in range(ROUNDS):
        done = subprocess.run(
            [program, str(records)],
            env=os.environ | {"TAUSCOPE_TRACE": str(file)},
            capture_output=True,
            text=True,
            check=True,
        )
        rounds.append([float(n) for n in done.stdout.split()])
    return [min(figure) for figure in zip(*rounds, strict=True)]


def python_costs(records: int, file: Path) -> list[float]:
    """Nanoseconds: median, 99.9th percentile, greatest."""
    took = []
    with Trace(file, engine="bench") as trace:
        request = trace.begin()
        for i in range(records):
            start = time.perf_counter_ns()
            trace.record(request, path="micro", pos=i, drafted=2, free_checked=1, free_accepted=1,
                         verified=1, accepted=1, emitted=3, target_forwards=2, margin=3.5,
                         threshold=3, draft_token=17, next_token=17, base_ms=25.71, draft_ms=2.25,
                         verify_ms=27.313, wall_ms=55.831)  # fmt: skip
            took.append(time.perf_counter_ns() - start)
    took.sort()
    return [took[records // 2], took[int(records * 0.999)], took[-1]]


def main(records: int = 200_000, file: str | None = None) -> int:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(file) if file else Path(folder) / "trace.ndjson"
        median, tail, most, clock, off = c_costs(records, target, Path(folder))
        print(f"C       {records:,} records: median {median:.0f} ns, p99.9 {tail:.0f} ns, "
              f"greatest {most / 1000:.0f} µs; clock {clock:.0f} ns, off {off:.2f} ns")  # fmt: skip
        median_py, tail_py, most_py = python_costs(min(records, 50_000), target)
        print(f"Python  {min(records, 50_000):,} records: median {median_py:.0f} ns, "
              f"p99.9 {tail_py:.0f} ns, greatest {most_py / 1000:.0f} µs")  # fmt: skip
    met = median < MEDIAN_NS and tail < TAIL_NS
    print("C under 2 µs at the median and 10 µs at the 99.9th percentile:", "yes" if met else "NO")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main(*(kind(text) for kind, text in zip((int, str), sys.argv[1:], strict=False))))
