"""The compressed copy of a log, written beside the parsing."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from queue import Queue

import zstandard

from tauscope.errors import Problem


class RawCopy:
    """Writes the compressed copy of a log beside the parsing, in a thread of its own."""

    def __init__(self, root: Path, log_id: str, skip: bool) -> None:
        self._final = root / "raw" / f"{log_id}.log.zst"
        self._part = self._final.with_name(f".{self._final.name}.{os.getpid()}.part")
        self._skip = skip
        self._blocks: Queue[bytes | None] = Queue(maxsize=2)
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> RawCopy:
        if not self._skip:
            self._final.parent.mkdir(parents=True, exist_ok=True)
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        return self

    def write(self, block: bytes) -> None:
        """Queue a block; waits while two are queued, so memory stays bounded."""
        if self._thread:
            self._blocks.put(block)

    def finish(self) -> None:
        """Wait for the last byte and give the copy its name. Raises Problem when that failed."""
        if not self._thread:
            return
        self._blocks.put(None)
        self._thread.join()
        self._thread = None
        if self._error:
            raise Problem(
                f"{self._final}: the log can't be kept ({self._error}); free some room or "
                "name another store with --traces"
            )
        os.replace(self._part, self._final)

    def __exit__(self, *_: object) -> None:
        if self._thread:  # the import failed: let the thread end, then drop its half
            self._blocks.put(None)
            self._thread.join()
        self._part.unlink(missing_ok=True)

    def _run(self) -> None:
        ended = False
        try:
            with (
                self._part.open("wb") as handle,
                zstandard.ZstdCompressor(level=3).stream_writer(handle) as writer,
            ):
                while (block := self._blocks.get()) is not None:
                    writer.write(block)
                ended = True
        except BaseException as error:  # told by finish(); the parser must not be stopped here
            self._error = error
            # A short log fails at its last flush, when no more is to come.
            while not ended and self._blocks.get() is not None:
                pass
