"""What a store knows of a recording that isn't over: `recording/<log_id>.json`.

The marker is written before the engine starts and goes away when its rows are committed
for good, so one that is left tells that a recorder died. Whether it did, no process id
tells (they are used again): the recorder holds a lock on a file beside the marker, and
the system lets go of it however the recorder ends.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

try:
    import fcntl
except ImportError:  # no recording on Windows, but a store that came from elsewhere is read
    fcntl = None

ROOM = "recording"


class Marker(msgspec.Struct, kw_only=True):
    """One recording.

    `archived` bytes of the journal are in its compressed copy, which has `packed` bytes.
    `takes` numbers the passes over the journal; `seen` is its size at the end of the last
    one that an engine outlived. `base` is the offset of the journal's first byte (below 0:
    it begins with a line of ours), `truncated` how often the engine was seen to empty it.
    """

    log_id: str
    source: str
    workload: str | None = None
    arm: str | None = None
    prompt_id: str | None = None
    experiment: str | None = None
    tokens: int | None = None
    max_tokens: int | None = None
    rules: list[dict[str, object]] = []
    keep_output: bool = False
    recorder_pid: int
    engine_pid: int | None = None
    started_unix_ms: int
    takes: int = 0
    seen: int = 0
    archived: int = 0
    packed: int = 0
    base: int = 0
    truncated: int = 0


def path_of(root: Path, log_id: str) -> Path:
    return root / ROOM / f"{log_id}.json"


def load(path: Path) -> Marker | None:
    """The marker at `path`; None when it is gone or can't be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Marker)
    except (OSError, msgspec.DecodeError):
        return None


def save(root: Path, marker: Marker) -> None:
    """Replace the marker in one step, on the disk before this returns. Raises OSError."""
    path = path_of(root, marker.log_id)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as handle:
            handle.write(msgspec.json.encode(marker))
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def drop(root: Path, log_id: str) -> None:
    """Forget a recording that is committed. Its lock file goes with it."""
    path_of(root, log_id).unlink(missing_ok=True)
    lock_path(root, log_id).unlink(missing_ok=True)


def pending(root: Path) -> list[Path]:
    """Markers of a store: recordings that go on, or that were cut short."""
    try:
        return sorted((root / ROOM).glob("*.json"))
    except OSError:
        return []


def lock_path(root: Path, log_id: str) -> Path:
    return root / ROOM / f"{log_id}.lock"


def hold(handle: int | IO[bytes], *, wait: bool = False) -> bool:
    """Take an exclusive lock on an open file; False when another holds it.

    The lock belongs to the open file, not to the process: a child that inherits the file
    holds it too, and the system lets go when the last of them has closed it.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def is_held(path: Path) -> bool:
    """Does anyone hold the lock on this file? A file that isn't there is held by no one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not hold(descriptor)
    finally:
        os.close(descriptor)


def is_recorded(root: Path, log_id: str) -> bool:
    """Is a recorder at work on this log right now?"""
    return path_of(root, log_id).exists() and is_held(lock_path(root, log_id))


@contextlib.contextmanager
def mending(root: Path) -> Iterator[None]:
    """Hold the right to commit what dead recorders left; others wait, and then find it done.

    Raises OSError where the store can't be written.
    """
    descriptor = os.open(root / ROOM / ".mend", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        hold(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)
