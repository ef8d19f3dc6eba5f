"""When a run has a native trace and a log: the trace counts, the log is held against it.

A log need not print every cycle (misses print only with DS4_MTP_SPEC_LOG), so its
cycles are matched to those of the trace that the log would have printed: per
request where both have the same number of requests, else over the whole run, in
order. Where even the numbers of cycles differ, values are compared as far as the
counts of drafts and tokens go alike, and the place where they part is one
disagreement of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from tauscope.errors import Problem
from tauscope.ingest.parser import LogParser
from tauscope.ingest.source import Log

COUNTS = (
    "drafted", "free_checked", "free_accepted", "verified", "accepted", "resampled", "emitted",
    "target_forwards",
)  # fmt: skip
# How far two readings of the same thing may be apart: printed with three decimals,
# and the two clocks are read at slightly different moments. draft_ms is left out:
# the legacy log times the second draft only.
LOGITS = {"margin": 0.001, "threshold": 0.001}
TIMES = ("snapshot_ms", "verify_ms", "decode_ms")
TIME_MS, TIME_SHARE = 0.5, 0.02
# Cycles that a log may keep to itself.
SILENT = ("missed", "bypassed", "undrafted")
_SHAPE = ("outcome", "drafted", "verified", "accepted", "emitted")

DISAGREEMENT: dict[str, pl.DataType] = {
    "request_id": pl.Int64(),
    "cycle": pl.Int64(),  # in the native trace; null where it is about a whole request or run
    "native_line": pl.Int64(),
    "log_line": pl.Int64(),
    "field": pl.String(),
    "native": pl.String(),
    "log": pl.String(),
}


def disagreements(native: pl.DataFrame, log: pl.DataFrame) -> pl.DataFrame:
    """What the cycles of one run say differently in its native trace and in its log.

    Both frames have the columns of `cycles`. One row a value that differs, with the
    columns of DISAGREEMENT; no rows means that every printed cycle agrees. A value
    that one side doesn't know is no disagreement. Cycles whose counts the log can't
    tell (`unlogged`, `unknown`) are left out with their times.
    """
    log = log.filter(~pl.col("outcome").is_in(("unlogged", "unknown")))
    said = set(log["outcome"].unique().to_list())
    native = native.filter(~pl.col("outcome").is_in([o for o in SILENT if o not in said]))
    by_request = (
        not native["request_id"].has_nulls()
        and not log["request_id"].has_nulls()
        and native["request_id"].n_unique() == log["request_id"].n_unique()
    )
    left, right = _placed(native, by_request), _placed(log, by_request)
    pairs = left.join(right, on=["part", "place"], how="full", suffix="_log", coalesce=True)
    pairs = pairs.sort("part", "place")
    alike = pl.all_horizontal(pl.col(name).eq_missing(pl.col(f"{name}_log")) for name in _SHAPE)
    counts = (
        pairs.group_by("part", maintain_order=True)
        .agg(
            pl.col("request_id").drop_nulls().first()
            if by_request
            else pl.lit(None, pl.Int64).alias("request_id"),
            native_cycles=pl.col("line").count(),
            log_cycles=pl.col("line_log").count(),
            parting=pl.when(~alike).then("place").min(),
        )
        .with_columns(uneven=pl.col("native_cycles") != pl.col("log_cycles"))
    )
    both = (
        pairs.join(counts.select("part", "uneven", "parting"), on="part", maintain_order="left")
        .filter(pl.col("line").is_not_null() & pl.col("line_log").is_not_null())
        # After the parting of uneven sequences, pairs are of different cycles.
        .filter(~pl.col("uneven") | (pl.col("place") < pl.col("parting")))
    )
    found = [_uneven(counts, pairs), *(_differing(both, name) for name in _compared())]
    return pl.concat(found).sort("cycle", "field", nulls_last=False, maintain_order=True)


def facts(found: pl.DataFrame, compared: int, most: int = 20) -> list[dict[str, object]]:
    """`found` as entries of `runs.facts`: how many, and the first `most` of them in words."""
    words = found.head(most).select(
        name=pl.lit("log_disagrees"),
        value=pl.concat_str(
            pl.when(pl.col("cycle").is_not_null()).then(pl.format("cycle {}: ", "cycle")),
            pl.format("{} {} in the trace, {} in the log", "field", "native", "log"),
            ignore_nulls=True,
        ),
        line=pl.col("native_line"),
    )
    total = f"{found.height} disagreements over {compared} cycles of the log"
    return [{"name": "log_check", "value": total, "line": None}, *words.to_dicts()]


def with_checks(
    runs: pl.DataFrame, checks: Iterable[tuple[str, pl.DataFrame]], parts: Sequence[Path]
) -> pl.DataFrame:
    """`runs` (rows of `runs`) with what their logs say differently among their facts.

    `checks`: (run_id of a native run, cycles of its log), as `LogParser.checks` gives them
    or `one_run` reads them. `parts`: the Parquet files with the native runs' cycles.
    """
    for run_id, said in checks:
        native = pl.concat(
            pl.scan_parquet(part, glob=False).filter(pl.col("run_id") == run_id) for part in parts
        ).collect()
        more = pl.Series("facts", [facts(disagreements(native, said), said.height)])
        more = more.cast(runs.schema["facts"])
        runs = runs.with_columns(
            facts=pl.when(pl.col("run_id") == run_id)
            .then(pl.concat_list("facts", pl.lit(more).first()))
            .otherwise("facts")
        )
    return runs


def one_run(log: Log) -> pl.DataFrame:
    """The cycles of a log that stands beside a native trace.

    Raises Problem when the log holds no cycle or several runs: then it can't be told
    which of them the trace is of.
    """
    parser = LogParser(log_id="beside")
    parts = [parser.feed(block).cycles for block in log.blocks()]
    cycles = pl.concat([*parts, parser.finish().cycles])
    if cycles["run_id"].n_unique() != 1:
        found = "no cycle" if not cycles.height else f"{cycles['run_id'].n_unique()} runs"
        raise Problem(
            f"{log.name}: holds {found}; a log beside a native trace must be of that one run, so "
            "cut it to the run or import it by itself"
        )
    return cycles


def _compared() -> tuple[str, ...]:
    return ("outcome", *COUNTS, *LOGITS, *TIMES, "draft_token", "next_token")


def _placed(cycles: pl.DataFrame, by_request: bool) -> pl.DataFrame:
    """`cycles` with `part` (which request, in order, or 0) and `place` within it."""
    part = pl.col("request_id").rank("dense") if by_request else pl.lit(0)
    return (
        cycles.sort("cycle")
        .with_columns(part=part.cast(pl.Int64))
        .with_columns(place=pl.int_range(pl.len()).over("part"))
        .select("part", "place", "request_id", "cycle", "line", *_compared())
    )


def _differing(both: pl.DataFrame, name: str) -> pl.DataFrame:
    a, b = pl.col(name), pl.col(f"{name}_log")
    if name in LOGITS:
        differs = (a - b).abs() > LOGITS[name]
    elif name in TIMES:
        differs = (a - b).abs() > TIME_MS + TIME_SHARE * pl.max_horizontal(a.abs(), b.abs())
    else:
        differs = a != b
    return _rows(
        both.filter(differs),
        pl.col("request_id"),
        pl.col("cycle"),
        pl.lit(name),
        a.cast(pl.String),
        b.cast(pl.String),
    )


def _uneven(counts: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """One row for each request (or run) whose numbers of cycles differ, at the parting."""
    parted = (
        counts.filter("uneven")
        .join(pairs.drop("request_id"), on="part", how="left", maintain_order="left")
        .filter(pl.col("place") == pl.col("parting"))
    )
    return _rows(
        parted,
        pl.col("request_id"),
        pl.lit(None, pl.Int64),
        pl.lit("cycles"),
        pl.col("native_cycles").cast(pl.String),
        pl.col("log_cycles").cast(pl.String),
    )


def _rows(
    frame: pl.DataFrame, request: pl.Expr, cycle: pl.Expr, field: pl.Expr, a: pl.Expr, b: pl.Expr
) -> pl.DataFrame:
    values = (request, cycle, pl.col("line"), pl.col("line_log"), field, a, b)
    return frame.select(
        value.cast(dtype).alias(name)
        for value, (name, dtype) in zip(values, DISAGREEMENT.items(), strict=True)
    )
