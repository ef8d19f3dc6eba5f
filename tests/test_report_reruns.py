"""A page is made again when what it was made from changed, and the report says why."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from frames import add_run, cycle
from report_stores import HOSTILE, build
from test_report_failures import notebook

from tauscope.batch import inputs, report, slugs
from tauscope.batch.report import Report
from tauscope.errors import Problem

PARAMETERS = 'traces: list = []  # stores\nworkload: str = ""  # one'


@pytest.fixture
def store(tmp_path: Path) -> Path:
    add_run(tmp_path / "store", "log", [[cycle("bet+"), cycle("fold")]], workload="code",
            arm="mtp1")  # fmt: skip
    return tmp_path / "store"


@pytest.fixture
def make(tmp_path: Path, store: Path) -> Callable[..., Report]:
    notebook(tmp_path, "one", "print(workload, 'here')", parameters=PARAMETERS)
    notebook(tmp_path, "two", "print(2)")

    def call(*names: str, **how: Any) -> Report:
        paths = [str(tmp_path / f"{name}.ipynb") for name in names or ("one", "two")]
        return report.make(traces=[store], out=tmp_path / "out", notebooks=paths, **how)

    return call


def why(made: Report) -> dict[str, str]:
    return {page["slug"]: page["why"] for page in made.pages}


def test_reasons_and_what_is_kept(make: Callable[..., Report], tmp_path: Path, store: Path) -> None:
    first = make()
    assert why(first) == {"one": "first time", "two": "first time"}
    same = make()
    assert same.unchanged
    assert same.folder == first.folder

    notebook(tmp_path, "two", "print(3)")
    second = make()
    assert why(second) == {"one": "", "two": "notebook changed"}
    assert (second.folder / "one.html").read_bytes() == (first.folder / "one.html").read_bytes()
    assert "3" in (second.folder / "two.html").read_text(encoding="utf-8")
    assert "nothing changed" in second.index.read_text(encoding="utf-8")

    third = make(parameters=["workload=code"])
    assert why(third) == {"one": "parameters changed (workload)", "two": ""}

    add_run(store, "other", [[cycle("bet-")]], workload="chat", arm="mtp1")
    fourth = make(parameters=["workload=code"])
    assert why(fourth)["two"] == "data changed (3 files)"


def test_a_version_that_changed_is_named(
    make: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    make("two")
    real = inputs.versions()
    monkeypatch.setattr(inputs, "versions", lambda: real | {"polars": "99", "source": "x"})
    assert why(make("two")) == {"two": "versions changed (tauscope's code, polars)"}


def test_a_page_for_each_value(make: Callable[..., Report]) -> None:
    made = make("one", each="workload")
    assert sorted(why(made)) == ["one", "one--workload-code"]
    assert "code here" in (made.folder / "one--workload-code.html").read_text(encoding="utf-8")
    assert not make("one").unchanged  # fewer pages are another report


def test_pages_of_hostile_labels_have_plain_names() -> None:
    names = [slugs.slug(label) for label in HOSTILE]
    assert len(set(names)) == len(HOSTILE)
    for name in names:
        assert len(name.encode()) < 200
        assert all(char.isalnum() or char in "._-" for char in name), name
        assert ".." not in name
    assert slugs.slug("code") == "code"
    assert slugs.slug("中文聊天") == "中文聊天"
    assert slugs.slug("A") != slugs.slug("a")
    assert slugs.slug("") != ""


def test_earlier_reports_stay_until_told_otherwise(
    make: Callable[..., Report], tmp_path: Path
) -> None:
    folders = []
    for number in range(3):
        notebook(tmp_path, "two", f"print({number})")
        folders.append(make("two").folder)
    out = tmp_path / "out"
    foreign = [out / "2020-01-01-000000", out / "notes", out / "README.md"]
    foreign[0].mkdir()
    foreign[1].mkdir()
    foreign[2].write_text("mine")
    assert all(folder.is_dir() for folder in folders)

    notebook(tmp_path, "two", "print('last')")
    last = make("two", keep=2)
    assert last.removed == [folder.name for folder in folders[:2]]
    assert [folder.is_dir() for folder in folders] == [False, False, True]
    assert all(path.exists() for path in foreign)
    assert (out / "latest").resolve() == last.folder


def test_what_stands_beside_a_page(make: Callable[..., Report], store: Path) -> None:
    made = make("one")
    record = json.loads((made.folder / "one" / "page.json").read_text(encoding="utf-8"))
    assert record["parameters"] == {"traces": [str(store)]}
    assert {file["path"].partition("/")[0] for file in record["inputs"]} == {
        "runs", "requests", "cycles",
    }  # fmt: skip
    cycles = next(f for f in record["inputs"] if f["path"].startswith("cycles/"))
    assert cycles["rows"] == 2
    assert len(cycles["sha256"]) == 64
    assert {"tauscope", "python", "polars", "duckdb", "altair"} <= set(record["versions"])
    summary = json.loads((made.folder / "report.json").read_text(encoding="utf-8"))
    assert [page["slug"] for page in summary["pages"]] == ["one"]


def test_a_folder_in_the_way_of_latest_is_not_touched(
    make: Callable[..., Report], tmp_path: Path
) -> None:
    (tmp_path / "out" / "latest").mkdir(parents=True)
    with pytest.raises(Problem, match="latest: is in the way"):
        make("two")


def test_a_folder_that_cant_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = notebook(tmp_path, "two", "print(2)")
    with pytest.raises(Problem, match=r"can't be written .*--out"):
        report.make(traces=[build("empty", tmp_path / "s")], out=tmp_path / "file" / "out",
                    notebooks=[str(path)])  # fmt: skip


def test_an_interrupted_report_leaves_nothing(
    make: Callable[..., Report], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tauscope.batch.kernels.run", stop)
    with pytest.raises(KeyboardInterrupt):
        make("two")
    assert list((tmp_path / "out").iterdir()) == []
