"""Which log is this? The same bytes, a known log that has grown, or a new one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import zstandard

from tauscope.ingest.source import Log
from tauscope.ingest.unpack import unzstd

NEW, SAME, GROWN, OLDER = "new", "same", "grown", "older"
HEAD = 4096


@dataclass(frozen=True, slots=True)
class Identity:
    """What a log is to a store: `kind` is new, same, grown (of `log_id`) or an older copy."""

    kind: str
    log_id: str
    sha256: str
    bytes: int


def identify(log: Log, known: pl.DataFrame, root: Path) -> Identity:
    """Hash `log` once and hold it against the logs in the store at `root`.

    `known`: columns log_id, raw_bytes, raw_sha256, raw_file, one row a log. A log whose
    first bytes are a known log is that log, grown; one that is itself the first bytes of
    a known log is an older copy of it.
    """
    marks = known.filter(pl.col("raw_bytes") > 0).sort("raw_bytes")
    lengths = marks["raw_bytes"].unique().sort().to_list()
    digest, size, seen, head = hashlib.sha256(), 0, {}, b""
    for block in log.blocks():
        head = (head + block[:HEAD])[:HEAD] if len(head) < HEAD else head
        view, start = memoryview(block), 0
        while lengths and lengths[0] <= size + len(block):
            cut = lengths.pop(0) - size
            digest.update(view[start:cut])
            seen[size + cut] = digest.hexdigest()
            start = cut
        digest.update(view[start:])
        size += len(block)
    sha256 = digest.hexdigest()
    for row in marks.reverse().iter_rows(named=True):
        if seen.get(row["raw_bytes"]) == row["raw_sha256"]:
            kind = SAME if row["raw_bytes"] == size else GROWN
            return Identity(kind, row["log_id"], sha256, size)
    for row in marks.filter(pl.col("raw_bytes") > size).iter_rows(named=True):
        if size and row["raw_file"] and begins(root / row["raw_file"], head, size, sha256):
            return Identity(OLDER, row["log_id"], sha256, size)
    return Identity(NEW, sha256[:12], sha256, size)


def begins(raw: Path, head: bytes, size: int, sha256: str) -> bool:
    """Are the first `size` bytes of a kept log the ones with this hash?"""
    try:
        blocks = unpacked(raw)
        first = next(blocks, b"")
        if first[: len(head)] != head:
            return False
        digest, left = hashlib.sha256(first[:size]), size - len(first)
        while left > 0 and (block := next(blocks, b"")):
            digest.update(block[:left])
            left -= len(block)
    except (OSError, zstandard.ZstdError):
        return False  # a kept log that can't be read says nothing about this one
    return digest.hexdigest() == sha256


def unpacked(raw: Path, size: int = 1 << 20) -> Iterator[bytes]:
    """The bytes of a kept log in blocks of at most `size`. Raises OSError or ZstdError."""
    with raw.open("rb") as handle:
        yield from unzstd(handle, size)
