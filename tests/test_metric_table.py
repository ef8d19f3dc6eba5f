"""Metrics by group: what is null says why, time has a basis, labels come from their place."""

from __future__ import annotations

from pathlib import Path

import pytest
from frames import add_run, cycle, opened

from tauscope import metrics, schema
from tauscope.errors import Problem


def one(root: Path, **where: object) -> dict:
    return metrics.table(opened(root), where=where).row(0, named=True)


def test_off_arms_without_cycles_have_speed_and_no_tau(store: Path) -> None:
    speed = {"decode_tokens_per_s": 40.0}
    add_run(store, "log", [[]], [speed], workload="code", arm="off")
    row = one(store)
    assert row["ms_per_token"] == pytest.approx(25.0)
    assert row["tokens_per_s"] == pytest.approx(40.0)
    assert row["time_basis"] == "run"
    assert row["tau"] is None
    assert row["tau_why"] == "no cycle was logged"
    assert row["ms_per_token_lo"] is None


def test_speeds_without_token_counts_are_not_added_up(store: Path) -> None:
    add_run(store, "log", [[], []], [{"decode_tokens_per_s": 40.0}, {"decode_tokens_per_s": 20.0}],
            workload="code", arm="off")  # fmt: skip
    row = one(store)
    assert row["ms_per_token"] is None
    assert "import --tokens N gives a log's count" in row["ms_per_token_why"]


def test_time_is_a_ratio_of_sums_over_requests(store: Path) -> None:
    columns = [
        {"decode_ms": 1000.0, "generated_tokens": 10},
        {"decode_ms": 1000.0, "generated_tokens": 90},
    ]
    add_run(store, "log", [[], []], columns, workload="code", arm="off")
    assert one(store)["ms_per_token"] == pytest.approx(20.0)


def test_cycle_times_win_when_every_arm_has_them(store: Path) -> None:
    timed = [cycle("bet+", wall_ms=30.0), cycle("fold", wall_ms=12.0)]
    said = [{"decode_ms": 60.0, "generated_tokens": 3}]
    add_run(store, "a", [timed], said, workload="code", arm="mtp1")
    assert one(store)["time_basis"] == "cycles"
    assert one(store)["ms_per_token"] == pytest.approx(14.0)
    add_run(store, "b", [[]], said, workload="code", arm="off")  # no cycles: both by run
    assert one(store, arm="mtp1")["time_basis"] == "cycles"  # alone it still has its own
    both = metrics.table(opened(store))
    assert both["time_basis"].to_list() == ["run", "run"]
    assert both["ms_per_token"].to_list() == pytest.approx([20.0, 20.0])


def test_a_dark_cycle_leaves_tau_and_says_why_the_rest_is_unknown(store: Path) -> None:
    add_run(store, "log", [[cycle("legacy+"), cycle("dark")]], workload="code", arm="mtp2")
    row = one(store)
    assert row["tau"] == 2.0
    assert row["draft_hit_rate"] is None
    assert "1 cycles were printed nowhere" in row["draft_hit_rate_why"]


def test_unknown_kinds_make_null_not_zero(store: Path) -> None:
    add_run(store, "log", [[cycle("unknown")] * 3], workload="code", arm="dspark")
    row = one(store)
    assert row["tau"] is None
    assert "3 cycles of a kind whose accounting is not documented" in row["tau_why"]


def test_nothing_to_divide_by_is_said(store: Path) -> None:
    add_run(store, "log", [[cycle("fold")] * 3], workload="code", arm="mtp1")
    row = one(store)
    assert row["committed_acceptance"] is None
    assert row["committed_acceptance_why"].startswith("nothing to divide by: no Σ verified")


def test_simulated_and_real_runs_never_share_a_row(store: Path) -> None:
    add_run(store, "a", [[cycle("fold")]], workload="code", arm="mtp1", simulated=True)
    add_run(store, "b", [[cycle("bet+")]], workload="code", arm="mtp1", simulated=False)
    rows = metrics.table(opened(store))
    assert sorted(rows.select("simulated", "tau").iter_rows()) == [(False, 2.0), (True, 1.0)]


