"""Where the clone, its stores and its reports are, resolved once to absolute paths."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tauscope.errors import Problem


def clone() -> Path | None:
    """The project's folder, or None when only a wheel is installed."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / "notebooks").is_dir() and (root / "traces").is_dir() else None


def bundled() -> list[Path]:
    """Stores that come with the clone, real ones first."""
    root = clone()
    if root is None:
        return []
    return [p for p in (root / "traces" / "recorded", root / "traces" / "sample") if is_store(p)]


def is_store(path: Path) -> bool:
    return (path / "runs").is_dir()


def to_read(traces: Sequence[str | Path] | None = None) -> tuple[list[Path], str]:
    """Stores to read and where the choice came from, in words.

    The order: `traces`, then $TAUSCOPE_TRACES, then traces/store of the clone, then
    the bundled ones. Raises Problem when a named store is not one.
    """
    if traces:
        return [_store(path) for path in traces], "--traces"
    named = os.environ.get("TAUSCOPE_TRACES")
    if named:
        return [_store(path) for path in named.split(os.pathsep) if path], "$TAUSCOPE_TRACES"
    root = clone()
    if root is not None and is_store(root / "traces" / "store"):
        return [root / "traces" / "store"], "traces/store"
    stores = bundled()
    if not stores:
        raise Problem(
            "no store found: this is an installation without the clone's data; "
            "name one with --traces DIR or $TAUSCOPE_TRACES"
        )
    return stores, "the bundled traces"


def to_write(traces: str | Path | None = None) -> Path:
    """The one store that a command writes to; it need not exist yet.

    Raises Problem when the path is a file, or when several are named.
    """
    if traces is None:
        named = [p for p in os.environ.get("TAUSCOPE_TRACES", "").split(os.pathsep) if p]
        if len(named) > 1:
            raise Problem(
                "$TAUSCOPE_TRACES names several stores; say which to write to with --traces DIR"
            )
        root = clone()
        if named:
            traces = named[0]
        elif root is not None:
            traces = root / "traces" / "store"
        else:
            raise Problem("no store to write to; name one with --traces DIR")
    path = _absolute(traces)
    if path.exists() and not path.is_dir():
        raise Problem(f"{path}: is a file, not a store; name a folder with --traces")
    return path


def _absolute(path: str | Path) -> Path:
    """`path` as it is. Raises Problem where the system can't even look it up."""
    try:
        found = Path(path).expanduser().absolute()
        found.exists()
    except (OSError, RuntimeError, ValueError) as error:
        what = getattr(error, "strerror", None) or str(error)
        raise Problem(f"{path}: no store can be there ({what}); name a folder") from None
    return found


def _store(path: str | Path) -> Path:
    root = _absolute(path)
    if not root.is_dir():
        raise Problem(f"{root}: no such store; make one with tauscope import LOG --traces {root}")
    try:
        filled = any(root.iterdir())
    except OSError as error:
        raise Problem(f"{root}: can't be read ({error.strerror}); name another store") from None
    if not is_store(root) and filled:
        raise Problem(f"{root}: is a folder but no store (it has no runs/); name a store's folder")
    return root
