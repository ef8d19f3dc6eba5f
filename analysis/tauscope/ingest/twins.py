"""Bytes that are in two logs: one log at two lengths, or parts of a rotation twice."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import polars as pl
import zstandard

from tauscope.errors import Problem
from tauscope.ingest import identity
from tauscope.ingest.source import Log, family

# A stretch of so many bytes, timings in every line, is no chance. A shorter log is held whole.
SURE = 64 * 1024
# Less may be what every start of the engine prints.
LEAST = 4096
# A whole log that is shorter than that, unless it is hardly more than a start.
SHORTEST = 512
_KNOWN: dict[tuple[str, int, str, int], bool] = {}


def shorter_twins(runs: pl.DataFrame) -> pl.DataFrame:
    """Logs of `runs` that are in another store too, longer or as long: columns store, log_id.

    A log keeps the name that its first import gave it, so a copy that grew elsewhere has
    another. `runs`: rows of schema RUNS plus `store`. Where the kept bytes are missing,
    nothing is taken for a twin.
    """
    logs = (
        runs.filter((pl.col("raw_bytes") > 0) & pl.col("raw_sha256").is_not_null())
        .select("store", "log_id", "raw_bytes", "raw_sha256", "raw_file")
        .unique(["store", "log_id"], keep="first", maintain_order=True)
        .sort("raw_bytes", maintain_order=True)
    )
    gone: set[tuple[str, str]] = set()
    if logs["store"].n_unique() > 1:
        for group in _alike(logs):
            for short, long in combinations(group, 2):
                if short["store"] == long["store"] or short["log_id"] == long["log_id"]:
                    continue
                if _is_start(short, long):
                    gone.add((short["store"], short["log_id"]))
    return pl.DataFrame(
        sorted(gone), schema={"store": pl.String, "log_id": pl.String}, orient="row"
    )


def _alike(logs: pl.DataFrame) -> list[list[dict]]:
    """Groups of logs, short ones first, that have the first bytes in common."""
    rows = list(logs.iter_rows(named=True))
    least = min((row["raw_bytes"] for row in rows), default=0)
    groups: dict[bytes, list[dict]] = {}
    for row in rows:
        row["head"] = _head(_raw(row), identity.HEAD)
        groups.setdefault(row["head"][:least], []).append(row)
    return [group for group in groups.values() if len(group) > 1]


def _is_start(short: dict, long: dict) -> bool:
    if short["raw_sha256"] == long["raw_sha256"]:
        return True
    if short["raw_bytes"] == long["raw_bytes"] or not short["head"]:
        return False
    if not long["head"].startswith(short["head"]):
        return False
    key = (str(_raw(long)), long["raw_bytes"], short["raw_sha256"], short["raw_bytes"])
    if key not in _KNOWN:
        _KNOWN[key] = identity.begins(
            _raw(long), short["head"], short["raw_bytes"], short["raw_sha256"]
        )
    return _KNOWN[key]


def _raw(row: dict) -> Path | None:
    return Path(row["store"]) / row["raw_file"] if row["raw_file"] else None


def _head(raw: Path | None, size: int) -> bytes:
    try:
        return next(identity.unpacked(raw, size), b"")[:size] if raw else b""
    except (OSError, zstandard.ZstdError):
        return b""


def refuse_overlap(log: Log, held: pl.DataFrame, root: Path) -> None:
    """Raises Problem for a rotated log whose start is the middle of one that is there."""
    shared = overlap(log, held, root)
    if shared is None:
        return
    log_id, size = shared
    files = " ".join(shlex.quote(str(part)) for part in log.parts)
    raise Problem(
        f"{log.name}: its first {size} bytes are in the store already, inside log {log_id}; they "
        "would count twice. Bring in what is new alone, from plain files with: "
        f"cat {files} | tail -c +{size + 1} | tauscope import -"
    )


def refuse_inside(log: Log, held: pl.DataFrame, root: Path, own: str) -> None:
    """Raises Problem for a rotation of which a later part is in the store by itself."""
    part = inside(log, held, root, own)
    if part is not None:
        log_id, source = part
        raise Problem(
            f"{log.name}: log {log_id} ({source}) is in the store already and is a later part of "
            "it; its cycles would count twice. Bring in the parts that are not there alone"
        )


def overlap(log: Log, held: pl.DataFrame, root: Path) -> tuple[str, int] | None:
    """(log_id, bytes) where `log` begins with bytes that are inside a log of the store.

    That is what a rotation leaves whose oldest part is gone: its start is the middle of
    what was imported before. Only logs of the same name are looked through. The bytes
    reach to the end of that log, or of `log`. `held`: columns log_id, raw_file, source.
    """
    kept = _of_its_family(log, held)
    if not kept:
        return None
    start = b""
    for block in log.blocks(SURE):
        start = (start + block)[:SURE]
        if len(start) == SURE:
            break
    if len(start) < LEAST:
        return None
    for row in kept:
        try:
            shared = _shared(identity.unpacked(root / row["raw_file"], 1 << 20), start)
        except (OSError, zstandard.ZstdError):
            continue
        if shared:
            return row["log_id"], shared
    return None


def inside(log: Log, held: pl.DataFrame, root: Path, own: str) -> tuple[str, str] | None:
    """(log_id, source) of a log of the store that begins in the middle of `log`.

    That is a later part of a rotation that was brought in alone before. Only logs of the same
    name are looked for; `own` is the one that `log` itself is.
    """
    probes = {}
    for row in _of_its_family(log, held):
        start = _head(root / row["raw_file"], LEAST)
        if row["log_id"] != own and len(start) >= SHORTEST:
            probes[start] = (row["log_id"], row["source"])
    tail, before = b"", 0
    for block in log.blocks() if probes else ():
        window = tail + block
        for start, name in probes.items():
            # At the very beginning it would be the same log, which is another question.
            if window.find(start, 1 if before == 0 else 0) >= 0:
                return name
        before += len(block)
        tail = window[1 - LEAST :]
    return None


def _of_its_family(log: Log, held: pl.DataFrame) -> list[dict]:
    """The logs of a store whose names say that they are parts of the same rotation."""
    name = family(Path(log.name).name)
    return [
        row for row in held.iter_rows(named=True)
        if row["raw_file"] and row["source"] and family(row["source"]) == name
    ]  # fmt: skip


def _shared(blocks: Iterator[bytes], start: bytes) -> int:
    """Bytes from where `start` (or, at the end, its beginning) is found to the end of `blocks`."""
    probe = start[:LEAST]
    window, ended, shared = b"", False, 0
    while not ended:
        block = next(blocks, b"")
        ended = not block
        window += block
        if shared:
            shared += len(block)
            window = b""
            continue
        at = window.find(probe)
        while at >= 0:
            if len(window) - at < len(start) and not ended:
                break  # more is to come
            if start.startswith(window[at : at + len(start)]):
                shared = len(window) - at
                break
            at = window.find(probe, at + 1)
        window = window[at:] if at >= 0 else window[-LEAST:]
    return shared
