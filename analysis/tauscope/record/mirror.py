"""What the engine writes to its journal, shown on our own standard error as it was.

A mirror reads the file in a thread of its own: a terminal that is held, or a pager that
reads slowly, holds up this thread and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import Protocol

from tauscope.record.engine import terminal_size

BLOCK = 1 << 16
# How often it is looked for more, in seconds.
LOOK_S = 0.02
MARKER = b'{"tauscope":'


class Source(Protocol):
    """Where a mirror reads: `offset` is how far it got."""

    offset: int

    def read(self) -> bytes:
        """The next bytes to show; none when there are no more yet."""

    def rest(self) -> bytes:
        """At the end: what was held back."""


class Whole:
    """All bytes of a growing file, which `at(offset, size)` reads."""

    def __init__(self, at: Callable[[int, int], bytes]) -> None:
        self._at = at
        self.offset = 0

    def read(self) -> bytes:
        block = self._at(self.offset, BLOCK)
        self.offset += len(block)
        return block

    def rest(self) -> bytes:
        return b""


class WithoutTrace:
    """The same without the lines of a native trace: the engine didn't say them to a terminal.

    A record begins at its marker and ends with its line, wherever in a line it begins.
    """

    def __init__(self, at: Callable[[int, int], bytes]) -> None:
        self._all = Whole(at)
        self._inside = False
        self._held = b""

    @property
    def offset(self) -> int:
        return self._all.offset

    def read(self) -> bytes:
        while block := self._all.read():
            if shown := self._shown(self._held + block):
                return shown
        return b""

    def rest(self) -> bytes:
        return self._held

    def _shown(self, data: bytes) -> bytes:
        self._held, shown = b"", []
        while data:
            if self._inside:
                _, end, data = data.partition(b"\n")
                self._inside = not end
                continue
            before, marker, data = data.partition(MARKER)
            if marker:
                self._inside = True
            else:
                # The marker may go on in the next block; anything else is shown at once.
                keep = max(
                    (n for n in range(1, len(MARKER)) if before.endswith(MARKER[:n])), default=0
                )
                self._held = before[len(before) - keep :]
                before = before[: len(before) - keep]
            shown.append(before)
        return b"".join(shown)


class Mirror:
    """Copies a growing file to the descriptor `target`, byte for byte.

    With `status`, the last line of a terminal is kept free for `show`.
    """

    def __init__(self, source: Source, target: int, *, status: bool = False) -> None:
        self._source = source
        self._target = target
        self._more = threading.Event()
        self._ending = False
        self._lost = False
        self._in_line = False
        self._said: list[str] = []
        self._bar = StatusLine(target) if status else None
        self._thread = threading.Thread(target=self._run, daemon=True, name="mirror")
        self._thread.start()

    @property
    def offset(self) -> int:
        """How far into the file it got."""
        return self._source.offset

    def say(self, text: str) -> None:
        """A line of our own, between what the engine says."""
        self._said.append(text)
        self._more.set()

    def show(self, text: str) -> None:
        """Put `text` on the status line, if there is one."""
        if self._bar:
            self._bar.text = text
            self._more.set()

    def resized(self) -> None:
        """The terminal has another size now."""
        if self._bar:
            self._bar.stale = True
            self._more.set()

    def finish(self) -> None:
        """Copy what is left, give the status line back and end. Waits for a held terminal."""
        self._ending = True
        self._more.set()
        self._thread.join()

    def _run(self) -> None:
        if self._bar:
            self._put(self._bar.begin())
        while True:
            ending = self._ending
            self._more.clear()
            self._copy()
            if self._bar and not ending:
                self._put(self._bar.draw())
            if ending:
                self._put(self._source.rest())
                break
            self._more.wait(LOOK_S)
        if self._bar:
            self._put(self._bar.end())
        self._speak()

    def _copy(self) -> None:
        while not self._lost and (block := self._source.read()):
            self._put(block)
            self._in_line = block[-1:] != b"\n"
        self._speak()

    def _speak(self) -> None:
        while self._said:
            text = self._said.pop(0) + "\n"
            self._put((b"\n" if self._in_line else b"") + text.encode("utf-8", "replace"))
            self._in_line = False

    def _put(self, data: bytes) -> None:
        """Write all of it; when no one reads any more, stop for good."""
        rest = memoryview(data)
        while rest and not self._lost:
            try:
                rest = rest[os.write(self._target, rest) :]
            except BlockingIOError:
                self._wait_until_writable()
            except OSError:
                self._lost = True

    def _wait_until_writable(self) -> None:
        import select

        with contextlib.suppress(OSError, ValueError):
            select.select([], [self._target], [], 1)


class StatusLine:
    """The terminal's last line, kept out of scrolling, so that text above it flows as ever.

    What the engine writes to the same terminal, model text in the middle of a line too, is
    not touched: each drawing saves the cursor and puts it back, in one write.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._lines = 0
        self.text = ""
        self._drawn: str | None = None
        self.stale = False

    def begin(self) -> bytes:
        """Take the last line out of the scrolling part."""
        size = terminal_size()
        if size is None:
            return b""
        self._lines = size[1]
        self._drawn = None
        # The line feed makes room when the cursor stands on the last line.
        return f"\n\x1b7\x1b[1;{self._lines - 1}r\x1b8\x1b[1A".encode()

    def draw(self) -> bytes:
        """The text, where it has changed."""
        begin = b""
        if self.stale:
            self.stale = False
            begin = self.begin()
        if not self._lines or self.text == self._drawn:
            return begin
        self._drawn = self.text
        line = f"\x1b7\x1b[{self._lines};1H\x1b[2K{self.text}\x1b8"
        return begin + line.encode("utf-8", "replace")

    def end(self) -> bytes:
        """Give the whole terminal back."""
        if not self._lines:
            return b""
        return f"\x1b7\x1b[{self._lines};1H\x1b[2K\x1b[r\x1b8".encode()