def test_a_requests_label_goes_before_its_runs(store: Path) -> None:
    add_run(store, "a", [[cycle("fold")], [cycle("bet+")]], [{"workload": "chat"}, {}],
            workload="code", arm="mtp1")  # fmt: skip
    rows = metrics.table(opened(store))
    assert dict(rows.select("workload", "tau").iter_rows()) == {"chat": 1.0, "code": 2.0}


def test_unlabelled_stays_unlabelled(store: Path) -> None:
    add_run(store, "a", [[cycle("fold")]])
    row = one(store)
    assert (row["workload"], row["arm"]) == (schema.UNLABELLED, schema.UNLABELLED)


def test_cycles_of_no_request_are_counted_and_labelled_by_their_run(store: Path) -> None:
    rows = [cycle("bet+", request_id=None), cycle("fold", request_id=None)]
    add_run(store, "a", [rows], [{"overlapped": True}], workload="agent", arm="mtp1")
    row = one(store)
    assert (row["cycles"], row["tau"]) == (2, 1.5)


def test_repeats_of_a_prompt_are_one_cluster(store: Path) -> None:
    for log in "abc":
        add_run(store, log, [[cycle("bet+")]], workload="code", arm="mtp1", prompt_id="p1")
    row = one(store)
    assert (row["clusters"], row["requests"], row["named"]) == (1, 3, 1)


def test_the_same_prompt_of_two_workloads_is_two_clusters(store: Path) -> None:
    add_run(store, "a", [[cycle("bet+")]], workload="code", arm="mtp1", prompt_id="p1")
    add_run(store, "b", [[cycle("bet+")]], workload="chat", arm="mtp1", prompt_id="p1")
    assert metrics.table(opened(store), by=["arm"]).row(0, named=True)["clusters"] == 2


def test_warm_up_stays_out_of_time_above_and_below(store: Path) -> None:
    slow = [cycle("fold", wall_ms=200.0)] * 10
    usual = [cycle("fold", wall_ms=100.0)] * 600
    add_run(store, "a", [slow + usual], workload="code", arm="mtp1")
    row = one(store)
    # Eight cycles in a row average less than 5 % above the usual from cycle 10 on.
    assert row["warmup_cycles"] == 10
    assert row["ms_per_token"] == pytest.approx(100.0)
    assert row["ms_per_token_den"] == 600
    assert row["cycles"] == 610  # counts use all cycles


def test_a_run_that_is_steady_has_no_warm_up(store: Path) -> None:
    add_run(store, "a", [[cycle("fold", wall_ms=100.0)] * 600], workload="code", arm="mtp1")
    assert one(store)["warmup_cycles"] == 0


def test_a_disturbance_at_the_start_of_a_short_run_is_no_warm_up(store: Path) -> None:
    rows = [cycle("fold", wall_ms=110.0)] * 50 + [cycle("fold", wall_ms=100.0)] * 110
    add_run(store, "a", [rows], workload="code", arm="mtp1")
    assert one(store)["warmup_cycles"] == 0


def test_one_prompt_gets_an_interval_within_the_run(store: Path) -> None:
    rows = [cycle("bet+" if n * n % 7 > 1 or n % 11 > 6 else "fold") for n in range(300)]
    add_run(store, "a", [rows], workload="code", arm="mtp1", prompt_id="p")
    row = one(store)
    assert row["tau_method"] == "within-run"
    assert row["tau_lo"] < row["tau"] < row["tau_hi"]


def test_an_unknown_column_to_group_by_is_wrong_use(store: Path) -> None:
    add_run(store, "a", [[cycle("fold")]])
    with pytest.raises(Problem, match="not a column to group or pick by"):
        metrics.table(opened(store), by=["emitted); DROP VIEW cycles; --"])


