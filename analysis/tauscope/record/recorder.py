"""The recorder: starts an engine, follows its journal, commits what it logs while it runs."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tauscope import labels as labelling
from tauscope import store
from tauscope.errors import Problem
from tauscope.record import marker as markers
from tauscope.record.engine import (
    Engine,
    Signals,
    environment,
    is_one_shot,
    is_server,
    terminal_size,
)
from tauscope.record.finish import complete, reason, tidy
from tauscope.record.journal import BLOCK, Journal, output_of
from tauscope.record.live import Gauge
from tauscope.record.marker import Marker
from tauscope.record.mirror import Mirror, Whole, WithoutTrace
from tauscope.record.take import Take, Totals

# How often the journal is looked at, and how often what it holds is committed, in seconds.
LOOK_S = 0.02
COMMIT_S = 1.0
SYNC_S = 1.0
# So many bytes are parsed at once, without waiting for the next commit.
PARSE_BYTES = 4 << 20
# A journal is packed when so much is new in it, or so long has passed; not more often than that.
ROLL_BYTES, ROLL_S, ROLL_PAUSE_S = 64 << 20, 900.0, 10.0
# After a failure (mostly a full disk) the take starts anew when so long has passed.
RETRY_S = 30.0


@dataclass(slots=True)
class Wish:
    """What is to be recorded, and how it is labelled."""

    command: Sequence[str]
    workload: str | None = None
    arm: str | None = None
    prompt_id: str | None = None
    experiment: str | None = None
    tokens: int | None = None
    max_tokens: int | None = None
    rules: labelling.Rules | None = None
    keep_output: bool = False
    # None takes ours; the logging switches are added to either.
    variables: Mapping[str, str] | None = None
    cwd: Path | None = None
    stdin: int | None = None
    # Show what the engine writes; with `status`, and a live line on a terminal.
    mirrored: bool = True
    status: bool = True
    # Give way to the engine once it runs: for a process that does nothing but record.
    modest: bool = False


@dataclass(slots=True)
class Recorded:
    """What became of it. `log_id` is None when nothing was committed; `notes` say why."""

    code: int
    log_id: str | None
    totals: Totals
    notes: list[str] = field(default_factory=list)
    # The kept output, when that was asked for.
    output: Path | None = None
    # Signals that came to us and were passed on: SIGINT among them is the user's Ctrl-C.
    signals: list[int] = field(default_factory=list)


def record(root: Path, wish: Wish) -> Recorded:
    """Run `wish.command` as a child and record it into the store at `root`.

    Returns when the engine has ended; its exit code is `code`, 128 and the signal's number
    when a signal killed it. Raises Problem when it can't be started or the store can't be
    written at all; once it runs, nothing is raised for what happens to the store.
    """
    log_id = uuid.uuid4().hex[:12]
    try:
        for room in (*store.ROOMS, markers.ROOM):
            (root / room).mkdir(parents=True, exist_ok=True)
        lock = markers.lock_path(root, log_id).open("wb")
    except OSError as error:
        raise _unwritable(root, error) from None
    with lock:
        markers.hold(lock)
        recording = _Recording(root, wish, log_id)
        try:
            recording.start()
        except OSError as error:
            recording.forget()
            raise _unwritable(root, error) from None
        except Problem:
            recording.forget()
            raise
        return recording.run()


def _unwritable(root: Path, error: OSError) -> Problem:
    return Problem(
        f"{root}: can't be written ({error.strerror or error}); free some room or name another "
        "store with --traces"
    )


class _Recording:
    """One recording while it goes on."""

    def __init__(self, root: Path, wish: Wish, log_id: str) -> None:
        self.root = root
        self.wish = wish
        self.marker = Marker(
            log_id=log_id,
            source=Path(wish.command[0]).name,
            workload=wish.workload,
            arm=wish.arm,
            prompt_id=wish.prompt_id,
            experiment=wish.experiment,
            tokens=wish.tokens,
            max_tokens=wish.max_tokens,
            rules=msgspec.to_builtins(wish.rules.rule) if wish.rules else [],
            keep_output=wish.keep_output,
            recorder_pid=os.getpid(),
            started_unix_ms=time.time_ns() // 1_000_000,
        )
        self.gauge = Gauge()
        self.notes: list[str] = []
        self.passed_on: list[int] = []
        self.take: Take | None = None
        self.mirrors: list[Mirror] = []
        self.output: Path | None = None
        self._said = False
        self._told_truncated = False
        self._again_at = 0.0
        self._ended = threading.Event()

    def start(self) -> None:
        """Write the marker, make the journal, start the engine. Raises OSError or Problem."""
        markers.save(self.root, self.marker)
        self.journal = Journal(self.root, self.marker)
        variables = environment(self.journal.path, self.wish.variables)
        descriptor = self.journal.create()
        output = -1
        try:
            if self._keeps_output():
                self.output = output_of(self.root, self.marker.log_id)
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                output = os.open(self.output, flags, 0o666)
            self.take = Take(self.root, self.marker, live=True)
            self.signals = Signals()
            self.signals.__enter__()
            try:
                self.began = time.monotonic()
                self.engine = Engine.start(
                    self.wish.command, variables, stderr=descriptor,
                    stdout=output if output >= 0 else None,
                    cwd=self.wish.cwd, stdin=self.wish.stdin,
                )  # fmt: skip
            except BaseException:
                self.signals.__exit__()
                raise
        finally:
            os.close(descriptor)
            if output >= 0:
                os.close(output)
        if self.wish.modest:
            os.nice(5)
        self.marker.engine_pid = self.engine.pid
        with contextlib.suppress(OSError):  # it only makes a later message better
            markers.save(self.root, self.marker)

    def forget(self) -> None:
        """Take back what `start` made, when no engine came of it."""
        output_of(self.root, self.marker.log_id).unlink(missing_ok=True)
        tidy(self.root, self.marker)

    def _keeps_output(self) -> bool:
        """Does standard output go through a file, to be hashed?

        A terminal is left to the engine (its line editor and colours ask for one), unless
        the command line holds the prompt: then text is all that comes.
        """
        command = self.wish.command
        if self.wish.keep_output or is_server(command):
            return self.wish.keep_output
        return is_one_shot(command) or not (sys.stdout and sys.stdout.isatty())

    def run(self) -> Recorded:
        """Follow until the engine ends, then finish."""
        syncing = threading.Thread(target=self._sync, daemon=True, name="sync")
        syncing.start()
        try:
            if self.wish.mirrored:
                self._mirror()
            code = self._follow()
            self._ended.set()
            return self._finish(code)
        finally:
            for mirror in self.mirrors:
                mirror.finish()
            self.signals.__exit__()
            self.journal.close()

    def _mirror(self) -> None:
        status = self.wish.status and terminal_size() is not None
        shown = Journal(self.root, self.marker)
        shown.size()  # opened now: at the end of a short run its name goes
        self.mirrors.append(Mirror(WithoutTrace(shown.read), 2, status=status))
        if self.output:
            descriptor = os.open(self.output, os.O_RDONLY | os.O_CLOEXEC)
            self.mirrors.append(Mirror(Whole(lambda at, size: os.pread(descriptor, size, at)), 1))

    def _follow(self) -> int:
        """Look, parse, commit, roll; returns the engine's exit code."""
        committed, pause, rolled = self.began, COMMIT_S, self.began
        dirty, end = True, 0
        while True:
            code = self.engine.poll()
            if code is not None and not end:
                # What others go on writing after the engine's end is not waited for.
                end = (self.take.journal if self.take else self.journal).size() + 1
            for number in self._signals():
                self.passed_on.append(number)
                self.engine.pass_on(number)
            now = time.monotonic()
            got = self._look(now)
            dirty |= got > 0
            if code is not None and (not got or self._offset() >= end - 1):
                return code
            if now - committed >= pause:
                if dirty:
                    self._step(now)
                    dirty = False
                    # A commit that takes long (many requests) comes less often.
                    pause = max(COMMIT_S, 4 * (time.monotonic() - now))
                committed = now
                self._show(now)
            if now - rolled >= (ROLL_PAUSE_S if self._is_long() else ROLL_S):
                rolled = now
                self._roll()
            if got < BLOCK:
                self.signals.wait(LOOK_S)

    def _offset(self) -> int:
        return self.take.offset if self.take else sys.maxsize

    def _is_long(self) -> bool:
        return self.take is not None and self.take.unpacked() >= ROLL_BYTES

    def _signals(self) -> list[int]:
        if self.signals.resized:
            self.signals.resized = False
            for mirror in self.mirrors:
                mirror.resized()
        pending, self.signals.pending = self.signals.pending, []
        return pending

    def _look(self, now: float) -> int:
        """Take in what is new; without a take only learn that there is something."""
        if self.take is None:
            if now >= self._again_at:
                self._anew()
            return 0
        try:
            got = self.take.look(now - self.began)
            self._tell_truncated()
            if self.take.waiting_bytes >= PARSE_BYTES:
                self.gauge.take(self.take.parse(), now)
        except Exception as error:  # whatever it is: the engine and its journal go first
            self._fail(error, now)
            return 0
        return got

    def _step(self, now: float) -> None:
        """Parse and commit."""
        if self.take is None:
            return
        try:
            self.gauge.take(self.take.parse(), now)
            self.take.commit("recording")
            self.take.settle()
        except Exception as error:  # whatever it is: the engine and its journal go first
            self._fail(error, now)

    def _show(self, now: float) -> None:
        size = terminal_size()
        for mirror in self.mirrors[:1] if size else []:
            mirror.show(self.gauge.line(now, size[0] - 1))

    def _fail(self, error: Exception, now: float) -> None:
        """The store can't be written: say so once, leave the engine and its journal alone."""
        self._again_at = now + RETRY_S
        if self.take:
            self.take.close()
        self.take = None
        if not self._said:
            self._said = True
            self._say(
                f"{self.root}: cycles can't be committed ({reason(error)}); the engine goes on "
                "and its journal is kept: free some room"
            )

    def _tell_truncated(self) -> None:
        if self.marker.truncated and not self._told_truncated:
            self._told_truncated = True
            self._say(
                f"{self.marker.log_id}: the engine truncated its own log (a `> /dev/stderr`?); "
                "what it wrote between two looks may be lost, recording goes on: let it write "
                "to >&2 or >> /dev/stderr"
            )

    def _say(self, text: str) -> None:
        if self.mirrors:
            self.mirrors[0].say(text)
        else:
            self.notes.append(text)

    def _anew(self) -> None:
        """Start over with the journal's first byte, after a failure."""
        began = time.monotonic()
        try:
            self.take = Take(self.root, self.marker)
            self.take.replay()
            self.take.commit("recording")
        except Exception:  # said before; the journal is still there
            if self.take:
                self.take.close()
            self.take = None
        # A long journal is read again less often.
        now = time.monotonic()
        self._again_at = now + max(RETRY_S, 10 * (now - began))

    def _roll(self) -> None:
        """Pack what is parsed. Its room is given back one roll later: a reader may be on it."""
        if self.take is None:
            return
        before = min([self.marker.archived, *(mirror.offset for mirror in self.mirrors[:1])])
        with contextlib.suppress(OSError, Problem):
            self.take.pack()
            self.journal.hollow(before)
            store.collect_orphans(self.root)

    def _sync(self) -> None:
        """Once a second, what was journaled goes to the disk: a power cut loses no more."""
        own, synced = Journal(self.root, self.marker), 0
        while not self._ended.wait(SYNC_S):
            with contextlib.suppress(OSError):
                if (size := own.size()) != synced:
                    own.sync()
                    synced = size
        own.close()

    def _finish(self, code: int) -> Recorded:
        """The engine has ended: commit the rest, pack the journal, drop the marker."""
        done = Recorded(code, self.marker.log_id, Totals(0, 0, []), self.notes)
        done.signals = self.passed_on
        done.output = self.output if self.wish.keep_output else None
        try:
            if self.take is None:
                self.take = Take(self.root, self.marker)
                self.take.replay()
            totals = complete(self.take, "complete", self.notes)
            self._tell_truncated()
        except Exception as error:  # the journal is kept, whatever it is
            self.notes.append(
                f"{self.root}: the end of log {self.marker.log_id} is not committed "
                f"({reason(error)}); its journal is kept, and the next command on the store "
                "commits it"
            )
            return done
        if totals is None:
            done.log_id = None
        else:
            done.totals = totals
        return done
