"""Logs as streams of bytes: globs, rotated parts, gzip and zstd, standard input."""

from __future__ import annotations

import contextlib
import glob
import gzip
import io
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import zstandard

from tauscope.errors import Problem
from tauscope.ingest.unpack import unzstd

# Large, for between two blocks the reading of lines stands still.
BLOCK = 80 * 1024 * 1024
_PACKED = re.compile(r"\.(gz|zst|zstd)$")
# run.log.2 is older than run.log.1; run.log-20260801 is older than run.log-20260802.
_ROTATED = re.compile(r"^(?P<base>.+?)(?:\.(?P<number>\d{1,4})|-(?P<date>\d{8}(?:-\d+)?))$")
_LOGS = (".log", ".txt", ".err", ".out")
_NEWEST = (1, "")


@dataclass(frozen=True, slots=True)
class Log:
    """One log: its parts in the order in which they were written, and a name to show."""

    name: str
    parts: tuple[Path, ...]

    @property
    def packed_bytes(self) -> int:
        """Size on disk, for progress: compressed parts as they are."""
        return sum(part.stat().st_size for part in self.parts)

    def blocks(self, size: int = BLOCK) -> Iterator[bytes]:
        """The log's bytes, uncompressed, parts joined, in blocks of at most `size`.

        The next block is read while the caller works on this one. Raises Problem where a part
        can't be read or its compression is broken.
        """
        return _ahead(block for part in self.parts for block in _blocks(part, size))


def find(arguments: Sequence[str | Path]) -> list[Log]:
    """The logs that `arguments` (paths and globs) name; rotated parts become one log.

    A number behind a name is an age only where the newest part is among them or the name
    is that of a log: bench.1 and bench.2 are two logs, server.log.1 and .2 are one.

    Raises Problem for a path that doesn't exist or is a folder.
    """
    paths: list[Path] = []
    for argument in map(str, arguments):
        path = Path(argument)
        try:
            if path.exists():
                paths.append(path)
                continue
        except (OSError, ValueError) as error:  # a name too long, or with a NUL in it
            what = getattr(error, "strerror", None) or str(error)
            raise Problem(f"{argument}: no such file ({what}); name a log") from None
        found = sorted(Path(p) for p in glob.glob(argument, recursive=True))
        if not found:
            raise Problem(f"{argument}: no such file; name a log, or - for standard input")
        paths += [p for p in found if not p.is_dir()]
    for path in paths:
        if path.is_dir():
            raise Problem(f"{path}: is a folder; name the logs in it, as in '{path}/*.log'")
    return _joined(list(dict.fromkeys(paths)))


def _joined(paths: Sequence[Path]) -> list[Log]:
    """Parts of one rotation together, oldest first; every other file a log of its own."""
    plain = {path: path.with_name(_PACKED.sub("", path.name)) for path in paths}
    families: dict[Path, list[tuple[tuple[int, str], Path]]] = {}
    for path, name in plain.items():
        match = _ROTATED.match(name.name)
        if not match:
            families.setdefault(name, []).append((_NEWEST, path))
        elif match["number"]:
            age = f"{9999 - int(match['number']):04d}"
            families.setdefault(name.with_name(match["base"]), []).append(((0, age), path))
        else:
            families.setdefault(name.with_name(match["base"]), []).append(
                ((0, match["date"]), path)
            )
    logs = []
    for base, members in families.items():
        members.sort(key=lambda member: member[0])
        if base.suffix not in _LOGS and members[-1][0] != _NEWEST:
            logs += [Log(str(path), (path,)) for _, path in members]
            continue
        parts = tuple(path for _, path in members)
        logs.append(Log(str(base if len(parts) > 1 else parts[0]), parts))
    return logs


def family(name: str) -> str:
    """The name that the parts of one rotation have in common."""
    plain = _PACKED.sub("", name)
    match = _ROTATED.match(plain)
    return match["base"] if match else plain


def _ahead(blocks: Iterator[bytes]) -> Iterator[bytes]:
    with ThreadPoolExecutor(1, "tauscope-reader") as reader:
        coming = reader.submit(next, blocks, b"")
        while block := coming.result():
            coming = reader.submit(next, blocks, b"")
            yield block


def _blocks(path: Path, size: int) -> Iterator[bytes]:
    try:
        with path.open("rb") as handle:
            magic = handle.peek(4)[:4] if isinstance(handle, io.BufferedReader) else b""
            if magic == b"\x28\xb5\x2f\xfd":
                yield from unzstd(handle, size)
                return
            reader: io.BufferedIOBase = handle
            if magic[:2] == b"\x1f\x8b":
                reader = gzip.GzipFile(fileobj=handle)
            while block := reader.read(size):
                yield block
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        what = getattr(error, "strerror", None) or str(error)
        raise Problem(f"{path}: can't be read ({what}); mend the file, import it again") from None


def spool_stdin(folder: Path, name: str) -> Path:
    """Standard input, kept in a file of `folder`: a log is read twice. The caller removes it."""
    path = folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as handle:
            while block := sys.stdin.buffer.read(BLOCK):
                handle.write(block)
    except BaseException as error:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise Problem(
            f"{folder}: standard input can't be kept there ({error.strerror or error}); free "
            "some room or name another store with --traces"
        ) from None
    return path
