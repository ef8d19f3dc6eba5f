"""Full-screen: how a growing log or a store is doing, redrawn once a second."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from tauscope import catalog, speedup
from tauscope.cli import output
from tauscope.errors import Problem
from tauscope.ingest import LogParser
from tauscope.ingest.source import BLOCK
from tauscope.record.live import WINDOW_S, Gauge, Sums

if TYPE_CHECKING:
    from rich.console import RenderableType

REDRAW_S = 1.0
_COLUMNS = ["", ">cycles", ">tokens/s", ">τ tokens/cycle", ">committed acceptance", ">fold rate"]


def log(path: Path) -> None:
    """Follow the log at `path` until Ctrl-C. Raises Problem when it can't be read."""
    screens(_log_frames(path))


def store(traces: Sequence[str] | None) -> None:
    """Follow the stores that `traces` names (see places.to_read) until Ctrl-C."""
    screens(_store_frames(traces))


def screens(frames: Iterator[RenderableType]) -> None:
    """Show one frame after the other; where no terminal is, the first one, as text."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        output.show(next(frames))
        return
    with (
        contextlib.suppress(KeyboardInterrupt),
        Live(console=console, screen=True, auto_refresh=False) as live,
    ):
        for frame in frames:
            live.update(frame, refresh=True)
            time.sleep(REDRAW_S)


def _log_frames(path: Path) -> Iterator[RenderableType]:
    parser, gauge, offset = LogParser(log_id="watched"), Gauge(), 0
    first = True
    while True:
        try:
            with path.open("rb") as handle:
                if handle.seek(0, 2) < offset:  # rotated or cut: a new log under the same name
                    parser, gauge, offset = LogParser(log_id="watched"), Gauge(), 0
                handle.seek(offset)
                while block := handle.read(BLOCK):
                    offset += len(block)
                    cycles = parser.feed(block).cycles
                    if first:  # what was there before is no part of the last minute
                        gauge.take(cycles, time.monotonic() - 2 * WINDOW_S)
                    else:
                        gauge.take(cycles, time.monotonic())
        except OSError as error:
            raise Problem(f"{path}: can't be read ({error.strerror}); name a log") from None
        first = False
        yield _gauge_table(output.short(str(path)), gauge)


def _gauge_table(title: str, gauge: Gauge) -> RenderableType:
    rows = [
        _sums_row("last minute", gauge.minute(time.monotonic())),
        _sums_row("whole log", gauge.whole),
    ]
    return Group(output.table(title, _COLUMNS, rows), Text("Ctrl-C ends"))


def _sums_row(name: str, sums: Sums) -> list[str]:
    return [
        name,
        str(sums.cycles),
        output.number(sums.tokens_per_s, ".1f"),
        output.number(sums.tau),
        output.share(sums.acceptance),
        output.share(sums.fold_rate),
    ]


_RECENT = """
    WITH newest AS (
      SELECT run_id, MAX(t_ms) AS newest FROM cycles GROUP BY run_id
    )
    SELECT cycles.run_id, workload, arm,
           COUNT(*) AS cycles, tau(emitted) AS tau,
           committed_acceptance(accepted, verified, outcome) AS acceptance,
           fold_rate(outcome) AS fold_rate,
           COALESCE(tokens_per_s(ms_per_token(wall_ms, emitted)),
                    ratio(1000 * strict_sum(emitted), MAX(t_ms) - MIN(t_ms))) AS tokens_per_s
    FROM cycles JOIN newest USING (run_id)
    WHERE run_id IN (SELECT run_id FROM runs WHERE state = 'recording')
      AND ($seconds IS NULL OR t_ms >= newest - 1000 * $seconds)
    GROUP BY cycles.run_id, workload, arm ORDER BY ALL
"""


def _store_frames(traces: Sequence[str] | None) -> Iterator[RenderableType]:
    ended: pl.DataFrame | None = None
    verdicts: RenderableType = Text("")
    while True:
        data = catalog.connect(traces)
        # Verdicts take a while in a large store: anew when a run has ended, or was relabelled.
        over = data.runs.filter(pl.col("state") != "recording").select(
            "run_id", "workload", "arm", "prompt_id", "request_files"
        )
        if ended is None or not over.equals(ended):
            ended, verdicts = over, _verdicts(speedup.table(data))
        parts: list[Any] = [
            _recording("recording now, last minute", data, WINDOW_S),
            _recording("recording now, whole run", data, None),
            verdicts,
            *(Text(output.short(line, 200)) for line in data.recovered),
            *(Text(output.short(damage.text, 200)) for damage in data.damaged),
            Text("Ctrl-C ends"),
        ]
        yield Group(*parts)


def _recording(title: str, data: catalog.Catalog, seconds: float | None) -> RenderableType:
    rows = data.query(_RECENT, seconds=seconds)
    if rows.is_empty():
        return Text(f"{title}: nothing\n")
    form: Callable[[dict[str, Any]], list[str]] = lambda row: [  # noqa: E731
        f"{row['run_id']} {row['workload']}/{row['arm']}",
        str(row["cycles"]),
        output.number(row["tokens_per_s"], ".1f"),
        output.number(row["tau"]),
        output.share(row["acceptance"]),
        output.share(row["fold_rate"]),
    ]
    return output.table(title, _COLUMNS, [form(row) for row in rows.iter_rows(named=True)])


def _verdicts(gains: pl.DataFrame) -> RenderableType:
    if gains.is_empty():
        return Text("verdicts: no treated arm beside an off arm yet\n")
    rows = [
        [
            row["workload"],
            row["arm"],
            output.gain(row["speedup"], row["speedup_lo"], row["speedup_hi"]),
            row["verdict"] or "none",
            ", ".join(row["reasons"]) or row["speedup_why"] or "",
        ]
        for row in gains.iter_rows(named=True)
    ]
    columns = ["workload", "arm against off", ">speed-up", "verdict", "why undecided"]
    return output.table("verdicts", columns, rows)
