"""The journal: a file that the engine appends to and that we only read.

The engine's standard error *is* this file (and its native trace goes there too, for the
parser to tell apart), so nothing here can block, slow or kill the engine, and what it wrote
survives us. The engine holds the file open all the time, so we never rename, truncate or
rewrite it. A long journal rolls instead: what is new is appended to the compressed copy as
one more zstd frame, and only then is its room in the journal given back to the disk as a
hole. Offsets stay, no byte is ever in neither place, and a disk that knows no holes merely
keeps both.

The engine can truncate it: on Linux `> /dev/stderr` opens the file anew and empties it. So
offsets count what was read, not what the file holds: `base` is the offset of its first
byte, and a truncation moves it. The first line is ours, no part of the log: where it is
gone, the file was truncated, however much it has grown since. What was read and isn't in
the copy yet is kept here, compressed, until it is.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import zstandard

from tauscope.ingest import identity
from tauscope.record import marker as markers
from tauscope.record.marker import Marker

BLOCK = 4 << 20
PACKED = ".log.zst"
HEAD = b"tauscope: the journal of a recording\n"
# So many of its first bytes tell a file from what it is after a truncation; never hollowed out.
KNOWN = 64
_PAGE = 4096


def path_of(root: Path, log_id: str) -> Path:
    return root / "raw" / f"{log_id}.log"


def output_of(root: Path, log_id: str) -> Path:
    """Where the engine's standard output is, when it goes through a file."""
    return root / "raw" / f"{log_id}.out"


