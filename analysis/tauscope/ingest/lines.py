"""Bytes to lines: where each line begins and ends, whatever the bytes are.

Lines are counted on raw newlines, so a line number always points into the log
as it was. Nothing is decoded here: bad UTF-8, NULs and colours pass through.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

# Blocks are cut into slices that stay in the processor's cache.
SLICE = 4 << 20
# A physical line longer than this is read in pieces of this size, all with the
# line's number: a gigabyte without a newline must not need a gigabyte of memory.
MAX_LINE = 1 << 20
# Readers look ahead of a line's end without asking; there is always this much.
PAD = bytes(512)

NEWLINE, RETURN = 10, 13


@dataclass(slots=True)
class Chunk:
    """Whole lines: `data[starts[i]:ends[i]]` is line `numbers[i]`, without its line end."""

    data: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    numbers: np.ndarray
    stop: int  # end of the last line, its newline included


class LineReader:
    """Cuts blocks of any size into chunks of whole lines; keeps the rest for the next block."""

    def __init__(self) -> None:
        self.lines = 0
        self._rest = bytearray()

    @property
    def pending(self) -> bool:
        """Whether bytes without a newline wait for the next block."""
        return bool(self._rest)

    def feed(self, block: bytes) -> Iterator[Chunk]:
        """Chunks of the lines that `block` completes."""
        view, at = memoryview(block), 0
        while at < len(block):
            stop = block.rfind(b"\n", at, at + SLICE) + 1
            if stop and not self._rest and stop + len(PAD) <= len(block):
                # What follows in the block serves as the padding: nothing is copied.
                whole = np.frombuffer(block, np.uint8, stop + len(PAD) - at, at)
                at = stop
                yield self._chunk(whole)
                continue
            if stop:
                data = b"".join((self._rest, view[at:stop], PAD))
                self._rest.clear()
                at = stop
                yield self._chunk(np.frombuffer(data, np.uint8))
                continue
            self._rest += view[at : at + SLICE]
            at += SLICE
            whole = (len(self._rest) - 1) // MAX_LINE
            for piece in range(whole):
                part = self._rest[piece * MAX_LINE : (piece + 1) * MAX_LINE]
                yield self._piece(part)
            del self._rest[: whole * MAX_LINE]

    def finish(self) -> Iterator[Chunk]:
        """The last line, when no newline ends it."""
        if self._rest:
            data = b"".join((self._rest, b"\n", PAD))
            self._rest.clear()
            yield self._chunk(np.frombuffer(data, np.uint8))

    def _piece(self, part: bytearray) -> Chunk:
        data = np.frombuffer(bytes(part) + PAD, np.uint8)
        start, end = np.array([0]), np.array([len(part)])
        return Chunk(data, start, end, np.array([self.lines + 1]), len(part))

    def _chunk(self, data: np.ndarray) -> Chunk:
        stop = len(data) - len(PAD)
        ends = np.flatnonzero(data[:stop] == NEWLINE)
        starts = np.empty_like(ends)
        starts[0] = 0
        starts[1:] = ends[:-1] + 1
        numbers = np.arange(self.lines + 1, self.lines + 1 + len(ends))
        self.lines += len(ends)
        lengths = ends - starts
        if lengths.max() > MAX_LINE:
            pieces = np.maximum(1, -(-lengths // MAX_LINE))
            numbers = np.repeat(numbers, pieces)
            nth = np.arange(len(numbers)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
            ends = np.repeat(ends, pieces)
            starts = np.repeat(starts, pieces) + nth * MAX_LINE
            ends = np.minimum(ends, starts + MAX_LINE)
        # CRLF: the return belongs to the line end (guarded against an empty line).
        ends = ends - ((data[ends - 1] == RETURN) & (ends > starts))
        return Chunk(data, starts, ends, numbers, stop)
