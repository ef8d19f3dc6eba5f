"""Committed notebooks are thin: no outputs, one cell of parameters, nothing defined in them."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ALLOWED = {"tauscope", "altair", "polars", "duckdb"}


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request) -> dict:
    return json.loads(request.param.read_text(encoding="utf-8"))


def code(notebook: dict) -> list[dict]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def source(cell: dict) -> str:
    return "".join(cell["source"])


def test_no_outputs(notebook):
    for cell in code(notebook):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


def test_no_traces_of_a_run(notebook):
    # A version in language_info would change with whoever saved it last.
    assert set(notebook["metadata"]) <= {"kernelspec", "language_info"}
    assert "version" not in notebook["metadata"].get("language_info", {})
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    for cell in notebook["cells"]:
        assert set(cell["metadata"]) <= {"tags"}


def test_it_opens_with_a_title_and_its_question(notebook):
    first = notebook["cells"][0]
    assert first["cell_type"] == "markdown"
    assert re.match(r"# \S.*\n\n[^#].*\?", source(first), re.DOTALL)


def test_parameters_are_the_first_code_cell_and_the_only_ones(notebook):
    tagged = [c for c in code(notebook) if "parameters" in c["metadata"].get("tags", [])]
    assert tagged == [code(notebook)[0]]


def test_every_parameter_is_a_typed_literal_with_a_comment(notebook):
    text = source(code(notebook)[0])
    comments = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }
    for statement in ast.parse(text).body:
        assert isinstance(statement, ast.AnnAssign), ast.unparse(statement)
        ast.literal_eval(statement.value)
        assert statement.lineno in comments, ast.unparse(statement)


def test_cells_are_short_and_define_nothing(notebook):
    for cell in code(notebook)[1:]:
        assert len(source(cell).splitlines()) <= 10, source(cell)
    defining = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    for cell in code(notebook):
        for node in ast.walk(ast.parse(source(cell))):
            assert not isinstance(node, defining), source(cell)


def test_imports_are_the_projects_own_few(notebook):
    for cell in code(notebook):
        for node in ast.walk(ast.parse(source(cell))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                continue
            assert {name.split(".")[0] for name in names} <= ALLOWED
