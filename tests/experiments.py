"""Plans for tests, run on the fake engine."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import polars as pl

from tauscope import schema

ENGINE = Path(__file__).with_name("fake_engine.py")
EASY = ("agent", "code", "technical")


def write_plan(
    path: Path, prompts: int, arms: dict[str, list[str]], workloads: tuple[str, ...], **keys: object
) -> Path:
    """A plan file of so many prompts a workload; `keys` are more of the plan's own."""
    command = [sys.executable, str(ENGINE), "--prompt-file", "{prompt_file}"]
    keys = {"name": "test", "command": command, "warmup": 0, **keys}
    lines = [f"{name} = {json.dumps(value)}" for name, value in keys.items()]
    for arm, arguments in arms.items():
        lines += [f"[arms.{json.dumps(arm)}]", f"arguments = {json.dumps(arguments)}"]
    for workload in workloads:
        for number in range(prompts):
            text = f"{workload} {number} {'easy' if workload in EASY else 'hard'}"
            lines += ["[[prompt]]", f'id = "{workload}-{number}"', f'workload = "{workload}"',
                      f"text = {json.dumps(text)}"]  # fmt: skip
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def environment() -> dict[str, str]:
    """Ours, with the library where a child finds it."""
    library = str(Path(schema.__file__).parents[1])
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TAUSCOPE_")}
    return kept | {"PYTHONPATH": library}


def cells(root: Path) -> pl.DataFrame:
    """One row a run: run_id, key (workload/prompt/arm), place, cycles committed, tokens."""
    from tauscope.catalog import Catalog

    return Catalog([root]).query(
        """
        SELECT run_id, r.workload || '/' || r.prompt_id || '/' || r.arm AS key, r.state,
               MAX(CASE WHEN f.name = 'experiment_order' THEN f.value::BIGINT END) AS place,
               ANY_VALUE(c.cycles) AS cycles, ANY_VALUE(c.emitted) AS emitted
        FROM runs AS r
        LEFT JOIN facts AS f USING (run_id)
        LEFT JOIN (SELECT run_id, COUNT(*) AS cycles, SUM(emitted) AS emitted
                   FROM cycles GROUP BY run_id) AS c USING (run_id)
        GROUP BY ALL ORDER BY place
        """
    )
