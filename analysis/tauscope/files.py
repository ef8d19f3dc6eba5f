"""Result files: whole under their name, or not there at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tauscope.errors import Problem


def write_whole(path: Path, content: bytes) -> None:
    """Write `content` to `path` in one step. Raises Problem when that can't be done."""
    if not path.name or path.is_dir():
        raise Problem(f"{path}: is a folder; name a file that can be written")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except OSError as error:
        raise Problem(f"{path}: {error.strerror}; name a file that can be written") from None
    finally:
        with contextlib.suppress(OSError):  # its folder isn't one: said above
            part.unlink(missing_ok=True)