def test_an_empty_store_gives_no_rows(store: Path) -> None:
    assert metrics.table(opened(store)).is_empty()


def test_shadow_is_left_out_unless_it_is_asked_for(store: Path) -> None:
    add_run(store, "a", [[cycle("fold")] * 8], workload="code", arm="shadow")
    add_run(store, "b", [[cycle("bet+"), cycle("fold")]], workload="code", arm="mtp1")
    data = opened(store)
    assert metrics.table(data)["arm"].to_list() == ["mtp1"]
    assert metrics.table(data, by=["workload"])["fold_rate"].to_list() == [0.5]
    assert metrics.table(data, where={"arm": "shadow"})["fold_rate"].to_list() == [1.0]


def test_a_first_prompt_that_is_slower_all_through_is_no_warm_up(store: Path) -> None:
    slow = [cycle("fold", wall_ms=110.0)] * 100
    usual = [cycle("fold", wall_ms=100.0)] * 500
    add_run(store, "a", [slow, usual], workload="code", arm="mtp1")
    row = one(store)
    assert row["warmup_cycles"] == 0
    assert row["ms_per_token"] == pytest.approx((100 * 110 + 500 * 100) / 600)


HIDING = ("tau", "tau_forward", "fold_rate", "draft_hit_rate", "draft_yield", "draft_accuracy",
          "drafting_share")  # fmt: skip


def test_where_cycles_may_be_missing_what_divides_by_them_is_unknown(store: Path) -> None:
    rows = [cycle("legacy+"), cycle("legacy-"), cycle("legacyfold")]
    add_run(store, "a", [rows], workload="code", arm="mtp2", hidden_cycles=True)
    row = one(store)
    assert {row[name] for name in HIDING} == {None}
    assert all("cycles may be missing from the log" in row[f"{name}_why"] for name in HIDING)
    assert all(row[f"{name}_lo"] is None for name in HIDING)
    assert row["committed_acceptance"] == 0.5  # every bet was printed
    assert (row["cycles"], row["emitted"]) == (3, 7)


def test_accuracy_is_unknown_beside_cycles_that_were_printed_nowhere(store: Path) -> None:
    add_run(store, "a", [[cycle("legacy+"), cycle("dark")]], workload="code", arm="mtp2")
    assert one(store)["draft_accuracy"] is None


def test_a_bet_without_its_margin_leaves_the_gated_fold_rate_unknown(store: Path) -> None:
    rows = [cycle("fold", margin=1.0), cycle("bet+")]
    add_run(store, "a", [rows], workload="code", arm="mtp1")
    assert one(store)["gated_fold_rate"] is None
    assert one(store)["fold_rate"] == 0.5


def test_one_row_has_one_source_of_time(store: Path) -> None:
    timed = [{"decode_ms": 60.0, "generated_tokens": 2}]
    add_run(store, "a", [[cycle("bet+", wall_ms=50.0)]], timed, workload="code", arm="mtp1")
    add_run(store, "b", [[]], [{"decode_ms": 300.0, "generated_tokens": 10}],
            workload="chat", arm="mtp1")  # fmt: skip
    apart = metrics.table(opened(store))
    assert dict(apart.select("workload", "time_basis").iter_rows()) == {
        "code": "cycles", "chat": "run",
    }  # fmt: skip
    together = metrics.table(opened(store), by=["arm"]).row(0, named=True)
    assert together["time_basis"] == "run"
    assert together["ms_per_token"] == pytest.approx(360 / 12)


def test_cycles_that_belong_to_no_request_are_no_request(store: Path) -> None:
    rows = [cycle("bet+", request_id=None), cycle("fold", request_id=None)]
    two = [{"overlapped": True}, {"overlapped": True}]
    add_run(store, "a", [rows, []], two, workload="agent", arm="mtp1")
    row = one(store)
    assert (row["requests"], row["clusters"], row["cycles"]) == (2, 2, 2)
    assert row["tau"] == 1.5
