"""A notebook that fails, hangs, dies or exits stops no other, and is kept and named."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from report_stores import build

from tauscope.batch import report
from tauscope.errors import Problem

BAD = {
    "raises": "raise ValueError('no <b>such</b> thing')",
    "hangs": "import time\nwhile True:\n    time.sleep(0.1)",
    "dies": "import os\nos._exit(7)",
    "exits": "raise SystemExit",
}
SAYS = {
    "raises": "ValueError: no <b>such</b> thing", "hangs": "a cell ran out of time",
    "dies": "the kernel died", "exits": "SystemExit",
}  # fmt: skip


def notebook(folder: Path, name: str, *cells: str, parameters: str = "") -> Path:
    """A notebook of a few cells, with a parameters cell when there are any."""
    made = nbformat.v4.new_notebook()
    made.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
    }
    made.cells = [nbformat.v4.new_markdown_cell(f"# {name}\n\nIs it so?")]
    if parameters:
        cell = nbformat.v4.new_code_cell(parameters)
        cell.metadata["tags"] = ["parameters"]
        made.cells.append(cell)
    made.cells += [nbformat.v4.new_code_cell(text) for text in cells]
    path = folder / f"{name}.ipynb"
    nbformat.write(made, path)
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> report.Report:
    root = tmp_path_factory.mktemp("failing")
    paths = [notebook(root, name, text, "print('after')") for name, text in BAD.items()]
    paths.append(notebook(root, "good", "print(6 * 7)"))
    return report.make(
        traces=[build("empty", root / "store")], out=root / "out",
        notebooks=[str(path) for path in paths], cell_timeout_s=8,
    )  # fmt: skip


def test_the_others_are_made(made: report.Report) -> None:
    assert sorted(page["slug"] for page in made.failed) == sorted(BAD)
    assert "<pre>42\n</pre>" in (made.folder / "good.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", BAD)
def test_what_failed_is_kept_with_its_traceback(name: str, made: report.Report) -> None:
    kept = json.loads((made.folder / "failed" / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert len(kept["cells"]) >= 3
    trace = (made.folder / "failed" / f"{name}.txt").read_text(encoding="utf-8")
    assert trace.strip()
    assert "\x1b" not in trace
    assert not (made.folder / f"{name}.html").exists()


@pytest.mark.parametrize("name", BAD)
def test_the_index_names_it_as_text(name: str, made: report.Report) -> None:
    record = next(page for page in made.failed if page["slug"] == name)
    assert record["error"].startswith(SAYS[name])
    html = made.index.read_text(encoding="utf-8")
    assert f"failed/{name}.ipynb" in html
    assert "<b>such</b>" not in html


def test_nothing_is_left_half_made(made: report.Report) -> None:
    assert sorted(path.name for path in made.folder.parent.iterdir()) == [
        made.folder.name, "latest",
    ]  # fmt: skip
    assert (made.folder.parent / "latest").resolve() == made.folder
    assert not (made.folder / ".work").exists()


def test_the_command_exits_1_and_says_where(command, tmp_path: Path) -> None:
    bad = notebook(tmp_path, "raises", BAD["raises"])
    code, out, err = command(
        "report", "--notebook", bad, "--traces", build("empty", tmp_path / "store"),
        "--out", tmp_path / "out",
    )  # fmt: skip
    assert code == 1
    assert out.strip().endswith("index.html")
    assert "failed: raises; see" in err


def test_a_failed_page_is_made_again(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    path = notebook(tmp_path, "once", f"open({str(flag)!r}).read()")
    how = {"traces": [build("empty", tmp_path / "store")], "out": tmp_path / "out",
           "notebooks": [str(path)]}  # fmt: skip
    assert report.make(**how).failed
    flag.write_text("here")
    again = report.make(**how)
    assert not again.failed
    assert again.pages[0]["why"] == "failed last time"


def test_a_kernel_of_another_language_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.ipynb"
    path.write_text("{}")
    with pytest.raises(Problem, match=r"broken\.ipynb: not a notebook"):
        report.make(traces=[build("empty", tmp_path / "store")], out=tmp_path / "out",
                    notebooks=[str(path)])  # fmt: skip


@pytest.mark.parametrize(("failures", "made"), [(1, True), (2, False)])
def test_a_kernel_that_never_answers_is_tried_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, made: bool
) -> None:
    """Two kernels may be given one port; before any cell ran it is safe to try again."""
    import papermill

    real, calls = papermill.execute_notebook, []

    def flaky(*paths: object, **options: object) -> object:
        calls.append(paths)
        if len(calls) <= failures:
            raise RuntimeError("Kernel didn't respond in 60 seconds")
        return real(*paths, **options)

    monkeypatch.setattr(papermill, "execute_notebook", flaky)
    path = notebook(tmp_path, "good", "print(6 * 7)")
    done = report.make(traces=[build("empty", tmp_path / "store")], out=tmp_path / "out",
                       notebooks=[str(path)])  # fmt: skip
    assert (not done.failed) == made
    assert len(calls) == 2
