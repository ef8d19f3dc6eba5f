"""What being recorded costs an engine, and what recording a long run costs the recorder.

    python analysis/bench/record.py [SECONDS [ROUNDS [CYCLES]]]

1. The stand-in engine of the tests writes 200,000 lines a second, by the clock, and times
   its own write(2) calls: to a plain file, and while it is recorded. Rounds take turns, and
   each round's two halves are held against each other. Wanted: the median of the ratios
   within 5 %. Where other programs compete for the processors the clock measures them; the
   processor time in the same calls is shown beside it.
2. The same engine writes 10 million cycles as fast as it can. Wanted: the recorder's peak
   memory in the second half no more than a fifth above that in the first.

Exit code 1 when either misses.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RATE = 200_000
LIMIT = 1.05
GROWTH = 1.2
# Four cycles of five lines, as ds4 prints them.
LINES = (
    "ds4: mtp spec miss first draft=5",
    "ds4: mtp conf drafted=2 committed=2 mtp_top=3 runner=2 margin=3.828934 target_next=3 "
    "draft_next=3",
    "ds4: mtp timing micro drafted=2 committed=2 draft=2.197 ms snapshot=0.000 ms "
    "verify=42.653 ms total=44.946 ms",
    "ds4: mtp timing margin-skip drafted=2 committed=1 margin=2.633 threshold=3.000 "
    "draft=2.251 ms verify=26.453 ms total=28.705 ms",
    "ds4: mtp timing micro drafted=2 committed=1 draft=2.242 ms snapshot=0.000 ms "
    "verify=39.351 ms prefix=0.347 ms total=42.022 ms noreplay=1",
)
CYCLES_A_ROUND = 4


def built(folder: Path) -> Path:
    """The stand-in engine, compiled into `folder`."""
    compiler = shutil.which("cc") or sys.exit("no C compiler `cc`; install one to measure")
    program = folder / "engine"
    source = ROOT / "tests" / "standin" / "engine.c"
    subprocess.run([compiler, "-O2", "-std=c99", str(source), "-o", str(program)], check=True)
    return program


def recording(store: Path, *command: object) -> list[str]:
    """Words that record `command` as a user would, with nothing shown."""
    code = "from tauscope.cli import main; main()"
    return [sys.executable, "-c", code, "record", "--traces", str(store), "--",
            *map(str, command)]  # fmt: skip


def in_write(folder: Path, engine: Path, log: Path, times: int, recorded: bool) -> list[float]:
    """Nanoseconds in one write of a paced run: by the clock, and of the processor."""
    stats, store = folder / "stats", folder / "store"
    command = [engine, "--log", log, "--times", times, "--rate", RATE, "--stats", stats]
    with (folder / "plain.log").open("wb") as plain, open(os.devnull, "wb") as nothing:
        if recorded:
            subprocess.run(recording(store, *command), check=True, stderr=nothing, stdout=nothing)
        else:
            subprocess.run([str(word) for word in command], check=True, stderr=plain)
    lines, spent, _, worked = map(int, stats.read_text().split())
    shutil.rmtree(store, ignore_errors=True)
    return [spent / lines, worked / lines]


def write_cost(folder: Path, engine: Path, seconds: float, rounds: int) -> bool:
    """Measure 1; prints it."""
    log = folder / "lines.log"
    repeats = 2000
    log.write_text("\n".join(LINES * repeats) + "\n")
    times = max(1, round(RATE * seconds / (len(LINES) * repeats)))
    ratios: list[float] = []
    worked: list[float] = []
    for number in range(rounds):
        # The order alternates: what drifts meets both alike.
        order = (False, True) if number % 2 == 0 else (True, False)
        spent = {kind: in_write(folder, engine, log, times, kind) for kind in order}
        ratios.append(spent[True][0] / spent[False][0])
        worked.append(spent[True][1] / spent[False][1])
        print(
            f"  round {number + 1}: a write to a plain file {spent[False][0]:.0f} ns, recorded "
            f"{spent[True][0]:.0f} ns, ratio {ratios[-1]:.3f} (processor time {worked[-1]:.3f})",
            flush=True,
        )
    ratio = statistics.median(ratios)
    print(
        f"time in write while recorded over a plain file, {seconds:g} s at {RATE:,} lines/s, "
        f"median of {rounds}: {ratio:.3f} (wanted: at most {LIMIT}); processor time "
        f"{statistics.median(worked):.3f}; load {os.getloadavg()[0]:.1f}"
    )
    return ratio <= LIMIT


def memory(pid: int) -> int:
    """Resident memory of a process in bytes; 0 when it has gone."""
    try:
        text = Path(f"/proc/{pid}/statm").read_text()
        return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def long_run(folder: Path, engine: Path, cycles: int) -> bool:
    """Measure 2; prints it."""
    if not Path("/proc/self/statm").exists():
        print("memory of a long run: not measured, there is no /proc here")
        return True
    log, store = folder / "long.log", folder / "long store"
    log.write_text("\n".join(LINES * 1000) + "\n")
    times = -(-cycles // (CYCLES_A_ROUND * 1000))
    began = time.monotonic()
    with open(os.devnull, "wb") as nothing:
        process = subprocess.Popen(
            recording(store, engine, "--log", log, "--times", times), stderr=nothing, stdout=nothing
        )
        ended = threading.Event()
        seen: list[tuple[float, int]] = []

        def look() -> None:
            while not ended.wait(0.1):
                seen.append((time.monotonic() - began, memory(process.pid)))

        watcher = threading.Thread(target=look)
        watcher.start()
        code = process.wait()
        ended.set()
        watcher.join()
    took = time.monotonic() - began
    made = times * CYCLES_A_ROUND * 1000
    from tauscope import catalog

    data = catalog.Catalog([store])
    counted = data.query("SELECT COUNT(*) AS n FROM cycles")["n"][0]
    half = seen[-1][0] / 2
    first = max(used for when, used in seen if when <= half)
    second = max(used for when, used in seen if when > half)
    files = len(list((store / "cycles").glob("*.parquet")))
    shutil.rmtree(store)
    print(
        f"{made:,} cycles recorded in {took:.1f} s ({made / took:,.0f} a second), {counted:,} in "
        f"the store, {files} files; peak memory {first / 2**20:.0f} MiB in the first half, "
        f"{second / 2**20:.0f} MiB in the second (wanted: at most {GROWTH} times)"
    )
    return code == 0 and counted == made and second <= GROWTH * first


def main(seconds: float = 20, rounds: int = 5, cycles: int = 10_000_000) -> int:
    """Both measures; 0 when both are met."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        engine = built(folder)
        met = [write_cost(folder, engine, seconds, rounds), long_run(folder, engine, cycles)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(
        main(*(kind(text) for kind, text in zip((float, int, int), sys.argv[1:], strict=False)))
    )
