"""The same lines in two places count once, or are refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from logs import SPEED, START, TEN

from tauscope import catalog
from tauscope.errors import Problem
from tauscope.ingest import source
from tauscope.ingest.importer import Imported, Labels, import_log


def put(root: Path, *paths: Path) -> Imported:
    (log,) = source.find(paths)
    return import_log(log, root)


def counted(*roots: Path) -> int:
    return catalog.Catalog(list(roots)).query("SELECT count(*) FROM cycles").item()


def test_a_log_that_grew_in_another_store_counts_once_the_longer(tmp_path: Path) -> None:
    path, a, b = tmp_path / "run.log", tmp_path / "a", tmp_path / "b"
    path.write_text(TEN)
    short = put(a, path).log_id
    path.write_text(TEN * 3)
    long = put(b, path).log_id
    other = tmp_path / "other.log"
    other.write_text(START + TEN)
    put(a, other)
    assert short != long
    assert (counted(a), counted(b)) == (20, 30)
    for order in ((a, b), (b, a)):
        data = catalog.Catalog(list(order))
        assert long in data.runs["log_id"].to_list()
        assert short not in data.runs["log_id"].to_list()
        assert data.query("SELECT count(*) FROM cycles").item() == 40


def test_the_same_bytes_under_two_names_in_two_stores_count_once(tmp_path: Path) -> None:
    path, a, b = tmp_path / "run.log", tmp_path / "a", tmp_path / "b"
    path.write_text(TEN)
    put(a, path)
    path.write_text(TEN * 2)
    assert put(a, path).log_id != put(b, path).log_id
    assert counted(a, b) == 20


def test_logs_that_only_begin_alike_all_count(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    for number, root in ((1, a), (2, b)):
        path = tmp_path / f"{number}.log"
        path.write_text(TEN + START + SPEED.replace("40.00", f"4{number}.00") + TEN * number)
        put(root, path)
    assert counted(a, b) == counted(a) + counted(b)


def lines(first: int, last: int) -> str:
    made = TEN.splitlines(keepends=True)
    body = [line for line in made if "ds4: mtp" in line]
    return "".join(
        body[n % len(body)].rstrip("\n") + f" at={n}\n" for n in range(first, last)
    )  # fmt: skip


@pytest.mark.parametrize("size", [200, 3000])
def test_a_rotation_without_its_oldest_part_is_refused_by_name(tmp_path: Path, size: int) -> None:
    store = tmp_path / "store"
    parts = [tmp_path / name for name in ("server.log.2", "server.log.1", "server.log")]
    for number, part in enumerate(parts):
        part.write_text(lines(number * size, (number + 1) * size))
    first = put(store, *parts).log_id
    # Rotated once more: the oldest is gone, every other part has the next name.
    parts[1].rename(parts[0])
    parts[2].rename(parts[1])
    parts[2].write_text(lines(3 * size, 4 * size))
    before = counted(store)
    both = sum(part.stat().st_size for part in parts[:2])
    with pytest.raises(Problem, match=rf"first {both} bytes .* log {first}.*tail -c \+{both + 1}"):
        put(store, *parts)
    assert counted(store) == before
    # Another log of that name, which has nothing in common, goes in.
    parts[2].write_text(lines(9 * size, 10 * size))
    assert put(store, parts[2]).status == "imported"


def test_a_rotation_whose_later_part_came_in_alone_is_refused_by_name(tmp_path: Path) -> None:
    store, old, new = tmp_path / "store", tmp_path / "server.log.1", tmp_path / "server.log"
    new.write_text(lines(0, 300))
    put(store, new)
    # Overnight it is rotated, and the new file is brought in by itself.
    new.rename(old)
    new.write_text(lines(300, 600))
    second = put(store, new).log_id
    before = counted(store)
    with pytest.raises(Problem, match=rf"log {second} .server.log. .* count twice"):
        put(store, old, new)
    assert counted(store) == before
    # A day later both are old: what is new alone goes in.
    old.rename(tmp_path / "server.log.2")
    new.rename(old)
    new.write_text(lines(600, 900))
    assert put(store, new).status == "imported"


def test_a_rotation_whose_middle_came_in_first_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "store"
    parts = [tmp_path / name for name in ("server.log.2", "server.log.1", "server.log")]
    for number, part in enumerate(parts):
        part.write_text(lines(number * 300, (number + 1) * 300))
    middle = put(store, parts[1]).log_id
    before = counted(store)
    with pytest.raises(Problem, match=f"log {middle} "):
        put(store, *parts)
    assert counted(store) == before


@pytest.mark.parametrize("given", [{"workload": "other"}, {"tokens": 17}])
def test_labels_of_a_beginning_do_not_reach_the_whole_log(tmp_path: Path, given: dict) -> None:
    store, path = tmp_path / "store", tmp_path / "run.log"
    path.write_text(TEN * 2)
    whole = put(store, path).log_id
    path.write_text(TEN)
    (log,) = source.find([path])
    tokens = given.get("tokens")
    labels = Labels(workload=given.get("workload"))
    with pytest.raises(Problem, match=f"is the beginning of log {whole}"):
        import_log(log, store, labels, tokens=tokens)
    assert import_log(log, store).status == "unchanged"
