"""Stores that a report has to cope with: empty, lopsided, old, and full of hostile labels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from simulated import MTP1, OFF, SHADOW, model

from tauscope import schema, store
from tauscope.simulate import simulate, write

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ("workloads", "ledger", "rosetta", "timing", "compare", "routing")
SCENARIOS = ("sample", "empty", "one_workload", "one_arm", "old", "hostile")
SMALL = {"prompts": 5, "tokens": 60}
HOSTILE = (
    "<script>window.hit=1</script>",
    "</script><img src=x onerror=window.hit=1>",
    "'; DROP VIEW runs; --",
    "\x1b[31mred\x1b]0;owned\x07",
    "\u202egnp.evil\u202c",
    "{{ 7 * 7 }}{% raw %} {0} %s $where_0",
    "../../etc/passwd",
    "x" * 10_000,
    "x" * 9_999 + "y",
    "中文聊天 é",
    "עברית",
    "&lt;b&gt; \"q\" 'a'",
)
# What stores of the first version lacked: every column here was added at an end later on.
NEWER = {
    "runs": ("unlogged_cycles", "unknown_kinds", "unfit_examples", "experiment", "extra"),
    "requests": ("prefill_ms", "output_hash", "overlapped", "extra"),
    "cycles": ("draft_token", "next_token", "margin", "replayed", "t_ms", "extra"),
}


def build(name: str, root: Path) -> Path:
    """The store of one of SCENARIOS, at `root` unless it comes with the clone."""
    if name == "sample":
        return ROOT / "traces" / "sample"
    if name == "empty":
        (root / "runs").mkdir(parents=True)
    elif name == "one_workload":
        write(model([OFF, MTP1, SHADOW], {"code": SMALL}), root)
    elif name == "one_arm":
        write(model([MTP1], {"code": SMALL, "chat": SMALL}), root)
    elif name == "old":
        write(model([OFF, MTP1], {"code": SMALL, "chat": SMALL}), root)
        _age(root)
    else:
        hostile(root)
    return root


def _age(root: Path) -> None:
    """Take the newer columns out of every file, as if an older version had written them."""
    for room, names in NEWER.items():
        for path in (root / room).glob("*.parquet"):
            frame = pl.read_parquet(path)
            frame.drop([name for name in names if name in frame.columns]).write_parquet(path)


def hostile(root: Path) -> None:
    """Two arms whose workloads, prompts, arm, model, machine and source are HOSTILE."""
    names = [f"w{number:02d}" for number in range(len(HOSTILE))]
    labels = dict(zip(names, HOSTILE, strict=True))
    stated = model([OFF, MTP1], {name: SMALL for name in names})
    for number, part in enumerate(simulate(stated)):
        columns: dict[str, Any] = {
            "model": HOSTILE[0], "machine": HOSTILE[4], "source": HOSTILE[number],
            "drafter": HOSTILE[3], "experiment": HOSTILE[5],
        }  # fmt: skip
        arm = pl.when(pl.col("arm") == "off").then(pl.lit("off")).otherwise(pl.lit(HOSTILE[1]))
        runs = part.runs.with_columns(arm=arm, **{k: pl.lit(v) for k, v in columns.items()})
        label = pl.col("workload").replace_strict(labels)
        requests = part.requests.with_columns(workload=label, prompt_id=label + pl.col("prompt_id"))
        writer = store.LogWriter(root, runs.item(0, "log_id"), "t")
        writer.add(schema.CYCLES, part.cycles)
        writer.commit(runs, requests)


def real_store(corpus: Path, command: Callable[..., tuple[int, str, str]], root: Path) -> Path:
    """The real logs of two workloads with their off arms, imported and labelled."""
    for workload in ("chat", "code"):
        for arm, name in (("off", f"ds4-off-{workload}.log"), ("mtp2", f"ds4-mtp-{workload}.log")):
            done = command("import", corpus / name, "--workload", workload, "--arm", arm,
                           "--prompt-id", workload, "--traces", root)  # fmt: skip
            assert done[0] == 0, done[2]
    return root
