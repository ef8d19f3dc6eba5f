"""Parameters are checked before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_stores import build
from test_report_failures import notebook

from tauscope import notebook as opener
from tauscope.batch import index, params, report
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


def test_a_page_says_what_chose_its_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = 'traces: list = []  # stores\nchosen_by: str = ""  # what named them'
    path = notebook(tmp_path, "hears", "print(chosen_by)", parameters=declared)
    store = build("empty", tmp_path / "store")
    monkeypatch.setenv("TAUSCOPE_TRACES", str(store))
    made = report.make(out=tmp_path / "out", notebooks=[str(path)])
    (page,) = made.pages
    assert page["parameters"]["chosen_by"] == "$TAUSCOPE_TRACES"
    assert "$TAUSCOPE_TRACES" in (made.folder / page["file"]).read_text(encoding="utf-8")
    with pytest.raises(Problem, match="--traces"):
        typed(path, "chosen_by=me")


def test_stores_named_in_the_cell_itself_are_said_to_be(tmp_path: Path) -> None:
    store = build("empty", tmp_path / "store")
    assert opener.open_traces([store]).origin == "the notebook's parameters"
    assert opener.open_traces([store], "--traces").origin == "--traces"


def test_the_pages_of_one_value_are_one_card() -> None:
    about = ("", "", "workload: chat", "workload: chat", "workload: code")
    pages = [
        {"slug": f"p{number}", "file": f"p{number}.html", "title": f"T{number}", "about": text,
         "question": "Why?", "seconds": 1.0, "why": "first time", "made": "now", "error": ""}
        for number, text in enumerate(about)
    ]  # fmt: skip
    nothing = {"answer": "a", "verdicts": [], "flips": [], "pooled": [], "bottlenecks": [],
               "runs": [], "damaged": []}  # fmt: skip
    text = index.html(nothing, pages, made="now", origin="o", stores=["s"], seconds=1.0, files=[])
    assert text.count("<li data-item>") == 4
    assert text.count("workload: chat") == 1
    assert all(f'href="p{number}.html"' in text for number in range(5))
