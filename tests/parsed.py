"""Parse a log as a caller does: in blocks, then upsert requests and runs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from tauscope.ingest import Batch, LogParser


@dataclass
class Parsed:
    cycles: pl.DataFrame
    refused: pl.DataFrame
    requests: pl.DataFrame
    runs: pl.DataFrame
    parser: LogParser

    @property
    def run(self) -> dict:
        (row,) = self.runs.iter_rows(named=True)
        return row

    def cycle(self, at: int = 0) -> dict:
        return self.cycles.row(at, named=True)

    def outcomes(self) -> list[str]:
        return self.cycles["outcome"].to_list()


def collect(batches: list[Batch], parser: LogParser) -> Parsed:
    requests = pl.concat([batch.requests for batch in batches])
    runs = pl.concat([batch.runs for batch in batches])
    return Parsed(
        pl.concat([batch.cycles for batch in batches]),
        pl.concat([batch.refused for batch in batches]),
        requests.unique(["run_id", "request_id"], keep="last").sort("run_id", "request_id"),
        runs.unique("run_id", keep="last").sort("run_index"),
        parser,
    )


def parse(log: str | bytes, cuts: tuple[int, ...] = (), **given) -> Parsed:
    """`log` cut at the byte places `cuts`; text gets its last newline if it has none."""
    if isinstance(log, str):
        log = log.encode() if log.endswith("\n") else log.encode() + b"\n"
    parser = LogParser(log_id="log", **given)
    places = [0, *sorted(min(cut, len(log)) for cut in cuts), len(log)]
    batches = [parser.feed(log[a:b]) for a, b in pairwise(places)]
    return collect([*batches, parser.finish()], parser)


MISS = "ds4: mtp spec miss first draft=811"
FOLD = (
    "ds4: mtp timing margin-skip drafted=2 committed=1 margin=1.250 threshold=3.000 "
    "draft=2.100 ms verify=26.300 ms total=28.500 ms"
)
CONF_HIT = (
    "ds4: mtp conf drafted=2 committed=2 mtp_top=71 runner=9 margin=5.125000 "
    "target_next=71 draft_next=71"
)
HIT = (
    "ds4: mtp timing micro drafted=2 committed=2 draft=2.200 ms snapshot=0.100 ms "
    "verify=40.500 ms total=42.900 ms"
)
CONF_LOST = (
    "ds4: mtp conf drafted=2 committed=1 mtp_top=72 runner=5 margin=3.062500 "
    "target_next=90 draft_next=72"
)
LOST = (
    "ds4: mtp timing micro drafted=2 committed=1 draft=2.300 ms snapshot=0.000 ms "
    "verify=39.900 ms prefix=0.400 ms total=42.800 ms noreplay=1"
)
SPEED = "ds4: prefill: 81.25 t/s, generation: 34.00 t/s"
START = "ds4: Metal device Apple M4 Pro, 64.00 GiB RAM"
# What quoted text may imitate: lines that begin a run, end a request or tell a fact.
IMITATIONS = (
    "model loaded: x",
    "a (loaded)",
    "loaded",
    "ds4: model loaded: x.gguf",
    "ds4: MTP support model loaded: x.gguf (draft=2)",
    "ds4: warming up",
    "ds4: CUDA device x",
    "context buffers 4 MiB (ctx=99, backend=cuda)",
    "memory detail: ctx=99 backend=cuda",
    "ds4-server: listening on x",
    "ds4-server: context buffers 4 MiB (ctx=99, backend=cuda)",
    "ds4: prefill: 1.00 t/s, generation: 2.00 t/s",
    "ds4: mtp probe token=1 draft=1 hit=1/1",
    "ds4: DSpark stats cycles=4",
    "0102 03:04:05 ds4-server: chat ctx=0..9:9 prompt start",
)
