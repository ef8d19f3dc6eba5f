"""The native trace from Python: the twin of traces/emit/tauscope_trace.h.

The same calls write the same bytes; the header says how it behaves, and
traces/README.md what the fields mean. Standard library only, so that an engine
can take this one file.

    trace = Trace(engine="mine", draft_depth=1)        # file: $TAUSCOPE_TRACE
    request = trace.begin(prompt_tokens=512)
    trace.record(request, drafted=1, verified=1, accepted=1, emitted=2)
    trace.token(request, 4711)
    trace.end(request, prefill_ms=310.5)
    trace.close()
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

FORMAT = 1
HASH = 0xCBF29CE484222325
_BUFFER = 1 << 20
_TEXT = 256  # characters of a text that are kept
_TOKEN = 96  # bytes of a run token, with the end that C puts behind it
_ESCAPES = {code: f"\\u{code:04x}" for code in range(0x20)} | {34: '\\"', 92: "\\\\"}
# What the counts of a cycle can't tell; the others follow from them.
OUTCOMES = ("folded", "bypassed", "undrafted", "unverified", "fallback")


def token_hash(state: int, token: int) -> int:
    """FNV-1a, 64 bits, of `state` and one token id as a little-endian 32-bit integer."""
    for byte in (token & 0xFFFFFFFF).to_bytes(4, "little"):
        state = (state ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return state


def _int(name: str, value: int | None, bits: int = 31) -> str:
    return f',"{name}":{int(value)}' if value is not None and 0 <= value < 1 << bits else ""


def _bool(name: str, value: bool | None) -> str:
    return "" if value is None else f',"{name}":true' if value else f',"{name}":false'


def _fixed(name: str, value: float | None, places: int = 3) -> str:
    # Not round(): the C side must reach the same digits with two roundings of a double.
    if value is None or not abs(value) < 2.0**43:
        return ""
    scale = 1000 if places == 3 else 1_000_000
    n = int(abs(float(value)) * scale + 0.5)
    sign = "-" if value < 0 and n else ""
    return f',"{name}":{sign}{n // scale}.{n % scale:0{places}d}'


def _text(name: str, value: str | bytes | None) -> str:
    if value is None:
        return ""
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
    # Longest 256 characters are 1,024 bytes; C strings end at the first NUL.
    kept = data[: 4 * _TEXT + 4].split(b"\0", 1)[0].decode("utf-8", "replace")[:_TEXT]
    return f',"{name}":"{kept.translate(_ESCAPES)}"'


def _clock() -> float:
    return time.monotonic_ns() / 1e6


@dataclass(slots=True)
class Request:
    """One generation: its number in the run (None outside begin and end), tokens and hash."""

    id: int | None = None
    tokens: int = 0
    hash: int = HASH


class Trace:
    """One process's trace, appended to `path` (else to the file named by $TAUSCOPE_TRACE).

    Without a path every call returns at once. An error of the file ends the trace
    for good and raises nothing. `clock` gives milliseconds; `run`, `pid` and
    `unix_ms` are for engines that keep their own run token, process id and time of
    day. Threads may share a trace; a forked child becomes a run of its own.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        run: str | None = None,
        clock: Callable[[], float] | None = None,
        pid: int | None = None,
        unix_ms: int | None = None,
        engine: str | None = None,
        engine_version: str | None = None,
        model: str | None = None,
        drafter: str | None = None,
        draft_depth: int | None = None,
        threshold: float | None = None,
        arm: str | None = None,
        backend: str | None = None,
        machine: str | None = None,
        ctx: int | None = None,
    ) -> None:
        self.on = False
        self._fd = -1
        self._clock = clock or _clock
        name = os.environ.get("TAUSCOPE_TRACE") if path is None else os.fspath(path)
        if not name:
            return
        # Not blocking, for a pipe without a reader would hold the engine for ever.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY
        try:
            self._fd = os.open(name, flags | os.O_CLOEXEC, 0o666)
            file = os.fstat(self._fd)
        except (OSError, ValueError):
            return
        if not (stat.S_ISREG(file.st_mode) or stat.S_ISCHR(file.st_mode)):
            os.close(self._fd)
            return
        self._file = (file.st_dev, file.st_ino)
        self._pid = os.getpid()
        self._shown_pid = self._pid if pid is None else pid
        self._unix_ms = time.time_ns() // 1_000_000 if unix_ms is None else unix_ms
        self._start = self._flushed = self._clock()
        self._lock = threading.Lock()
        self._buffer = bytearray()
        self._requests = 0
        plain = b"-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        given = (run or "").encode("utf-8", "surrogatepass").split(b"\0", 1)[0][:64]
        harmless = "".join(chr(byte) if byte in plain else "_" for byte in given)
        self._run = harmless or os.urandom(8).hex()
        self._facts = (
            _text("engine", engine)
            + _text("engine_version", engine_version)
            + _text("model", model)
            + _text("drafter", drafter)
            + _int("draft_depth", draft_depth)
            + _fixed("threshold", threshold, 6)
            + _text("arm", arm)
            + _text("backend", backend)
            + _text("machine", machine)
            + _int("ctx", ctx, 63)
        )
        self.on = True
        with self._lock:
            self._header(self._start)
            self._write()

    def ms(self) -> float:
        """Milliseconds for taking times; 0 while the trace is off."""
        return self._clock() if self.on else 0.0

    def begin(
        self,
        *,
        engine_id: str | None = None,
        workload: str | None = None,
        prompt_id: str | None = None,
        prompt_tokens: int | None = None,
        cached_tokens: int | None = None,
    ) -> Request:
        """Start a request and give it its number."""
        request = Request()
        if self.on:
            fields = (
                _text("engine_id", engine_id)
                + _text("workload", workload)
                + _text("prompt_id", prompt_id)
                + _int("prompt_tokens", prompt_tokens, 63)
                + _int("cached_tokens", cached_tokens, 63)
            )
            self._line("request", fields, begins=request)
        return request

    def token(self, request: Request, token: int) -> None:
        """Count and hash one token of the request's output."""
        if request.id is not None:
            request.hash = token_hash(request.hash, token)
            request.tokens += 1

    def record(
        self,
        request: Request | None,
        *,
        outcome: str | None = None,
        pos: int | None = None,
        path: str | None = None,
        drafted: int | None = None,
        free_checked: int | None = 0,
        free_accepted: int | None = 0,
        verified: int | None = None,
        accepted: int | None = None,
        resampled: int | None = 0,
        emitted: int | None = None,
        truncated: bool | None = False,
        target_forwards: int | None = None,
        replayed: bool | None = None,
        margin: float | None = None,
        threshold: float | None = None,
        draft_token: int | None = None,
        next_token: int | None = None,
        base_ms: float | None = None,
        draft_ms: float | None = None,
        snapshot_ms: float | None = None,
        verify_ms: float | None = None,
        commit_ms: float | None = None,
        decode_ms: float | None = None,
        wall_ms: float | None = None,
    ) -> None:
        """Record one cycle when it is over; `outcome` is one of OUTCOMES, or None."""
        if not self.on:
            return
        self._line(
            "cycle",
            (_int("request", request.id, 63) if request is not None else "")
            + _int("pos", pos, 63)
            + _text("path", path)
            + (_text("outcome", outcome) if outcome in OUTCOMES else "")
            + _int("drafted", drafted)
            + _int("free_checked", free_checked)
            + _int("free_accepted", free_accepted)
            + _int("verified", verified)
            + _int("accepted", accepted)
            + _int("resampled", resampled)
            + _int("emitted", emitted)
            + _bool("truncated", truncated)
            + _int("target_forwards", target_forwards)
            + _bool("replayed", replayed)
            + _fixed("margin", margin, 6)
            + _fixed("threshold", threshold, 6)
            + _int("draft_token", draft_token)
            + _int("next_token", next_token)
            + _fixed("base_ms", base_ms)
            + _fixed("draft_ms", draft_ms)
            + _fixed("snapshot_ms", snapshot_ms)
            + _fixed("verify_ms", verify_ms)
            + _fixed("commit_ms", commit_ms)
            + _fixed("decode_ms", decode_ms)
            + _fixed("wall_ms", wall_ms),
        )

    def end(
        self,
        request: Request,
        *,
        generated_tokens: int | None = None,
        prefill_ms: float | None = None,
        decode_ms: float | None = None,
        finish: str | None = None,
        error: str | None = None,
    ) -> None:
        """End a request and write everything so far; nothing happens when none was begun.

        `generated_tokens` left out becomes the number of tokens given to `token`.
        """
        if not self.on or request.id is None:
            return
        if generated_tokens is None and request.tokens:
            generated_tokens = request.tokens
        self._line(
            "end",
            _int("request", request.id, 63)
            + _int("generated_tokens", generated_tokens, 63)
            + _fixed("prefill_ms", prefill_ms)
            + _fixed("decode_ms", decode_ms)
            + _text("finish", finish)
            + _text("error", error)
            + (f',"output_hash":"fnv1a64:{request.hash:016x}"' if request.tokens else ""),
            ends=True,
        )
        request.id = None

    def close(self) -> None:
        """Write what is left, close the file and leave the trace off."""
        if self._fd < 0:
            return
        if self.on and self._enter():
            self._write()
            self._lock.release()
        self.on = False
        if self._same_file():
            os.close(self._fd)
        self._fd = -1

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _enter(self) -> bool:
        """Take the lock; False, and not taken, when the trace went off meanwhile."""
        if self._pid != os.getpid():
            self._forked()
        self._lock.acquire()
        if not self.on:
            self._lock.release()
        return self.on

    def _forked(self) -> None:
        """In a child after a fork: the lock may be held for ever, and the buffer is the parent's.

        Only the forking thread lives in the child, and it makes the new lock before others start.
        """
        self._pid = self._shown_pid = os.getpid()
        self._lock = threading.Lock()
        self._buffer = bytearray()
        self._headed = False
        self._requests = 0
        now = self._clock()
        self._unix_ms += int(now - self._start)
        self._start = self._flushed = now
        child = f"{self._run}.{self._pid}"
        self._run = child if len(child) < _TOKEN else os.urandom(8).hex()

    def _put(self, kind: str, fields: str, now: float) -> None:
        line = (
            f'{{"tauscope":{FORMAT},"kind":"{kind}","run":"{self._run}"'
            f"{_fixed('t_ms', now - self._start)}{fields}}}\n"
        )
        self._buffer += line.encode()

    def _header(self, now: float) -> None:
        who = _int("pid", self._shown_pid, 63) + _int("unix_ms", self._unix_ms, 63)
        self._put("run", who + self._facts, now)
        self._headed = True

    def _line(
        self, kind: str, fields: str, *, begins: Request | None = None, ends: bool = False
    ) -> None:
        """Add a line, number the request that it begins, and write when it is time."""
        if not self._enter():
            return
        try:
            now = self._clock()
            if not self._headed:
                self._header(now)
            if begins is not None:
                begins.id = self._requests
                self._requests += 1
                fields = _int("request", begins.id, 63) + fields
            self._put(kind, fields, now)
            if ends or now - self._flushed >= 1000 or len(self._buffer) >= _BUFFER:
                self._write()
                self._flushed = now
        finally:
            self._lock.release()

    def _same_file(self) -> bool:
        try:
            file = os.fstat(self._fd)
        except OSError:
            return False
        return (file.st_dev, file.st_ino) == self._file

    def _write(self) -> None:
        """Write whole lines in one call, so that two processes don't cut into each other's."""
        if not self._same_file():  # closed under us, and perhaps another file by now
            self.on = False
        rest = memoryview(bytes(self._buffer))
        self._buffer.clear()
        try:
            while self.on and rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError:
            self.on = False
