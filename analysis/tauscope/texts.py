"""The SQL files, read once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

from tauscope.errors import Problem


@cache
def sql_text(name: str) -> str:
    """The text of sql/<name>.sql. Raises Problem for a name that doesn't exist."""
    path = resources.files("tauscope") / "sql" / f"{name}.sql"
    if not path.is_file():
        raise Problem(f"{name}: no query of that name; see analysis/tauscope/sql/")
    text = path.read_text(encoding="utf-8")
    if "{measures}" in text and name != "measures":
        text = text.replace("{measures}", re.sub(r"(?m)^--.*\n", "", sql_text("measures")).strip())
    return text


def filled(name: str, parts: Mapping[str, str]) -> str:
    """The text of sql/<name>.sql, without its opening comment, with `parts` at {their names}.

    All in one go: braces within a part, which may be a user's condition, are left alone.
    """
    text = re.sub(r"\A(?:--.*\n)+", "", sql_text(name)).strip()
    return re.sub(r"\{(\w+)\}", lambda place: parts.get(place[1], place[0]), text)
