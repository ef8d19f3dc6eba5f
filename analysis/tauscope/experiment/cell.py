"""One cell: run the engine on one prompt under one arm, then commit all of it in one step.

Nothing of a cell is in the store before its engine has ended well, and its log is named
by the cell. So a kill at any moment leaves the cell done or not begun, never both or half.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import zstandard

from tauscope import store
from tauscope.experiment.plan import Plan, filled
from tauscope.experiment.schedule import Cell
from tauscope.ingest import LogParser
from tauscope.ingest.gather import Rows, says_something
from tauscope.ingest.importer import Labels, apply_labels
from tauscope.record import marker
from tauscope.record.engine import TRACE_VARIABLE, Signals, environment

# The log is parsed in blocks; an engine that is asked to stop gets so many seconds to do it.
BLOCK = 16 << 20
GRACE_S = 10.0


class Failed(Exception):
    """The engine didn't do its part; in words that end a line."""


@dataclass(frozen=True, slots=True)
class Desk:
    """The files of an experiment beside its store's tables."""

    root: Path
    experiment: str

    @property
    def folder(self) -> Path:
        return self.root / "experiments" / self.experiment

    @property
    def journal(self) -> Path:
        """What the running engine says on standard error; locked for as long as it lives."""
        return self.folder / "running.log"

    @property
    def trace(self) -> Path:
        return self.folder / "running.ndjson"

    @property
    def prompt(self) -> Path:
        return self.folder / "prompt.txt"

    @property
    def written(self) -> dict[str, Path]:
        """What the running engine gives out, by the suffix under which it is kept."""
        return {"txt": self.folder / "running.txt", "tokens": self.folder / "running.tokens"}

    def output(self, cell: Cell, suffix: str) -> Path:
        """Where a cell's output is kept: `txt` the text, `tokens` its ids, one a line."""
        return self.folder / "outputs" / f"{cell.log_id(self.experiment)}.{suffix}"

    def failure(self, cell: Cell) -> Path:
        """Where the log of a cell's latest failure is kept."""
        return self.folder / "failed" / f"{cell.log_id(self.experiment)}.log"

    def is_done(self, cell: Cell) -> bool:
        return (self.root / "runs" / f"{cell.log_id(self.experiment)}.parquet").exists()


