"""Run notebooks in kernels of their own, several at a time, whatever they do."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from tauscope.batch.params import Page

CELL_TIMEOUT_S = 900
# A kernel starts within seconds; one that doesn't never will.
START_S = 60
# A kernel with DuckDB and Polars at work on a large store; small ones take 0.3 GB.
KERNEL_BYTES = 10**9


@dataclass(frozen=True, slots=True)
class Done:
    """How a page's notebook ended: its executed file, seconds, and the error if there was one."""

    page: Page
    notebook: Path
    seconds: float
    error: str = ""
    trace: str = ""


def workers(pages: int) -> int:
    """How many kernels at a time: the cores this process may use, as their memory allows."""
    import psutil

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    free = psutil.virtual_memory().available
    limit, used = (_cgroup(name) for name in ("memory.max", "memory.current"))
    if limit is not None:
        free = min(free, max(0, limit - (used or 0)))
    return max(1, min(pages, cores or 1, free // KERNEL_BYTES))


def _cgroup(name: str) -> int | None:
    try:
        return int(Path("/sys/fs/cgroup", name).read_text())
    except (OSError, ValueError):
        return None


def run(
    pages: Sequence[tuple[Page, Mapping[str, Any]]],
    folder: Path,
    done: Callable[[Done], None],
    cell_timeout_s: float = CELL_TIMEOUT_S,
) -> None:
    """Execute each page's notebook with its values; call `done` as each ends, in this thread.

    Executed notebooks go to `folder`/<slug>.ipynb, those that failed too. Threads, not
    processes: kernels started from several processes race for ports.
    """
    # The python3 of this very environment, not one that a user installed elsewhere.
    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")
    import papermill  # noqa: F401  (once, before the threads)

    pool = ThreadPoolExecutor(workers(len(pages)))
    try:
        futures = [pool.submit(_one, page, values, folder, cell_timeout_s)
                   for page, values in pages]  # fmt: skip
        for future in as_completed(futures):
            done(future.result())
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        _stop_kernels()
        raise
    pool.shutdown()


def _one(page: Page, values: Mapping[str, Any], folder: Path, cell_timeout_s: float) -> Done:
    target = folder / f"{page.slug}.ipynb"
    began = monotonic()
    error = trace = ""
    try:
        try:
            _execute(page, values, target, cell_timeout_s)
        except RuntimeError as problem:
            # Another program took a port that the kernel was promised; no cell has run.
            if "Kernel didn't respond" not in str(problem):
                raise
            _execute(page, values, target, cell_timeout_s)
        error, trace = _left_open(target)
    except Exception as problem:
        # Also a kernel that died and a cell that ran out of time, which are no errors of
        # papermill's own kind.
        error, trace = _said(problem), "".join(traceback.format_exception(problem))
    return Done(page, target, monotonic() - began, error, trace)


def _execute(page: Page, values: Mapping[str, Any], target: Path, cell_timeout_s: float) -> None:
    import papermill

    papermill.execute_notebook(
        # Braces in a path are format fields to papermill.
        _no_fields(page.source.path), _no_fields(target), parameters=dict(values),
        kernel_name="python3", progress_bar=False, log_output=False,
        execution_timeout=cell_timeout_s, start_timeout=START_S,
        extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
    )  # fmt: skip


def _no_fields(path: Path) -> str:
    return str(path).replace("{", "{{").replace("}", "}}")


def _left_open(path: Path) -> tuple[str, str]:
    """The error that papermill let pass: a cell that ended the kernel, or never ran."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [c for c in notebook["cells"] if c["cell_type"] == "code" and "".join(c["source"])]
    for cell in cells:
        for output in cell["outputs"]:
            if output["output_type"] == "error":
                text = f"{output['ename']}: {output['evalue']}".strip(": ")
                return text, "\n".join(output["traceback"])
    if any(cell["execution_count"] is None for cell in cells):
        return "some cells never ran", ""
    return "", ""


def _said(problem: Exception) -> str:
    kinds = {"DeadKernelError": "the kernel died", "CellTimeoutError": "a cell ran out of time"}
    name = type(problem).__name__
    if name in kinds:
        return kinds[name]
    found = getattr(problem, "ename", None)
    if found:
        return f"{found}: {problem.evalue}"
    lines = [line for line in str(problem).splitlines() if line.strip()]
    return f"{name}: {lines[-1] if lines else ''}"


def _stop_kernels() -> None:
    """End the kernels that this process started, so that an interrupted report leaves none."""
    import psutil

    for child in psutil.Process().children(recursive=True):
        try:
            if any("ipykernel" in part for part in child.cmdline()):
                child.kill()
        except psutil.Error:
            continue
