"""A routing policy as a file: decisions, and the evidence that they rest on."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from tauscope import __version__, catalog
from tauscope.economics.routing import GROUP, Blend
from tauscope.errors import Problem

FORMAT = 1
_KEPT = (
    "decision", "send_to", "basis", "verdict", "reasons", "why", "speedup", "speedup_lo",
    "speedup_hi", "modelled", "modelled_lo", "modelled_hi", "base_ms_per_token", "ms_per_token",
    "clusters", "saved_s", "saved_s_lo", "saved_s_hi",
)  # fmt: skip


def document(
    data: catalog.Catalog, rows: pl.DataFrame, where: Mapping[str, Any], blend: Blend | None
) -> dict[str, Any]:
    """The policy of one group of routing.table: what to do with which label, and why.

    Raises Problem when `rows` are of several machines, models or experiments, or none.
    """
    groups = rows.select(*GROUP, "arm").unique()
    if groups.height != 1:
        what = "no treated arm" if groups.is_empty() else "several machines, models or experiments"
        raise Problem(f"--policy: {what} in this selection; pick one with --where")
    group = groups.row(0, named=True)
    condition, params = catalog.selection({**where, **{name: group[name] for name in GROUP}})
    text = catalog.sql_text("evidence_runs").replace("{where}", condition)
    runs = data.run(text, "evidence_runs", params)
    return {
        "format": FORMAT,
        "made": datetime.now(UTC).replace(microsecond=0).isoformat(),
        "tauscope": __version__,
        "intervals": "95 %, over prompts",
        "arm": group["arm"],
        **{name: group[name] for name in GROUP},
        "unlabelled": "undecided",
        "workloads": {
            row["workload"]: {name: row[name] for name in _KEPT}
            for row in rows.iter_rows(named=True)
        },
        **({"blend": blend.to_dict()} if blend else {}),
        "runs": runs.to_dicts(),
    }  # fmt: skip


def encoded(policy: Mapping[str, Any], path: Path) -> bytes:
    """The policy as TOML or JSON, by the end of `path`. Raises Problem for another end."""
    if path.suffix == ".json":
        return (json.dumps(policy, ensure_ascii=False, indent=2, default=str) + "\n").encode()
    if path.suffix == ".toml":
        return ("\n".join(_toml(policy, ())) + "\n").encode()
    raise Problem(f"{path}: end the policy's name in .toml or .json", code=2)


def _toml(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    """Lines of a TOML table: values first, then tables. What is unknown (null) is left out."""
    plain = {k: v for k, v in table.items() if not _nested(v) and v is not None}
    lines = [f"{_quoted(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        inner = (*path, key)
        name = ".".join(_quoted(part) for part in inner)
        if isinstance(value, Mapping):
            lines += ["", f"[{name}]", *_toml(value, inner)]
        elif _nested(value):
            for item in value:
                lines += ["", f"[[{name}]]", *_toml(item, inner)]
    return lines


def _nested(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)
    )


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else "nan"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(item) for item in value if item is not None)}]"
    return _quoted(str(value))


def _quoted(text: str) -> str:
    """A TOML basic string: as in JSON, and the delete mark escaped too."""
    text = text.encode("utf-8", "replace").decode("utf-8")  # no lone surrogates in TOML
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
