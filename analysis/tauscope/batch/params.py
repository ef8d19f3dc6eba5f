"""Which notebooks to run and with what, checked before anything runs.

papermill itself runs a notebook with its defaults when a parameter's name is misspelt.
"""

from __future__ import annotations

import ast
import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tauscope import places
from tauscope.errors import Problem

# What the batch gives every notebook that declares it: the stores, and what named them. No one
# types them with -p.
TRACES, CHOSEN_BY = "traces", "chosen_by"
GIVEN = {TRACES, CHOSEN_BY}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One declared parameter: its type by annotation or by its default, and its comment."""

    name: str
    type: str
    default: Any
    about: str


@dataclass(frozen=True, slots=True)
class Source:
    """A notebook with the parameters it declares."""

    name: str
    path: Path
    parameters: dict[str, Parameter]


@dataclass(frozen=True, slots=True)
class Page:
    """One page to make: a notebook and the values it runs with."""

    slug: str
    source: Source
    values: dict[str, Any] = field(default_factory=dict)
    each: str = ""
    """The column of --each whose value this page is about, or nothing."""


def find(names: Sequence[str]) -> list[Source]:
    """Notebooks by name or path; none named: all of the clone's, workloads first.

    Raises Problem for one that isn't there or is no notebook.
    """
    root = places.clone()
    folder = root / "notebooks" if root else None
    paths = {p.stem: p for p in sorted(folder.glob("*.ipynb"))} if folder else {}
    if not names:
        if not paths:
            raise Problem("no notebooks here: this is an installation without the clone; "
                          "name one with --notebook FILE.ipynb")  # fmt: skip
        order = sorted(paths, key=lambda name: (name != "workloads", name))
        return [_read(name, paths[name]) for name in order]
    chosen = {}
    for name in names:
        path = paths.get(name.removesuffix(".ipynb"))
        if path is None and name.endswith(".ipynb"):
            path = Path(name).expanduser().absolute()
        if path is None or not path.is_file():
            have = words_of(paths)
            raise Problem(f"{name}: no such notebook; name one of {have}, or a file.ipynb")
        chosen[path] = _read(path.stem, path)
    return list(chosen.values())


def words_of(names: Mapping[str, Any] | Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _read(name: str, path: Path) -> Source:
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Problem(f"{path}: not a notebook ({error}); save it again in JupyterLab") from error
    import papermill

    found = papermill.inspect_notebook(str(path).replace("{", "{{").replace("}", "}}"))
    defaults = _literals(cells)
    parameters = {}
    for key, about in found.items():
        default = defaults.get(key)
        kind = about["inferred_type_name"]
        known = kind if kind not in (None, "None", "") else type(default).__name__
        parameters[key] = Parameter(key, known, default, about["help"] or "")
    return Source(name, path, parameters)


def _literals(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Defaults of the parameters cell, as far as they are literals."""
    for cell in cells:
        if "parameters" not in cell.get("metadata", {}).get("tags", ()):
            continue
        text = cell["source"]
        try:
            tree = ast.parse(text if isinstance(text, str) else "".join(text))
        except SyntaxError:
            return {}
        found = {}
        for node in tree.body:
            target = node.target if isinstance(node, ast.AnnAssign) else (
                node.targets[0] if isinstance(node, ast.Assign) else None
            )  # fmt: skip
            if isinstance(target, ast.Name) and node.value is not None:
                try:
                    found[target.id] = ast.literal_eval(node.value)
                except ValueError:
                    continue
        return found
    return {}


def given(texts: Sequence[str]) -> dict[str, str]:
    """`name=value` pairs of -p. Raises Problem (wrong use) for one without a `=`."""
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Problem(f"-p {text}: not a parameter; write -p name=value", code=2)
        pairs[name] = value
    return pairs


def checked(sources: Sequence[Source], values: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """For each notebook's name the values of `values` that it declares, in their types.

    Raises Problem when no notebook declares a name, or a value is not of its type.
    """
    declared = {name for source in sources for name in source.parameters} - GIVEN
    for name in values:
        if name in GIVEN:
            raise Problem(f"-p {name}: name the stores with --traces DIR", code=2)
        if name not in declared:
            near = difflib.get_close_matches(name, declared, 1)
            hint = f"did you mean {near[0]}?" if near else f"known: {words_of(sorted(declared))}"
            raise Problem(f"-p {name}: no chosen notebook has this parameter; {hint}")
    return {
        source.name: {
            name: _typed(source.parameters[name], text, source)
            for name, text in values.items()
            if name in source.parameters
        }
        for source in sources
    }


def _typed(parameter: Parameter, text: str, source: Source) -> Any:
    kind = parameter.type
    problem = Problem(
        f"-p {parameter.name}={text[:80]}: {source.name} wants {kind} "
        f"({parameter.about or 'see its parameters cell'})"
    )
    if kind == "str":
        return text
    try:
        if kind == "int":
            return int(text)
        if kind == "float":
            return float(text)
        if kind == "bool":
            return {"true": True, "false": False}[text.lower()]
        value = json.loads(text)
    except (ValueError, KeyError):
        raise problem from None
    wanted = {"list": list, "dict": dict}.get(kind.partition("[")[0].lower())
    if wanted is not None and not isinstance(value, wanted):
        raise problem
    return value