def run_cell(
    desk: Desk, plan: Plan, cell: Cell, facts: Mapping[str, str] | None, signals: Signals
) -> None:
    """Run `cell`; commit it with `facts` (name to value), or throw it away when they are None.

    Raises Failed when the engine can't be started, fails, takes too long, or logs nothing
    to go by; KeyboardInterrupt when a signal came, with the engine ended.
    """
    desk.prompt.write_text(cell.prompt.text, encoding="utf-8")
    for path in (desk.journal, desk.trace, *desk.written.values()):
        path.unlink(missing_ok=True)
    try:
        _engine(desk, plan, cell, signals)
        if facts is not None:
            _commit(desk, cell, plan, facts)
    except Failed:
        kept = desk.failure(cell)
        kept.parent.mkdir(exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.replace(desk.journal, kept)
        raise


def _engine(desk: Desk, plan: Plan, cell: Cell, signals: Signals) -> None:
    """Start the engine and wait for its end."""
    arm = plan.arms[cell.arm]
    places = {
        "prompt_file": str(desk.prompt),
        "max_tokens": str(plan.max_tokens),
        "tokens_file": str(desk.written["tokens"]),
    }
    command = filled([*plan.command, *arm.arguments], places)
    # A trace file of the caller's own would take the cell's cycles away.
    given = {name: value for name, value in os.environ.items() if name != TRACE_VARIABLE}
    variables = environment(desk.trace, given | arm.environment)
    where = variables.get("PATH")
    if os.sep not in command[0] and shutil.which(command[0], path=where) is None:
        raise Failed(f"{command[0]}: no such program")
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    journal = os.open(desk.journal, flags, 0o666)
    marker.hold(journal)
    try:
        with desk.written["txt"].open("wb") as output:
            engine = subprocess.Popen(
                command, cwd=plan.directory, env=variables, stdin=subprocess.DEVNULL,
                stdout=output, stderr=journal,
            )  # fmt: skip
    except OSError as error:
        raise Failed(f"{command[0]}: can't be run ({error.strerror})") from None
    finally:
        os.close(journal)
    ends = time.monotonic() + plan.timeout_s
    while (code := engine.poll()) is None:
        signals.wait(max(0.0, min(1.0, ends - time.monotonic())))
        if signals.pending:
            _end(engine)
            raise KeyboardInterrupt
        if time.monotonic() >= ends and engine.poll() is None:
            _end(engine)
            raise Failed(f"not done after {plan.timeout_s:g} s")
    if signals.pending:  # a terminal's Ctrl-C reaches the engine too: it has not simply ended
        raise KeyboardInterrupt
    if code:
        how = f"ended with code {code}" if code > 0 else f"was killed by signal {-code}"
        raise Failed(f"the engine {how}{_last_words(desk.journal)}")


def _end(engine: subprocess.Popen[bytes]) -> None:
    engine.terminate()
    try:
        engine.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        engine.kill()
        engine.wait()


def _last_words(journal: Path) -> str:
    """The last line that the engine printed, to go behind what happened to it."""
    size = journal.stat().st_size
    with journal.open("rb") as handle:
        handle.seek(max(0, size - 4096))
        lines = handle.read().decode("utf-8", "replace").split("\n")
    said = [line.strip() for line in lines if line.strip()]
    return f": {said[-1][:200]}" if said else ""


def _commit(desk: Desk, cell: Cell, plan: Plan, facts: Mapping[str, str]) -> None:
    """Parse what the engine logged and make it the cell's run."""
    log_id = cell.log_id(desk.experiment)
    # What is left of a commit that was killed has another name, and is tidied up as an orphan.
    generation = os.urandom(4).hex()
    for source in (desk.trace, desk.journal):
        writer = store.LogWriter(desk.root, log_id, generation)
        rows, digest, size = _parsed(source, writer, plan)
        runs, requests = rows.tables()
        if says_something(runs, requests, rows.cycles):
            break
    else:
        raise Failed("it logged no cycle, request or speed; were the logging switches set?")
    outputs = _keep_output(desk, cell)
    if requests.height == 1 and outputs:
        requests = requests.with_columns(pl.col("output_hash").fill_null(outputs))
    raw = f"raw/{log_id}.log.zst"
    _pack(source, desk.root / raw)
    said = pl.lit(
        [{"name": name, "value": value, "line": None} for name, value in facts.items()],
        dtype=runs.schema["facts"],
    )
    runs = apply_labels(runs, Labels(cell.prompt.workload, cell.arm, cell.prompt.id))
    runs = runs.with_columns(
        pl.lit(log_id).alias("log_id"),
        pl.lit(cell.key).alias("source"),
        pl.lit("record").alias("source_kind"),
        pl.lit("complete").alias("state"),
        pl.lit(False).alias("simulated"),
        pl.lit(desk.experiment).alias("experiment"),
        pl.lit(raw).alias("raw_file"),
        pl.lit(digest).alias("raw_sha256"),
        pl.lit(size, dtype=pl.Int64).alias("raw_bytes"),
        pl.concat_list(pl.col("facts").fill_null([]), said).alias("facts"),
    )
    # One prompt a cell: what the requests say of their labels is the cell's to say.
    requests = requests.with_columns(
        pl.lit(None, pl.String).alias(name) for name in ("workload", "prompt_id")
    )
    writer.commit(runs, requests)


def _parsed(source: Path, writer: store.LogWriter, plan: Plan) -> tuple[Rows, str, int]:
    """(rows, sha256, bytes) of one log; its cycles are written as parts that nothing names yet."""
    parser = LogParser(log_id=writer.log_id, max_tokens=plan.max_tokens)
    rows, digest, size = Rows(), hashlib.sha256(), 0
    if source.exists():
        with source.open("rb") as handle:
            while block := handle.read(BLOCK):
                digest.update(block)
                size += len(block)
                rows.take(parser.feed(block), writer)
    rows.take(parser.finish(), writer)
    return rows, digest.hexdigest(), size


def _keep_output(desk: Desk, cell: Cell) -> str | None:
    """Move what the engine gave out to where it is kept; the hash of the text."""
    first = desk.output(cell, "txt")
    first.parent.mkdir(exist_ok=True)
    digest = None
    for suffix, path in desk.written.items():
        if path.exists():
            if suffix == "txt":
                digest = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
            os.replace(path, desk.output(cell, suffix))
    return digest


def _pack(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    with source.open("rb") as reader, part.open("wb") as writer:
        zstandard.ZstdCompressor(level=10).copy_stream(reader, writer)
    os.replace(part, target)
