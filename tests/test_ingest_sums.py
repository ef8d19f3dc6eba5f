"""Counts are stored in 32 bits; their sums are not, wherever cycles are added up."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from tauscope import schema
from tauscope.ingest import importer, source
from tauscope.record.live import sums

MOST = 2**31 - 1
CYCLE = (
    '{"tauscope":1,"kind":"cycle","run":"r","request":0,"drafted":N,"free_checked":0,'
    '"free_accepted":0,"verified":N,"accepted":N,"resampled":0,'
).replace("N", str(MOST - 1)) + f'"emitted":{MOST}}}\n'


def test_the_summary_of_an_import(tmp_path: Path) -> None:
    log = tmp_path / "t.ndjson"
    log.write_text(CYCLE * 2)
    # The second time the counts come from the store.
    for _ in range(2):
        done = importer.import_log(source.Log(log.name, (log,)), tmp_path / "store")
        assert done.summary()["tokens_accounted"] == 2 * MOST


def test_the_cycles_of_a_text_log_add_up(tmp_path: Path) -> None:
    log = tmp_path / "qwen.log"
    log.write_text(
        "ds4: Qwen MTP timing drafted=999998 accepted=999998 target_tokens=999999 "
        "cycle=91.250 ms verifier=block\n" * 3000
    )
    done = importer.import_log(source.Log(log.name, (log,)), tmp_path / "store")
    assert done.summary()["tokens_accounted"] == 3000 * 999_999


def test_the_live_line() -> None:
    row = {"outcome": "all_accepted", "emitted": MOST, "verified": MOST, "accepted": MOST}
    cycles = schema.conform(pl.DataFrame([row, row]), schema.CYCLES)
    total = sums(cycles)
    assert (total.emitted, total.verified, total.accepted) == (2 * MOST,) * 3
    assert total.tau == MOST and total.acceptance == 1
