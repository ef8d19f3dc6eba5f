"""Builds the drafter's static table from text of the Python standard library.

    python -m engine.table

What is counted: the reference topics that `help()` prints (English prose on a technical
matter) and the source of some modules. The table is committed, for another version of
Python has other text and would draft otherwise.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path

import numpy as np

from engine.drafter import OTHERS, TABLE
from engine.llama import Llama, bundled

MODULES = (
    "argparse", "ast", "bisect", "calendar", "collections", "configparser", "contextlib", "copy",
    "csv", "dataclasses", "datetime", "difflib", "email.message", "enum", "fractions",
    "functools", "heapq", "http.client", "inspect", "json.decoder", "json.encoder", "logging",
    "pathlib", "random", "shutil", "statistics", "string", "subprocess", "tempfile", "textwrap",
    "threading", "typing", "unittest.case", "urllib.parse", "zipfile",
)  # fmt: skip
LEAST = 3  # sightings of what is kept
WIDEST = 6  # successors kept of a context


def sources() -> list[str]:
    """The texts that are counted."""
    from pydoc_data.topics import topics

    texts = [topics[name] for name in sorted(topics)]
    for name in MODULES:
        found = importlib.util.find_spec(name)
        if found and found.origin:
            texts.append(Path(found.origin).read_text(encoding="utf-8"))
    return texts


def build(texts: list[list[int]]) -> np.ndarray:
    """Rows of the table, int32 (n, 4): two tokens of context or -1, successor, count."""
    after: dict[tuple[int, int], Counter[int]] = {}
    for text in texts:
        for place, token in enumerate(text):
            one = text[place - 1] if place else -1
            two = text[place - 2] if place > 1 else -1
            for context in {(-1, -1), (-1, one), (two, one)}:
                after.setdefault(context, Counter())[token] += 1
    rows = []
    for (first, second), counts in sorted(after.items()):
        kept = [pair for pair in counts.most_common(WIDEST) if pair[1] >= LEAST]
        if not kept:
            continue
        rows += [(first, second, token, count) for token, count in sorted(kept)]
        rest = counts.total() - sum(count for _, count in kept)
        rows.append((first, second, OTHERS, rest))
    return np.array(rows, dtype=np.int32)


def main() -> None:
    model = Llama(bundled(), threads=1)
    rows = build([model.tokens(text) for text in sources()])
    np.savez_compressed(TABLE, rows=rows)
    print(f"{TABLE}: {len(rows)} rows, {TABLE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
