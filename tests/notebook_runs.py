"""Run a notebook's cells in this process: quick, and it leaves what papermill would."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def notebook_path(name: str) -> Path:
    return ROOT / "notebooks" / f"{name}.ipynb"


def executed(name: str, **parameters: Any) -> dict[str, Any]:
    """The notebook as a dict with outputs, its parameters replaced by `parameters`.

    Raises whatever a cell raises.
    """
    notebook = json.loads(notebook_path(name).read_text(encoding="utf-8"))
    space: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        shown = _run("".join(cell["source"]), space)
        if "parameters" in cell["metadata"].get("tags", ()):
            unknown = set(parameters) - set(space)
            assert not unknown, f"{name} has no parameter {unknown}"
            space.update(parameters)
        cell["outputs"] = [] if shown is None else [_output(shown)]
    return notebook


def _run(source: str, space: dict[str, Any]) -> Any:
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    if last is not None:
        tree.body.pop()
    exec(compile(tree, "cell", "exec"), space)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), space)


def _output(value: Any) -> dict[str, Any]:
    bundle = getattr(value, "_repr_mimebundle_", None)
    data = bundle(include=None, exclude=None) if bundle else None
    if isinstance(data, tuple):
        data = data[0]
    if data is None:
        data = {"text/plain": repr(value)}
        html = getattr(value, "_repr_html_", None)
        if html:
            data["text/html"] = html()
    # Through JSON, as between a kernel and papermill.
    return {"output_type": "execute_result", "data": json.loads(json.dumps(data)), "metadata": {}}


def texts(notebook: dict[str, Any]) -> list[str]:
    """The plain text of every output, in order."""
    return [
        output["data"]["text/plain"]
        for cell in notebook["cells"]
        for output in cell.get("outputs", ())
    ]
