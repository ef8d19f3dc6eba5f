"""How fast a log becomes a table: python analysis/bench/ingest.py [--lines N]

Generates a legacy log of 5 million lines (and one of 20 million) in a temporary folder,
and reads it three times, each in a process of its own so that memory is its own too:

- a plain Python loop: one compiled regular expression a shape, numbers converted, `conf`
  lines joined to their timing line, rows written to Parquet by Polars at the end
- `LogParser` and the store's writer: what `tauscope import` does, but the raw copy
- the same for the longer log, for its memory

Compressing the raw copy, which an import does beside the parsing, is timed apart. Exits 1
when the ratio is below 5, memory above 900 MB, or the longer log needs over 20 % more.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

import polars as pl
import zstandard
from rich.console import Console
from rich.table import Table

from tauscope import schema, store
from tauscope.ingest import LogParser
from tauscope.ingest.source import Log

MIN_RATIO, MAX_MB, MAX_GROWTH = 5.0, 900.0, 1.2
UNIT = 20_000  # distinct lines; the log repeats them


def generate(path: Path, lines: int) -> None:
    """A log of about `lines` lines: a third misses, a third folds, the rest bets with `conf`."""
    rng, unit = Random(20), []
    while len(unit) < UNIT:
        kind, token = rng.random(), rng.randrange(129_000)
        draft, step = 2 + rng.random() * 0.4, 25 + rng.random() * 2
        if kind < 0.33:
            unit.append(f"ds4: mtp spec miss first draft={token}\n")
        elif kind < 0.66:
            unit.append(
                f"ds4: mtp timing margin-skip drafted=2 committed=1 margin={rng.random() * 3:.3f} "
                f"threshold=3.000 draft={draft:.3f} ms verify={step:.3f} ms "
                f"total={draft + step + 0.02:.3f} ms\n"
            )
        else:
            right = rng.random() < 0.87
            said, verify = token if right else rng.randrange(129_000), step + 14
            unit.append(
                f"ds4: mtp conf drafted=2 committed={1 + right} mtp_top={token} "
                f"runner={rng.randrange(129_000)} margin={3 + rng.expovariate(0.3):.6f} "
                f"target_next={said} draft_next={token}\n"
            )
            tail = (
                f"total={draft + verify + 0.1:.3f} ms"
                if right
                else f"prefix=0.347 ms total={draft + verify + 0.5:.3f} ms noreplay=1"
            )
            unit.append(
                f"ds4: mtp timing micro drafted=2 committed={1 + right} draft={draft:.3f} ms "
                f"snapshot=0.000 ms verify={verify:.3f} ms {tail}\n"
            )
    block = "".join(unit).encode()
    with path.open("wb") as file:
        for _ in range(max(1, lines // len(unit))):
            file.write(block)


_INT, _TIME = r"(-?\d+)", r"(\d+\.\d+) ms"
MISS = re.compile(rf"ds4: mtp spec miss first draft={_INT}$")
FOLD = re.compile(
    rf"ds4: mtp timing margin-skip drafted={_INT} committed={_INT} margin=(\d+\.\d+) "
    rf"threshold=(\d+\.\d+) draft={_TIME} verify={_TIME} total={_TIME}$"
)
CONF = re.compile(
    rf"ds4: mtp conf drafted={_INT} committed={_INT} mtp_top={_INT} runner={_INT} "
    rf"margin=(\d+\.\d+) target_next={_INT} draft_next={_INT}$"
)
MICRO = re.compile(
    rf"ds4: mtp timing micro drafted={_INT} committed={_INT} draft={_TIME} snapshot={_TIME} "
    rf"verify={_TIME}(?: prefix={_TIME})? total={_TIME}(?: noreplay=1)?$"
)
COLUMNS = {
    "line": pl.Int64, "outcome": pl.String, "drafted": pl.Int32, "verified": pl.Int32,
    "accepted": pl.Int32, "emitted": pl.Int32, "margin": pl.Float64, "threshold": pl.Float64,
    "draft_token": pl.Int64, "next_token": pl.Int64, "draft_ms": pl.Float64,
    "snapshot_ms": pl.Float64, "verify_ms": pl.Float64, "commit_ms": pl.Float64,
    "decode_ms": pl.Float64, "reported_ms": pl.Float64,
}  # fmt: skip


def loop(path: Path, out: Path) -> int:
    """The plain way: line by line, a regular expression a shape. Rows written."""
    none = None
    rows, gate = [], (none, none, none)
    with path.open(encoding="utf-8", errors="replace") as file:
        for line, text in enumerate(file, 1):
            if m := MISS.match(text):
                row = (line, "missed", 1, 0, 0, 1, none, none, int(m[1]))
                rows.append((*row, none, none, none, none, none, none, none))
            elif m := FOLD.match(text):
                row = (line, "folded", int(m[1]), 0, 0, 2, float(m[3]), float(m[4]), none, none)
                rows.append((*row, float(m[5]), none, none, none, float(m[6]), float(m[7])))
            elif m := CONF.match(text):
                gate = (float(m[5]), int(m[3]), int(m[6]))
            elif m := MICRO.match(text):
                drafted, committed = int(m[1]), int(m[2])
                outcome = "all_accepted" if committed == drafted else "rejected"
                row = (line, outcome, drafted, drafted - 1, committed - 1, 1 + committed)
                repair = float(m[6]) if m[6] else none
                times = (float(m[3]), float(m[4]), float(m[5]), repair, none, float(m[7]))
                rows.append((*row, gate[0], none, gate[1], gate[2], *times))
                gate = (none, none, none)
    pl.DataFrame(rows, schema=COLUMNS, orient="row").write_parquet(out / "cycles.parquet")
    return len(rows)


def parse(path: Path, out: Path) -> int:
    """The import's way: blocks to the parser, its rows to the store's writer. Rows written."""
    writer, parser, rows = store.LogWriter(out, "bench", "0"), LogParser(log_id="bench"), 0
    for block in Log(path.name, (path,)).blocks():
        batch = parser.feed(block)
        writer.add(schema.CYCLES, batch.cycles)
        rows += batch.cycles.height
    batch = parser.finish()
    writer.add(schema.CYCLES, batch.cycles)
    writer.commit(batch.runs, batch.requests)
    return rows + batch.cycles.height


def compress(path: Path, out: Path) -> int:
    """The raw copy that an import keeps."""
    with path.open("rb") as source, (out / "raw.zst").open("wb") as target:
        return zstandard.ZstdCompressor(level=3).copy_stream(source, target)[0]


WAYS = {"loop": loop, "parse": parse, "compress": compress}


def child(way: str, path: Path) -> None:
    """Run one way and print seconds, peak memory and rows as JSON."""
    with tempfile.TemporaryDirectory() as out:
        begin = time.perf_counter()
        rows = WAYS[way](path, Path(out))
        seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "mb": peak, "rows": rows}))


def measured(way: str, path: Path) -> dict:
    """What `child` prints, from a process of its own."""
    command = [sys.executable, __file__, "--child", way, "--log", str(path)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def main() -> int:
    """Print the comparison; 1 when a promise is not kept."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--lines", type=int, default=5_000_000)
    options.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    options.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.child:
        child(given.child, given.log)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path, longer = Path(folder) / "short.log", Path(folder) / "long.log"
        generate(path, given.lines)
        slow = measured("loop", path)
        fast = min((measured("parse", path) for _ in range(3)), key=lambda run: run["seconds"])
        copy = measured("compress", path)
        generate(longer, 4 * given.lines)
        long_run = measured("parse", longer)
    table = Table("what", "lines", "rows", "seconds", "peak MB", title="A legacy log to Parquet")
    for name, lines, run in (
        ("plain Python loop", given.lines, slow),
        ("LogParser and store", given.lines, fast),
        ("LogParser and store", 4 * given.lines, long_run),
        ("raw copy, compressed", given.lines, copy),
    ):
        rows = "" if name.startswith("raw") else f"{run['rows']:,}"
        table.add_row(name, f"{lines:,}", rows, f"{run['seconds']:.2f}", f"{run['mb']:.0f}")
    ratio, growth = slow["seconds"] / fast["seconds"], long_run["mb"] / fast["mb"]
    console = Console()
    console.print(table)
    console.print(
        f"{ratio:.1f} times faster than the loop (promised {MIN_RATIO:g}); "
        f"{fast['mb']:.0f} MB (at most {MAX_MB:.0f}); "
        f"four times the lines need {growth:.2f} times the memory (at most {MAX_GROWTH:g})"
    )
    kept = (
        ratio >= MIN_RATIO
        and max(fast["mb"], long_run["mb"]) <= MAX_MB
        and growth <= MAX_GROWTH
        and slow["rows"] == fast["rows"]
    )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
