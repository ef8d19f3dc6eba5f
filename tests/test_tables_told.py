"""Tables in a terminal: what tells rows apart, numbers that stay whole, codes in words."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Command
from frames import add_run, cycle
from rich.console import Console

from tauscope.cli import output

BET = cycle("bet+", draft_ms=4.0, verify_ms=108.0)


def pair(store: Path, name: str, off: float, on: float, arm: str = "mtp1", **run: Any) -> None:
    """Six prompts at `off` ms a token, and under `arm` at `on`, a little apart from each other."""
    asked = [{"prompt_id": f"p{i}", "generated_tokens": 80, "output_hash": "h"} for i in range(6)]
    facts = {"workload": "code", "machine": "m", **run}
    plain = [[cycle("plain", wall_ms=off)] * 80] * 6
    bets = [[{**BET, "wall_ms": 2 * on * (1 + i / 2000)} for _ in range(40)] for i in range(6)]
    if off:
        add_run(store, f"{name}-off", plain, asked, arm="off", baseline_drafts=False, **facts)
    if on:
        add_run(store, f"{name}-on", bets, asked, arm=arm, **facts)


@pytest.fixture
def mixed(store: Path) -> Path:
    """The same workloads and arms, real and simulated."""
    for kind in (False, True):
        pair(store, f"code{kind:d}", 60.0, 50.0, simulated=kind)
        pair(store, f"prose{kind:d}", 60.0, 66.0, simulated=kind, workload="prose")
    return store


def titled(out: str) -> dict[str, list[str]]:
    """The lines of each table with columns, by its title."""
    found: dict[str, list[str]] = {}
    lines = out.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("┏"):
            found[lines[number - 1].strip()] = [
                text for text in lines[number:] if text.startswith(("┃", "│"))
            ]
    return found


@pytest.mark.parametrize("name", ["metrics", "cost", "route", "ledger", "rosetta", "runs"])
def test_real_and_simulated_rows_are_told_apart(command: Command, mixed: Path, name: str) -> None:
    code, out, _ = command(name, "--traces", mixed)
    assert code == 0
    tables = titled(out)
    assert tables
    for title, lines in tables.items():
        assert re.search(r"┃ data +┃", lines[0]), title
        assert "simulated" not in title
    assert "│ real " in out and "│ simulated " in out


def test_compare_and_check_tell_them_apart(command: Command, mixed: Path) -> None:
    sides = (f"{mixed}:arm=off", f"{mixed}:arm=mtp1")
    _, out, _ = command("compare", *sides)
    assert all(re.search(r"┃ data +┃", lines[0]) for lines in titled(out).values())
    _, out, _ = command("check", *sides)
    assert "code: off → mtp1 (real)" in out and "code: off → mtp1 (simulated)" in out


@pytest.mark.parametrize("name", ["metrics", "cost", "route", "ledger", "rosetta", "runs"])
def test_only_simulated_rows_are_marked_once(command: Command, store: Path, name: str) -> None:
    pair(store, "a", 60.0, 50.0, simulated=True)
    _, out, _ = command(name, "--traces", store)
    for title, lines in titled(out).items():
        assert title.endswith("(simulated)")
        assert not re.search(r"┃ data +┃", lines[0])


def test_two_machines_are_told_apart(command: Command, store: Path) -> None:
    for machine in ("m", "n"):
        pair(store, machine, 60.0, 50.0, machine=machine)
    _, out, _ = command("cost", "--traces", store)
    assert all(re.search(r"┃ machine +┃", lines[0]) for lines in titled(out).values())


def test_a_pooled_figure_stands_only_beside_its_own_arms_flip(
    command: Command, store: Path
) -> None:
    for arm, speeds in (("mtp1", (50.0, 66.0)), ("block7", (70.0, 66.0))):
        for workload, on in zip(("code", "prose"), speeds, strict=True):
            off = 60.0 if arm == "mtp1" else 0
            pair(store, f"{arm}{workload}", off, on, arm=arm, workload=workload)
    _, _, err = command("metrics", "--traces", store)
    assert "sign flip under mtp1: code gain, prose lose" in err
    assert [line for line in err.splitlines() if "pooled" in line and "under mtp1" in line]
    assert not [line for line in err.splitlines() if "block7" in line and "pooled" in line]


def test_a_dash_is_explained_once(command: Command, store: Path) -> None:
    log = ROOT / "traces" / "example.log"
    command("import", log, "--workload", "code", "--arm", "mtp2", "--traces", store)
    _, _, err = command("metrics", "--traces", store)
    (line,) = [line for line in err.splitlines() if "ms/token" in line]
    assert line.startswith("  – under ms/token and tokens/s of code/mtp2: ")
    # The log holds five requests: one count for it would be refused.
    assert "holds one request" in line


def test_codes_are_told_in_words(command: Command, store: Path) -> None:
    pair(store, "a", 60.0, 60.0)
    pair(store, "b", 60.0, 60.0, workload="prose")
    _, _, err = command("metrics", "--traces", store)
    assert err.count("  drift: the machine's speed drifted") == 1
    _, out, _ = command("cost", "--traces", store)
    assert out.count("T from off: off arm without a drafter") == 1


def drawn(sheet: output.Sheet, width: int) -> list[str]:
    text = io.StringIO()
    Console(file=text, width=width, highlight=False, markup=False).print(sheet, crop=False)
    return text.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_numbers_stay_whole_in_a_narrow_terminal(width: int) -> None:
    reason = "speeds without token counts can't be added up " * 3
    numbers = [f"{n}.{n:03d} [{n}.100, {n}.900]" for n in range(6)]
    heads = ["workload", "arm", *[f">value {n}" for n in range(6)], "why"]
    sheet = output.table("many", heads, [["code", "mtp1", *numbers, reason]])
    lines = drawn(sheet, width)
    assert max(map(len, lines)) <= width
    assert all(any(number in line for line in lines) for number in numbers)
    assert not any("…" in line for line in lines)
    # What names the row stands in each part.
    parts = sum(line.startswith("┏") for line in lines)
    assert sum("│ code" in line for line in lines) == parts


def test_only_labels_are_cut(command: Command, store: Path) -> None:
    label, reason = "w" * 100, "r" * 300
    (line,) = [
        line for line in drawn(output.table("", ["workload", "why"], [[label, reason]]), 1000)
        if line.startswith("│")
    ]  # fmt: skip
    assert "w" * 59 + "…" in line and label not in line
    assert reason in line


def test_a_wide_row_becomes_a_block(command: Command, store: Path) -> None:
    pair(store, "a", 60.0, 50.0)
    code, out, _ = command(
        "sql", "SELECT * FROM cycles WHERE arm = 'off' LIMIT 2", "--traces", store
    )
    assert code == 0
    assert re.findall(r"(?m)^row \d$", out) == ["row 1", "row 2"]
    assert re.search(r"(?m)^  wall_ms +60$", out)
    _, out, _ = command("sql", "SELECT arm FROM cycles LIMIT 2", "--traces", store)
    assert "┃ arm" in out


def test_times_in_the_ledger_have_fixed_digits(command: Command, store: Path) -> None:
    asked = [{"prompt_id": "p", "generated_tokens": 4000, "decode_ms": 1594848.0000039}]
    add_run(store, "a", [[cycle("plain", wall_ms=398.712)] * 4000], asked, arm="off",
            workload="code")  # fmt: skip
    _, out, _ = command("ledger", "--traces", store)
    assert "1,594,848.0" in out and "4,000" in out
    assert "e+0" not in out and "e-0" not in out and "-0.0" not in out


def test_a_breakeven_is_a_percentage(command: Command, store: Path) -> None:
    pair(store, "a", 60.0, 66.0)
    _, out, _ = command("cost", "--traces", store)
    assert re.search(r"│ code +│ mtp1 +│ +100\.0 % │ +\d+\.\d %", out)


def test_a_breakeven_above_all_is_said(command: Command, store: Path) -> None:
    asked = [{"prompt_id": f"p{i}", "generated_tokens": 80} for i in range(6)]
    bets = [[{**BET, "wall_ms": 154.0, "verify_ms": 150.0}] * 40] * 6
    add_run(store, "off", [[cycle("plain", wall_ms=60.0)] * 80] * 6, asked, arm="off",
            workload="code", baseline_drafts=False)  # fmt: skip
    add_run(store, "on", bets, asked, arm="mtp1", workload="code")
    _, out, _ = command("cost", "--traces", store)
    assert ": can't be reached" in out


@pytest.mark.parametrize("name", ["metrics", "cost", "ledger", "rosetta"])
def test_an_empty_selection_tells_what_there_is(command: Command, mixed: Path, name: str) -> None:
    code, _, err = command(name, "--where", "workload=foo", "--traces", mixed)
    assert code == 1
    assert "there are the workloads code, prose and arms off, mtp1" in err


def test_texts_name_queries_that_exist() -> None:
    files = [ROOT / "README.md", *(ROOT / "analysis").rglob("*.py"), *(ROOT / "docs").glob("*.md")]
    texts = "".join(path.read_text("utf-8") for path in files)
    named = set(re.findall(r"analysis/queries/\w+\.sql", texts))
    assert named
    assert all((ROOT / name).is_file() for name in named)


def test_codes_tell_the_cause_that_the_row_has(command: Command, store: Path) -> None:
    """One prompt has no interval, and it is known that this off arm drafts."""
    for arm, ms in (("off", 1000.0), ("mtp2", 900.0)):
        made = [{"prompt_id": "p", "generated_tokens": 100, "decode_ms": ms}]
        add_run(store, arm, [[]], made, arm=arm, workload="code", baseline_drafts=True)
    _, _, err = command("metrics", "--traces", store)
    assert "  interval: no interval: fewer than two prompts in both arms\n" in err
    assert "  baseline: the off arm drafts\n" in err
    assert "includes no change" not in err
