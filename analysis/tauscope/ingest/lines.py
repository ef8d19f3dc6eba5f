"""Bytes to lines: where each line begins and ends, whatever the bytes are.

Lines are counted on raw newlines, so a line number always points into the log
as it was. Nothing is decoded here: bad UTF-8, NULs and colours pass through.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tauscope.ingest.native import MARKER

# Blocks are cut into slices that stay in the processor's cache.
SLICE = 4 << 20
# A physical line longer than this is read in parts of at most this size, all with the
# line's number: a gigabyte without a newline must not need a gigabyte of memory. A
# part ends where a record may: behind a carriage return (or NUL), before a marker.
MAX_LINE = 1 << 20
# Readers look ahead of a line's end without asking; there is always this much.
PAD = bytes(512)

NEWLINE, RETURN = 10, 13
_LONGEST_MARK = 30
_NATIVE = MARKER.encode()
_MARKS = (b"ds4: ", b"ds4-server: ")
_STAMP, _STAMP_SIZE = re.compile(rb"[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} ds4"), 14


@dataclass(slots=True)
class Chunk:
    """Whole lines: `data[starts[i]:ends[i]]` is line `numbers[i]`, without its line end."""

    data: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    numbers: np.ndarray
    stop: int  # end of the last line, its newline included
    cut: np.ndarray | None = None  # which of them are parts of an overlong line


class LineReader:
    """Cuts blocks of any size into chunks of whole lines; keeps the rest for the next block."""

    def __init__(self) -> None:
        self.lines = 0
        self._rest = bytearray()
        self._inside = False  # parts of the line that `_rest` goes on with were given out

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
            ends = _parts(self._rest)
            for start, end in pairwise([0, *ends]):
                self._inside = True
                yield self._part(bytes(self._rest[start:end]))
            if ends:
                del self._rest[: ends[-1]]

    def finish(self) -> Iterator[Chunk]:
        """The last line, when no newline ends it."""
        if self._rest:
            data = b"".join((self._rest, b"\n", PAD))
            self._rest.clear()
            yield self._chunk(np.frombuffer(data, np.uint8))

    def _part(self, part: bytes) -> Chunk:
        data = np.frombuffer(part + PAD, np.uint8)
        start, end = np.array([0]), np.array([len(part)])
        numbers = np.array([self.lines + 1])
        return Chunk(data, start, _bare(data, start, end), numbers, len(part), np.array([True]))

    def _chunk(self, data: np.ndarray) -> Chunk:
        stop = len(data) - len(PAD)
        ends = np.flatnonzero(data[:stop] == NEWLINE)
        starts = np.empty_like(ends)
        starts[0] = 0
        starts[1:] = ends[:-1] + 1
        numbers = np.arange(self.lines + 1, self.lines + 1 + len(ends))
        self.lines += len(ends)
        lengths = ends - starts
        cut = None
        if self._inside or lengths.max() > MAX_LINE:
            cut = lengths > MAX_LINE
            cut[0] |= self._inside
            self._inside = False
            # A slice holds few lines that are this long.
            more = {
                at: starts[at] + np.array(_parts(data[starts[at] : ends[at]].tobytes()), np.int64)
                for at in np.flatnonzero(lengths > MAX_LINE)
            }
            if more:
                inner = np.concatenate(list(more.values()))
                times = np.ones(len(starts), np.int64)
                times[list(more)] += [len(places) for places in more.values()]
                starts = np.sort(np.concatenate([starts, inner]))
                ends = np.sort(np.concatenate([ends, inner]))
                numbers, cut = np.repeat(numbers, times), np.repeat(cut, times)
        return Chunk(data, starts, _bare(data, starts, ends), numbers, stop, cut)


def _bare(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """`ends` without the return of a CRLF (guarded against an empty line)."""
    return ends - ((data[ends - 1] == RETURN) & (ends > starts))


def _parts(line: bytes | bytearray) -> list[int]:
    """Where the parts of a line end, but for the last; they depend on the line alone."""
    ends, start = [], 0
    while len(line) - start > MAX_LINE:
        start += _break(bytes(line[start : start + MAX_LINE]))
        ends.append(start)
    return ends


def _break(part: bytes) -> int:
    """Where to end a part: at the last place where a record may begin.

    Behind it, `part` may hold the first half of a record only. Without one, the
    first bytes of a marker may still stand at its end.
    """
    at = max(part.rfind(b"\r"), part.rfind(b"\0")) + 1
    at = max(at, part.rfind(_NATIVE))
    if at > 0:
        return at
    at = max(part.rfind(mark) for mark in _MARKS)
    if at > 0 and _STAMP.match(part, max(0, at - _STAMP_SIZE)):
        at -= _STAMP_SIZE
    return at if at > 0 else len(part) - _LONGEST_MARK
