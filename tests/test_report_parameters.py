"""Parameters are checked before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_stores import build
from test_report_failures import notebook

from tauscope.batch import params, report
from tauscope.errors import Problem

DECLARED = """traces: list = []  # stores
workload: str = ""  # one workload
depth: int = 3  # how deep
share: float = 0.5  # of what
loud: bool = False  # or not
names: list = []  # some
guessed = 7  # by its default"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return notebook(tmp_path, "declares", "print(depth)", parameters=DECLARED)


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*args: object, **kwargs: object) -> None:
        raise AssertionError("a notebook ran")

    monkeypatch.setattr("tauscope.batch.kernels.run", run)


def typed(path: Path, *texts: str) -> dict[str, object]:
    sources = params.find([str(path)])
    return params.checked(sources, params.given(texts))["declares"]


def test_values_take_the_declared_type(path: Path) -> None:
    found = typed(path, "workload=7", "depth=7", "share=0.25", "loud=true", 'names=["a", "b"]')
    assert found == {"workload": "7", "depth": 7, "share": 0.25, "loud": True, "names": ["a", "b"]}


def test_a_default_gives_the_type_where_none_is_written(path: Path) -> None:
    assert typed(path, "guessed=8") == {"guessed": 8}
    with pytest.raises(Problem, match="wants int"):
        typed(path, "guessed=eight")


def test_a_value_may_hold_an_equals_sign(path: Path) -> None:
    assert typed(path, "workload=a=b") == {"workload": "a=b"}


@pytest.mark.parametrize("text", ["depth=x", "depth=1.5", "share=", "loud=maybe", "names={}",
                                  "names=["])  # fmt: skip
def test_an_ill_typed_value_is_one_line_that_says_what_is_wanted(
    text: str, path: Path, never: None, tmp_path: Path
) -> None:
    name = text.partition("=")[0]
    with pytest.raises(Problem, match=f"^-p {name}=.*: declares wants ") as caught:
        report.make(traces=[build("empty", tmp_path / "s")], out=tmp_path / "out",
                    notebooks=[str(path)], parameters=[text])  # fmt: skip
    assert "\n" not in str(caught.value)


def test_an_unknown_name_is_an_error_with_the_nearest_one(
    path: Path, never: None, tmp_path: Path
) -> None:
    with pytest.raises(Problem, match="did you mean workload"):
        report.make(traces=[build("empty", tmp_path / "s")], out=tmp_path / "out",
                    notebooks=[str(path)], parameters=["worklaod=code"])  # fmt: skip
    assert not list((tmp_path / "out").glob("*")) if (tmp_path / "out").exists() else True


def test_stores_are_named_by_their_own_option(path: Path) -> None:
    with pytest.raises(Problem, match="--traces") as caught:
        typed(path, "traces=x")
    assert caught.value.code == 2


def test_a_pair_without_a_sign_is_wrong_use(path: Path) -> None:
    with pytest.raises(Problem) as caught:
        params.given(["workload"])
    assert caught.value.code == 2


def test_an_unknown_notebook_is_named_with_those_there_are() -> None:
    with pytest.raises(Problem, match=r"name one of .*workloads"):
        params.find(["nope"])


def test_each_wants_a_parameter_of_that_name(path: Path, never: None, tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"--each machine: .*use one of workload"):
        report.make(traces=[build("empty", tmp_path / "s")], out=tmp_path / "out",
                    notebooks=[str(path)], each="machine")  # fmt: skip


def test_the_clones_notebooks_declare_what_each_takes() -> None:
    for source in params.find([]):
        assert source.parameters["traces"].type == "list"
    assert params.find([])[0].name == "workloads"
