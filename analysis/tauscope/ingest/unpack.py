"""Zstandard streams, unpacked in bounded memory; one that was cut short is an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import zstandard

# Packed bytes at a time: a hostile stream makes 128 KiB of every four of them.
_STEP = 4096


def unzstd(handle: IO[bytes], size: int) -> Iterator[bytes]:
    """The bytes of all frames in `handle`, in blocks of about `size`.

    The library's own stream reader ends without a word where the file does. Raises
    zstandard.ZstdError for what is no frame, and for a frame without its end.
    """
    unpacker = zstandard.ZstdDecompressor()
    frame, ready = None, bytearray()
    while packed := handle.read(_STEP):
        while packed:
            frame = frame or unpacker.decompressobj()
            ready += frame.decompress(packed)
            packed = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
        if len(ready) >= size:
            yield bytes(ready)
            ready.clear()
    if ready:
        yield bytes(ready)
    if frame is not None:
        raise zstandard.ZstdError("it ends in the middle: the rest is missing")
