"""The engine as a child: its switches, its signals, its end. Nothing stands in its way."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from tauscope.errors import Problem

# What makes ds4 print its cycles (it looks whether they are set, not what to).
SWITCHES = ("DS4_MTP_TIMING", "DS4_MTP_CONF_LOG", "DS4_MTP_SPEC_LOG", "DS4_DSPARK_STATS")
TRACE_VARIABLE = "TAUSCOPE_TRACE"
# A terminal sends these to us and to the engine alike.
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
_PASSED_ON = (*_FROM_TERMINAL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_PROMPT_OPTIONS = ("-p", "--prompt", "--prompt-file")


def environment(journal: Path, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """The engine's environment: its log switched on, its native trace sent to `journal`.

    What the user has set stays, a trace file of their own too.
    """
    variables = dict(os.environ if given is None else given)
    for name in SWITCHES:
        variables.setdefault(name, "1")
    variables.setdefault(TRACE_VARIABLE, str(journal))
    return variables


def is_one_shot(command: Sequence[str]) -> bool:
    """Does the command line name the one prompt that the engine is to answer?"""
    return any(
        word in _PROMPT_OPTIONS or word.startswith(("--prompt=", "--prompt-file="))
        for word in command[1:]
    )


def is_server(command: Sequence[str]) -> bool:
    """Is it a server, by its name? Its output is no answer to anything."""
    return "server" in Path(command[0]).name


class Engine:
    """A running engine. Made by `start`; `poll` tells whether it has ended."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        variables: Mapping[str, str],
        *,
        stderr: int,
        stdout: int | None = None,
        cwd: Path | None = None,
        stdin: int | None = None,
    ) -> Engine:
        """Run `command` with its standard error in the open file `stderr`.

        Raises Problem when there is no such program or it can't be run.
        """
        program = command[0]
        if os.sep not in program and shutil.which(program, path=variables.get("PATH")) is None:
            raise Problem(f"{program}: no such program; name the engine after --", code=127)
        try:
            # Our handlers don't go along: exec gives caught signals their default back, and
            # leaves ignored ones ignored, as under nohup.
            process = subprocess.Popen(
                list(command), env=dict(variables), stdin=stdin, stdout=stdout, stderr=stderr,
                cwd=cwd,
            )  # fmt: skip
        except OSError as error:
            code = 127 if isinstance(error, FileNotFoundError) else 126
            raise Problem(
                f"{program}: can't be run ({error.strerror}); name the engine after --", code=code
            ) from None
        return cls(process)

    def poll(self) -> int | None:
        """The exit code, 128 and the signal's number when one killed it; None while it runs."""
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def pass_on(self, number: int) -> None:
        """Send it a signal that we got, unless the terminal has sent it one already."""
        if number in _FROM_TERMINAL and _in_foreground():
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)


def _in_foreground() -> bool:
    """Are we, and the engine with us, what the terminal's keys go to?"""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


class Signals:
    """While it is entered, signals wake `wait` and are kept in `pending` instead of killing us.

    The end of the child wakes it too. Outside the main thread, where Python takes no
    signals, it only waits.
    """

    def __init__(self) -> None:
        self.pending: list[int] = []
        self.resized = False
        self._old: dict[int, object] = {}
        self._wake = threading.Event()

    def __enter__(self) -> Signals:
        if threading.current_thread() is not threading.main_thread():
            return self
        self._read, self._write = os.pipe()
        for end in (self._read, self._write):
            os.set_blocking(end, False)
        self._old_fd = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (*_PASSED_ON, signal.SIGCHLD, signal.SIGWINCH):
            # One that is ignored stays so, for us and for the engine.
            if signal.getsignal(number) is not signal.SIG_IGN or number == signal.SIGCHLD:
                self._old[number] = signal.signal(number, self._caught)
        return self

    def _caught(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGWINCH:
            self.resized = True
        elif number != signal.SIGCHLD:
            self.pending.append(number)

    def wait(self, seconds: float) -> None:
        """Sleep, but not through a signal."""
        if not self._old:
            self._wake.wait(seconds)
            return
        import select

        ready, _, _ = select.select([self._read], [], [], seconds)
        if ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._read, 4096)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        if self._old:
            signal.set_wakeup_fd(self._old_fd)
            os.close(self._read)
            os.close(self._write)
        self._old = {}


def terminal_size() -> tuple[int, int] | None:
    """(columns, lines) of the terminal on standard error; None when it is none."""
    try:
        if not sys.stderr.isatty():
            return None
        size = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):
        return None
    return (size.columns, size.lines) if size.columns > 20 and size.lines > 4 else None
