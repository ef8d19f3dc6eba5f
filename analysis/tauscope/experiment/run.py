"""The course of an experiment: warm-up, cells in order, pauses, failures, the time budget."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tauscope import store
from tauscope.errors import Problem
from tauscope.experiment import machine
from tauscope.experiment.cell import Desk, Failed, run_cell
from tauscope.experiment.plan import Plan
from tauscope.experiment.schedule import Cell, cells
from tauscope.record import marker
from tauscope.record.engine import Signals

# An arm that has failed so often is stopped; the others go on.
FAILURES = 3
ORDER_FACT = "experiment_order"


class Watcher:
    """Told what happens; this one keeps quiet. A command shows it, a test records it."""

    def begins(self, total: int, done: int) -> None:
        """`done` of `total` cells are in the store already."""

    def starts(self, cell: Cell, warming: bool) -> None:
        """The engine is about to run for `cell`."""

    def ends(self, cell: Cell, seconds: float) -> None:
        """`cell` is committed; it took so long, its pause included."""

    def says(self, text: str) -> None:
        """Something a person should know: a failure, a wait."""


@dataclass(slots=True)
class Result:
    """What became of an experiment. Complete when every cell is in the store."""

    experiment: str
    total: int
    done: int = 0
    stopped: dict[str, str] = field(default_factory=dict)
    """Arm to the text of its last failure."""
    out_of_time: bool = False

    @property
    def complete(self) -> bool:
        return self.done == self.total


def run(plan: Plan, root: Path, watcher: Watcher | None = None) -> Result:
    """Run what is left of `plan` into the store at `root`; what is there already stays.

    Raises Problem when the engine isn't there, the store can't be written, or the same
    experiment is running elsewhere; KeyboardInterrupt passes through, and the next call
    goes on with the cell that was cut short.
    """
    watcher = watcher or Watcher()
    desk = Desk(root, plan.id)
    _check_program(plan)
    try:
        desk.folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(desk.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise Problem(
            f"{root}: can't be written ({error.strerror}); name another store with --traces"
        ) from None
    try:
        if not marker.hold(lock):
            raise Problem(f"{plan.id}: is running already in {root}; wait for it to end")
        _keep_plan(plan, desk)
        with Signals() as signals:
            return _Course(plan, desk, watcher, signals).run()
    finally:
        os.close(lock)


class _Course:
    """One call of `run`."""

    def __init__(self, plan: Plan, desk: Desk, watcher: Watcher, signals: Signals) -> None:
        self.plan, self.desk, self.watcher, self.signals = plan, desk, watcher, signals
        self.todo = cells(plan)
        self.result = Result(plan.id, len(self.todo))
        self.failures: Counter[str] = Counter()
        self.facts = {
            **{f"machine_{name}": value for name, value in machine.facts().items()},
            "experiment_plan": plan.digest,
            "experiment_cells": str(len(self.todo)),
        }
        self.began = time.monotonic()
        self.longest_block = 0.0

    def run(self) -> Result:
        result = self.result
        result.done = sum(self.desk.is_done(cell) for cell in self.todo)
        self.watcher.begins(result.total, result.done)
        if result.complete:
            return result
        self._wait_for_orphan()
        self._warm_up()
        blocks: dict[int, list[Cell]] = {}
        for cell in self.todo:
            blocks.setdefault(cell.block, []).append(cell)
        for block in blocks.values():
            left = [cell for cell in block if self._is_left(cell)]
            if left and self._over_budget():
                result.out_of_time = True
                break
            began = time.monotonic()
            for cell in left:
                self._cell(cell)
            self.longest_block = max(self.longest_block, time.monotonic() - began)
        store.collect_orphans(self.desk.root)
        return result

    def _wait_for_orphan(self) -> None:
        """An engine whose experiment was killed may still run, and would slow the next cell."""
        told = False
        while marker.is_held(self.desk.journal):
            if not told:
                self.watcher.says(
                    "the engine of the cell that was cut short still runs; waiting for its end"
                )
                told = True
            self._pause(0.1)

    def _pause(self, seconds: float) -> None:
        """Wait so long. Raises KeyboardInterrupt when a signal came, now or since the last wait."""
        ends = time.monotonic() + seconds
        while not self.signals.pending and (rest := ends - time.monotonic()) > 0:
            self.signals.wait(rest)
        if self.signals.pending:
            raise KeyboardInterrupt

    def _is_left(self, cell: Cell) -> bool:
        return cell.arm not in self.result.stopped and not self.desk.is_done(cell)

    def _over_budget(self) -> bool:
        """Would one more block, as long as the longest so far, end after the budget?

        Whole blocks only: half of a pair is of no use.
        """
        if self.plan.budget_min is None:
            return False
        spent = time.monotonic() - self.began
        return spent + self.longest_block > 60 * self.plan.budget_min

    def _warm_up(self) -> None:
        """Run each arm that has cells left, on the first prompt, for nobody to count."""
        for _ in range(self.plan.warmup):
            for arm in self.plan.arms:
                first = next((c for c in self.todo if c.arm == arm), None)
                if first and any(c.arm == arm and self._is_left(c) for c in self.todo):
                    self._try(first, None)

    def _cell(self, cell: Cell) -> None:
        """Run one cell, again after a failure, until it is done or its arm is stopped."""
        while self._is_left(cell):
            began = time.monotonic()
            # A pause comes before the run, so that each begins as cool as the others.
            self._pause(self.plan.cooldown_s)
            facts = {
                **self.facts,
                ORDER_FACT: str(cell.order),
                "experiment_repeat": str(cell.repeat),
                **{f"machine_{name}": value for name, value in machine.readings().items()},
            }
            if self._try(cell, facts):
                self.result.done += 1
                self.watcher.ends(cell, time.monotonic() - began)

    def _try(self, cell: Cell, facts: dict[str, str] | None) -> bool:
        if cell.arm in self.result.stopped:
            return False
        self.watcher.starts(cell, warming=facts is None)
        try:
            run_cell(self.desk, self.plan, cell, facts, self.signals)
        except Failed as failure:
            self.failures[cell.arm] += 1
            count = self.failures[cell.arm]
            self.watcher.says(f"{cell.key}: {failure} ({count} of {FAILURES} failures of its arm)")
            if count >= FAILURES:
                self.result.stopped[cell.arm] = str(failure)
                self.watcher.says(
                    f"arm {cell.arm}: stopped after {count} failures; the other arms go on "
                    f"(its logs: {self.desk.failure(cell).parent})"
                )
            return False
        return True


def _keep_plan(plan: Plan, desk: Desk) -> None:
    """The plan as it is run, prompts and all; where this machine has the engine says nothing."""
    said = {k: v for k, v in msgspec.to_builtins(plan).items() if k != "directory"}
    text = msgspec.json.format(msgspec.json.encode(said), indent=2)
    (desk.folder / "plan.json").write_bytes(text + b"\n")


def _check_program(plan: Plan) -> None:
    program = plan.command[0]
    if os.sep in program:
        path = Path(plan.directory) / program
        found = path if path.is_file() and os.access(path, os.X_OK) else None
    else:
        found = shutil.which(program)
    if not found:
        raise Problem(
            f"{program}: no such program in {plan.directory}; set `command` and `directory` in "
            "the plan"
        )