class Journal:
    """The journal of a recording, read by offset, from its copy where it was hollowed out."""

    def __init__(self, root: Path, marker: Marker) -> None:
        self.root = root
        self.path = path_of(root, marker.log_id)
        self.copy = self.path.with_name(f"{marker.log_id}{PACKED}")
        self._marker = marker
        self._descriptor = -1
        self._hollow = _PAGE
        self.base = marker.base
        self.truncations = 0
        self._known = HEAD if marker.base < 0 else b""
        self._in_line = False
        self._begin_frame()

    def _begin_frame(self) -> None:
        self._kept, self._frames = 0, []
        self._frame = zstandard.ZstdCompressor(level=3).compressobj()

    def create(self) -> int:
        """Make the journal and give a descriptor for the engine, locked for as long as it,
        or anyone it passes it on to, keeps it open. Raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, 0o666)
        try:
            markers.hold(descriptor)
            os.write(descriptor, HEAD)
        except OSError:
            os.close(descriptor)
            raise
        self.base = self._marker.base = -len(HEAD)
        self._known = HEAD
        return descriptor

    def size(self) -> int:
        """Bytes written so far; 0 while the file isn't there."""
        return self.base + os.fstat(self._descriptor).st_size if self._is_open() else 0

    def _is_open(self) -> bool:
        if self._descriptor < 0:
            try:
                self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return False
        return True

    def read(self, offset: int, size: int) -> bytes:
        """At most `size` bytes from `offset`, the end of what was read before.

        When the journal was truncated since, these are its new first bytes, on a line of
        their own, and `truncations` has grown by one.
        """
        if not self._is_open():
            return b""
        known = os.pread(self._descriptor, len(self._known), 0)
        at = offset - self.base
        mended = b""
        if known != self._known or os.fstat(self._descriptor).st_size < at:
            self.truncations += 1
            mended = b"\n" if self._in_line else b""
            self.base, at, self._known = offset + len(mended), 0, b""
        block = os.pread(self._descriptor, size, at)
        if len(self._known) < KNOWN and self._known != HEAD:
            self._known = os.pread(self._descriptor, min(KNOWN, at + len(block)), 0)
        if mended or block:
            self._in_line = (mended + block)[-1:] != b"\n"
        return mended + block

    def keep(self, data: bytes) -> None:
        """Remember bytes for the next `pack`: a truncated journal has them no more."""
        self._kept += len(data)
        self._frames.append(self._frame.compress(data))

    def blocks(self, size: int = BLOCK) -> Iterator[bytes]:
        """All bytes up to the journal's present end, packed ones first.

        Raises OSError or zstandard.ZstdError when the copy is broken.
        """
        offset, end = self._marker.archived, None
        for block in _unpacked(self.copy, offset):
            self._in_line = block[-1:] != b"\n"
            yield block
        while (end is None or offset < end) and (block := self.read(offset, size)):
            # What is written meanwhile is not waited for.
            end = self.size() if end is None else end
            offset += len(block)
            yield block

    def sync(self) -> None:
        """Put what was written on the disk."""
        if self._is_open():
            os.fsync(self._descriptor)

    def pack(self) -> None:
        """Append the kept bytes to the copy as a frame of their own.

        A kill at any moment leaves the copy as the marker describes it, or longer: the
        next `pack` cuts it back first. Raises OSError, then with nothing changed.
        """
        marker = self._marker
        if not self._kept and self.copy.exists():
            return
        self._frames.append(self._frame.flush())
        self._frame = zstandard.ZstdCompressor(level=3).compressobj()
        with self.copy.open("ab") as handle:
            handle.truncate(marker.packed)
            try:
                handle.writelines(self._frames)
                handle.flush()
                os.fsync(handle.fileno())
                packed = handle.tell()
            except OSError:
                handle.truncate(marker.packed)
                raise
        marker.archived, marker.packed = marker.archived + self._kept, packed
        self._begin_frame()
        markers.save(self.root, marker)

    def hollow(self, upto: int) -> None:
        """Give the room of packed bytes before `upto` back to the disk, where it can.

        A journal that was truncated keeps its room: its readers are not all as far.
        """
        upto = (min(upto, self._marker.archived) - self.base) // _PAGE * _PAGE
        if upto <= self._hollow or self._marker.truncated:
            return
        descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if os.pread(descriptor, len(self._known), 0) == self._known:
                punch(descriptor, self._hollow, upto - self._hollow)
            self._hollow = upto
        finally:
            os.close(descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _unpacked(copy: Path, archived: int, size: int = BLOCK) -> Iterator[bytes]:
    """The packed part of a journal, and nothing that a killed `pack` left behind it."""
    if not archived:
        return
    left = archived
    with copy.open("rb") as handle:
        reader = zstandard.ZstdDecompressor().stream_reader(handle, read_across_frames=True)
        while left and (block := reader.read(min(size, left))):
            left -= len(block)
            yield block
    if left:
        raise OSError(f"{copy}: shorter than it was")


def kept_blocks(root: Path, name: str, size: int = BLOCK) -> Iterator[bytes]:
    """Bytes of the raw log `name` (relative to the store), the ones not yet packed included.

    Raises OSError or zstandard.ZstdError when it is missing or broken.
    """
    log_id = Path(name).name.removesuffix(PACKED)
    marker = markers.load(markers.path_of(root, log_id))
    if marker is not None and path_of(root, log_id).exists():
        journal = Journal(root, marker)
        try:
            yield from journal.blocks(size)
        finally:
            journal.close()
        return
    yield from identity.unpacked(root / name, size)


def punch(descriptor: int, offset: int, length: int) -> None:
    """Make a hole in a file: its size stays, its blocks go. Where that can't be done, nothing."""
    if sys.platform == "darwin":
        import fcntl

        request = struct.pack("=IIqq", 0, 0, offset, length)
        punch_hole = 99  # F_PUNCHHOLE has no name in Python
        try:
            fcntl.fcntl(descriptor, punch_hole, request)
        except OSError:
            return
    elif sys.platform == "linux":
        keep_size, punch_hole = 1, 2
        libc = ctypes.CDLL(None, use_errno=True)
        call = getattr(libc, "fallocate64", None) or libc.fallocate
        call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
        call(descriptor, keep_size | punch_hole, offset, length)
