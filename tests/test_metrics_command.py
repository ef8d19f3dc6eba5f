"""What `tauscope metrics` takes and tells: columns, conditions, one array of rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from frames import add_run, cycle, opened

from tauscope import catalog, metrics, summary
from tauscope.errors import Problem


@pytest.fixture
def traces(store: Path) -> Path:
    """Six prompts, off at 10 ms a token, blocks of two drafts at 8 ms; one prompt of chat."""
    for arm, wall in (("off", 10.0), ("block2", 16.0)):
        rows = [cycle("plain", wall_ms=wall)] * 20
        if arm == "block2":
            rows = [
                cycle("bet+", verified=2, drafted=2, accepted=1, emitted=2, outcome="partial",
                      wall_ms=wall, margin=5.0, threshold=3.0, draft_ms=1.0, verify_ms=14.0)
            ] * 9 + [cycle("fold", wall_ms=16.0, margin=1.0, threshold=2.0, emitted=2)]  # fmt: skip
        for workload, prompts in (("code", 6), ("chat", 1)):
            made = [
                {"prompt_id": f"p{n}", "generated_tokens": 20, "output_hash": f"h{n}",
                 "decode_ms": 10 * wall, "prompt_tokens": 100 + n, "workload": workload}
                for n in range(prompts)
            ]  # fmt: skip
            add_run(store, f"{arm}-{workload}", [rows] * prompts, made, arm=arm,
                    baseline_drafts=False, machine="m")  # fmt: skip
    return store


def told(command: Command, traces: Path, *words: str) -> list[dict[str, Any]]:
    code, out, _ = command("metrics", "--json", *words, "--traces", traces)
    assert code == 0
    return json.loads(out)


def test_one_array_with_every_metric_of_the_contract(command: Command, traces: Path) -> None:
    row = next(r for r in told(command, traces) if (r["workload"], r["arm"]) == ("code", "block2"))
    names = ("tau", "tau_forward", "committed_acceptance", "fold_rate", "gated_fold_rate",
             "draft_hit_rate", "draft_yield", "draft_accuracy", "drafting_share", "acceptance_at",
             "ms_per_token", "tokens_per_s", "verify_draft_ratio", "verify_step_ratio",
             "seconds_per_request", "time_basis", "basis", "speedup", "verdict",
             "reasons", "flips")  # fmt: skip
    assert set(names) <= set(row)
    # 20 tokens at 10 ms against 20 tokens in 10 cycles of 16 ms.
    assert row["speedup"] == pytest.approx(200 / 160)
    assert (row["basis"], row["baseline"], row["pairs"]) == ("measured", "off", 6)


def test_acceptance_by_depth_is_a_list(command: Command, traces: Path) -> None:
    row = next(r for r in told(command, traces) if r["arm"] == "block2")
    bets = 54 if row["workload"] == "code" else 9
    assert row["acceptance_at"] == [
        {"position": 1, "num": bets, "conditional_den": bets, "marginal_den": bets,
         "conditional": 1.0, "marginal": 1.0},
        {"position": 2, "num": 0, "conditional_den": bets, "marginal_den": bets,
         "conditional": 0.0, "marginal": 0.0},
    ]  # fmt: skip


def test_acceptance_by_depth_by_hand(store: Path) -> None:
    """Seven bets of up to three drafts: 3, 3, 2 of 3, 0, 1 of 2 at a cap, 1 of 1."""
    bets = [(3, 3), (3, 3), (3, 2), (3, 0), (2, 1), (1, 1)]
    kinds = [cycle("bet+", verified=v, accepted=a, emitted=a + 1) for v, a in bets]
    add_run(store, "a", [kinds], arm="block3", workload="code")
    found = metrics.acceptance_at(opened(store))
    columns = ("position", "num", "conditional_den", "marginal_den")
    # At 2: four bets verified a second draft after an accepted first, three were accepted.
    assert found.select(columns).rows() == [(1, 5, 6, 6), (2, 3, 4, 6), (3, 2, 3, 6)]


def test_by_workload_has_a_row_for_each_treated_arm(command: Command, traces: Path) -> None:
    rows = told(command, traces, "--by", "workload")
    assert [(r["workload"], r["arm"]) for r in rows] == [("code", "block2"), ("chat", "block2")]
    assert rows[0]["tau"] == 2.0
    assert rows[0]["base_ms_per_token"] == pytest.approx(10.0)


def test_the_off_arm_has_no_speedup_and_says_why(command: Command, traces: Path) -> None:
    rows = {(r["workload"], r["arm"]): r for r in told(command, traces)}
    assert rows["code", "off"]["speedup"] is None
    assert "held against" in rows["code", "off"]["speedup_why"]


def test_several_machines_in_a_row_have_no_one_speedup(command: Command, traces: Path) -> None:
    made = [{"prompt_id": "p0", "generated_tokens": 20, "decode_ms": 99.0}]
    for arm in ("off", "block2"):
        add_run(traces, f"else-{arm}", [[cycle("plain", wall_ms=9.0)]], made, arm=arm,
                workload="code", machine="another")  # fmt: skip
    rows = {(r["workload"], r["arm"]): r for r in told(command, traces)}
    assert rows["code", "block2"]["speedup"] is None
    assert "group by them too" in rows["code", "block2"]["speedup_why"]
    apart = told(command, traces, "--by", "workload,arm,machine", "--where", "machine=m")
    assert next(r["speedup"] for r in apart if r["arm"] == "block2") == pytest.approx(1.25)


def test_groups_by_columns_of_requests_and_of_cycles(command: Command, traces: Path) -> None:
    by_source = told(command, traces, "--by", "workload,arm,source_kind")
    assert {r["cycles"] for r in by_source} == {60, 10, 120, 20}
    by_bar = told(command, traces, "--by", "threshold,arm", "--where", "workload=code")
    cells = {(r["threshold"], r["arm"]): (r["cycles"], r["tau"]) for r in by_bar}
    assert cells == {(None, "off"): (120, 1.0), (3.0, "block2"): (54, 2.0), (2.0, "block2"): (6, 2)}
    # A part of a request has no time but that of its cycles, and no count of the engine's.
    treated = next(r for r in by_bar if r["threshold"] == 3.0)
    assert treated["ms_per_token"] == pytest.approx(8.0)
    assert treated["generated_tokens"] is None
    assert treated["speedup"] is None


@pytest.mark.parametrize(
    ("condition", "cycles"),
    [
        ("arm = 'block2' AND workload = 'code'", 60),
        ("arm = 'block2' AND generated_tokens > 19", 70),
        ("arm = 'block2' AND prompt_tokens >= 104", 20),
        ("margin > 3", 63),
        ("margin > 3 AND prompt_id = 'p1'", 9),
        ("outcome = 'folded'", 7),
    ],
)
def test_a_condition_is_sql(command: Command, traces: Path, condition: str, cycles: int) -> None:
    rows = told(command, traces, "--where", condition)
    assert sum(row["cycles"] for row in rows) == cycles


def test_a_condition_on_cycles_compares_nothing(command: Command, traces: Path) -> None:
    (code, _) = told(command, traces, "--where", "margin > 3")
    assert code["speedup"] is None
    assert "parts of requests are not compared" in code["speedup_why"]
    assert code["fold_rate"] == 0.0


def test_conditions_narrow_together(command: Command, traces: Path) -> None:
    words = ("--where", "margin > 3", "--where", "workload=code", "--where", "prompt_tokens < 103")
    (row,) = told(command, traces, *words)
    assert row["cycles"] == 27


def test_a_label_that_is_a_columns_name_stays_a_label(command: Command, store: Path) -> None:
    for workload in ("model", "code"):
        add_run(store, workload, [[cycle("bet+")]], workload=workload, arm="mtp1", model="model")
    rows = told(command, store, "--where", "workload=model")
    assert [row["workload"] for row in rows] == ["model"]


def test_a_label_may_hold_blanks_and_quotes(command: Command, store: Path) -> None:
    label = "Tom's GB10, 128 GiB"
    add_run(store, "a", [[cycle("bet+")]], workload="code", arm="mtp1", machine=label)
    assert len(told(command, store, "--where", f"machine={label}")) == 1


@pytest.mark.parametrize(
    "condition",
    ["1=1); COPY runs TO 'x.parquet'; SELECT (1", "nothing > 3", "1 = ", "TRUE); SELECT (TRUE"],
)
def test_what_is_no_condition_is_refused(command: Command, traces: Path, condition: str) -> None:
    code, out, err = command("metrics", "--where", condition, "--traces", traces)
    assert (code, out) == (1, "")
    assert err.startswith("--where")
    assert list(Path().glob("x.parquet")) == []


@pytest.mark.parametrize("name", ["ledger", "rosetta", "cost", "route"])
def test_every_command_takes_sql_about_requests(command: Command, traces: Path, name: str) -> None:
    words = ("--where", "generated_tokens = 20 AND workload = 'code'", "--json")
    code, out, _ = command(name, *words, "--traces", traces)
    _, plain, _ = command(name, "--where", "workload=code", "--json", "--traces", traces)
    assert code == 0
    assert json.loads(out) == json.loads(plain)
    code, _, err = command(name, "--where", "margin > 3", "--traces", traces)
    assert code == 1
    assert "whole requests are asked about" in err


def test_lists_make_no_groups(store: Path) -> None:
    with pytest.raises(Problem, match="dialects: not a column to group"):
        metrics.table(opened(store), by=["dialects"])


def test_a_store_without_rows_has_no_rows(store: Path) -> None:
    data = opened(store)
    assert summary.rows(data) == []
    assert summary.rows(data, where={catalog.CYCLE_SQL: "margin > 3"}) == []


def test_a_store_of_shadow_runs_says_what_it_is(command: Command, store: Path) -> None:
    add_run(store, "a", [[cycle("fold", margin=1.0)] * 3], arm="shadow", workload="code")
    code, _, err = command("metrics", "--traces", store)
    assert code == 1
    assert "only shadow runs are here" in err
    (row,) = told(command, store, "--where", "arm=shadow")
    assert row["cycles"] == 3
