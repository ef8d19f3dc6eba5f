"""The journal: a file that the engine appends to and that we only read.

The engine's standard error *is* this file (and its native trace goes there too, for the
parser to tell apart), so nothing here can block, slow or kill the engine, and what it wrote
survives us. The engine holds the file
open all the time, so the file is never renamed, truncated or rewritten. A long journal
rolls instead: what is new is appended to the compressed copy as one more zstd frame, and
only then is its room in the journal given back to the disk as a hole. Offsets stay, no
byte is ever in neither place, and a disk that knows no holes merely keeps both.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import zstandard

from tauscope.record import marker as markers
from tauscope.record.marker import Marker

BLOCK = 4 << 20
PACKED = ".log.zst"


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
        self._hollow = 0

    def create(self) -> int:
        """Make the journal and give a descriptor for the engine, locked for as long as it,
        or anyone it passes it on to, keeps it open. Raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, 0o666)
        markers.hold(descriptor)
        return descriptor

    def size(self) -> int:
        """Bytes written so far; 0 while the file isn't there."""
        if self._descriptor < 0:
            try:
                self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return 0
        return os.fstat(self._descriptor).st_size

    def read(self, offset: int, size: int) -> bytes:
        """At most `size` bytes from `offset`, of what the journal itself still holds."""
        if self.size() <= offset:
            return b""
        return os.pread(self._descriptor, size, offset)

    def blocks(self, size: int = BLOCK) -> Iterator[bytes]:
        """All bytes up to the journal's present end, packed ones first.

        Raises OSError or zstandard.ZstdError when the copy is broken.
        """
        yield from _unpacked(self.copy, self._marker.archived)
        offset, end = self._marker.archived, self.size()
        while offset < end and (block := self.read(offset, min(size, end - offset))):
            offset += len(block)
            yield block

    def sync(self) -> None:
        """Put what was written on the disk."""
        if self.size():
            os.fsync(self._descriptor)

    def pack(self, upto: int) -> None:
        """Append the bytes before `upto` that aren't in the copy yet as a frame of their own.

        A kill at any moment leaves the copy as the marker describes it, or longer: the
        next `pack` cuts it back first. Raises OSError, then with nothing changed.
        """
        marker = self._marker
        if upto <= marker.archived and self.copy.exists():
            return
        with self.copy.open("ab") as handle:
            handle.truncate(marker.packed)
            try:
                with zstandard.ZstdCompressor(level=3).stream_writer(
                    handle, closefd=False
                ) as writer:
                    offset = marker.archived
                    while offset < upto:
                        block = self.read(offset, min(BLOCK, upto - offset))
                        if not block:
                            raise OSError(f"{self.path}: shorter than it was")
                        writer.write(block)
                        offset += len(block)
                handle.flush()
                os.fsync(handle.fileno())
                packed = handle.tell()
            except OSError:
                handle.truncate(marker.packed)
                raise
        marker.archived, marker.packed = upto, packed
        markers.save(self.root, marker)

    def hollow(self, upto: int) -> None:
        """Give the room of packed bytes before `upto` back to the disk, where it can."""
        upto = min(upto, self._marker.archived) // 4096 * 4096
        if upto <= self._hollow:
            return
        descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
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
    with (root / name).open("rb") as handle:
        reader = zstandard.ZstdDecompressor().stream_reader(handle, read_across_frames=True)
        while block := reader.read(size):
            yield block


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
