"""The frames behind reports, against values worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Command
from frames import add_run, cycle, opened
from report_stores import build, real_store

from tauscope import catalog, ledger, margins, metrics, rosetta, turns
from tauscope.figures import evidence


@pytest.fixture
def legacy(store: Path) -> catalog.Catalog:
    """Ten cycles: 5 missed, 1 folded, 2 all accepted, 2 rejected; 17 tokens."""
    cycles = [
        *(cycle("miss", dialect="legacy") for _ in range(5)),
        cycle("legacyfold", dialect="legacy"),
        *(cycle("legacy+", dialect="legacy") for _ in range(2)),
        *(cycle("legacy-", dialect="legacy") for _ in range(2)),
    ]
    add_run(store, "ten", [cycles], [{"generated_tokens": 17}], arm="mtp2", draft_depth=2,
            workload="code")  # fmt: skip
    return opened(store)


def test_rosetta_by_hand(legacy: catalog.Catalog) -> None:
    rows = {row["name"]: row for row in rosetta.table(legacy).to_dicts()}
    # hits 3 folds' and bets' free drafts... : 1 + 2×(1+1) + 2×1 = 7; tested 5 + 1 + 4 + 4 = 14.
    assert rows["vllm_length"]["value"] == pytest.approx(1 + 7 / 10)
    assert rows["vllm_rate"]["value"] == pytest.approx(7 / 14)
    assert rows["sglang_length"]["value"] == pytest.approx(1.7)
    assert rows["sglang_rate"]["value"] == pytest.approx(7 / 20)
    assert rows["sglang_rate_old"]["value"] == pytest.approx(17 / 30)
    assert rows["tensorrt_rate"]["value"] == pytest.approx((17 - 10) / 20)
    assert rows["spec_bench"]["value"] == pytest.approx(1.7)
    # Five printed lines: one fold, four bets; 2 drafted each.
    assert rows["lines_committed"]["value"] == pytest.approx(7 / 10)
    assert rows["lines_committed_less_1"]["value"] == pytest.approx(2 / 5)
    assert rows["lines_tau"]["value"] == pytest.approx(1 + 7 / 5)


def test_rosetta_of_unlogged_cycles_knows_only_what_it_can(store: Path) -> None:
    rows = [cycle("legacy+", dialect="legacy"), cycle("dark", dialect="legacy")]
    add_run(store, "dark", [rows], arm="mtp2", draft_depth=2)
    found = {row["name"]: row for row in rosetta.table(opened(store)).to_dicts()}
    assert found["sglang_length"]["value"] == pytest.approx(4 / 2)
    assert found["vllm_rate"]["value"] is None
    assert found["vllm_rate"]["why"] == "a count it needs is unknown in some cycles"


def test_rosetta_leaves_instruments_and_off_arms_out(store: Path) -> None:
    for arm in ("off", "shadow"):
        add_run(store, arm, [[cycle("plain")]], arm=arm)
    assert rosetta.table(opened(store)).is_empty()


def test_a_mean_of_ratios_weighs_requests_alike(store: Path) -> None:
    short, long = [cycle("bet+")], [cycle("bet-")] * 9
    add_run(store, "two", [short, long], arm="mtp1", draft_depth=1)
    found = {row["name"]: row for row in rosetta.table(opened(store)).to_dicts()}
    assert found["tensorrt_rate"]["value"] == pytest.approx((1 / 1 + 0 / 9) / 2)
    assert found["sglang_rate"]["value"] == pytest.approx(1 / 10)


def test_the_depth_is_what_was_drafted_where_the_log_tells_less(store: Path) -> None:
    rows = [cycle("bet+", drafted=5, verified=5, accepted=2, emitted=3)] * 2
    add_run(store, "dspark", [rows], arm="dspark", draft_depth=1)
    found = {row["name"]: row for row in rosetta.table(opened(store)).to_dicts()}
    assert (found["sglang_rate"]["num"], found["sglang_rate"]["den"]) == (4, 10)
    assert found["tensorrt_rate"]["value"] == pytest.approx((6 - 2) / (5 * 2))


def test_outcomes_and_tokens_of_a_run(legacy: catalog.Catalog) -> None:
    rows = {row["outcome"]: row for row in ledger.outcomes(legacy).to_dicts()}
    assert {name: row["cycles"] for name, row in rows.items()} == {
        "missed": 5, "folded": 1, "all_accepted": 2, "rejected": 2,
    }  # fmt: skip
    assert rows["missed"]["share"] == pytest.approx(0.5)
    assert rows["all_accepted"]["emitted"] == 6
    run = ledger.runs(legacy).to_dicts()[0]
    assert (run["generated_tokens"], run["emitted"], run["unattributed_tokens"]) == (17, 17, 0)
    assert run["cycles_ms"] is None
    assert run["unattributed_ms"] is None


def test_stages_add_up_to_the_whole_cycle(store: Path) -> None:
    rows = [
        cycle("bet+", draft_ms=4.0, verify_ms=100.0, commit_ms=1.0, wall_ms=110.0),
        cycle("fold", draft_ms=4.0, decode_ms=66.0, wall_ms=71.0),
        cycle("plain", wall_ms=67.0),
    ]
    add_run(store, "staged", [rows], [{"decode_ms": 250.0}], arm="mtp1")
    data = opened(store)
    found = {row["stage"]: row["ms"] for row in ledger.stages(data).to_dicts()}
    assert found == {
        "draft": 8.0, "verify": 100.0, "commit": 1.0, "decode of folds": 66.0,
        "plain step": 67.0, "in no stage": 6.0,
    }  # fmt: skip
    per_token = ledger.stages(data).filter(stage="verify").item(0, "ms_per_token")
    assert per_token == pytest.approx(100 / 4)
    assert ledger.runs(data).item(0, "unattributed_ms") == pytest.approx(2.0)


def test_the_runs_of_an_experiments_arm_are_one_row(store: Path) -> None:
    runs = [("a", "off", 1), ("b", "mtp1", 2), ("c", "mtp1", 2), ("d", "off", None)]
    for log, arm, tokens in runs:
        add_run(store, log, [[cycle("bet+" if arm == "mtp1" else "plain")]],
                [{"generated_tokens": tokens}], arm=arm, workload="code",
                experiment="night" if log != "d" else None, source=f"{log}.log")  # fmt: skip
    found = ledger.stretches(opened(store)).select(
        "stretch", "source", "arm", "runs", "run_id", "cycles", "generated_tokens",
        "unattributed_tokens",
    )  # fmt: skip
    assert found.rows() == [
        ("d-0", "d.log", "off", 1, "d-0", 1, None, None),
        ("night", "night", "mtp1", 2, None, 2, 4, 0),
        ("night", "night", "off", 1, "a-0", 1, 1, 0),
    ]
    assert ledger.runs(opened(store))["cycles"].sum() == found["cycles"].sum() == 4


def test_a_selection_of_requests_keeps_their_runs_only(store: Path) -> None:
    for log, workload in (("a", "code"), ("b", "chat")):
        add_run(store, log, [[cycle("bet+")]], [{"workload": workload}], arm="mtp1")
    found = ledger.runs(opened(store), {"workload": "code"})
    assert found["run_id"].to_list() == ["a-0"]


def test_margins_fall_into_bins(store: Path) -> None:
    values = (0.2, 0.3, 1.4, 9.9)
    rows = [
        cycle("fold", margin=value, threshold=3.0, draft_token=1, next_token=token)
        for value, token in zip(values, (1, 2, 1, None), strict=True)
    ]
    add_run(store, "read", [[*rows, cycle("plain")]], arm="mtp1", workload="code")
    found = margins.by_bin(opened(store))
    assert found["readings"].sum() == 4
    assert found["share"].sum() == pytest.approx(1)
    first = found.row(0, named=True)
    assert first["margin_lo"] <= 0.2 < 0.3 < first["margin_hi"]
    assert (first["readings"], first["right"], first["known"]) == (2, 1, 2)
    assert found["threshold"].unique().to_list() == [3.0]


def test_margins_know_the_gated_draft_not_the_one_tested_for_free(store: Path) -> None:
    def read(kind: str, margin: float, **tokens: int) -> dict:
        return cycle(kind, margin=margin, threshold=3.0, **tokens)

    rows = [
        *(read("legacy+", 3.5) for _ in range(5)), *(read("legacy-", 3.5) for _ in range(3)),
        read("legacyfold", 1.5), read("legacyfold", 1.5, draft_token=1, next_token=2),
        read("bet-", 16.5), cycle("miss"),
    ]  # fmt: skip
    add_run(store, "gated", [rows], arm="mtp2", workload="chat")
    found = {row["margin_lo"]: row for row in margins.by_bin(opened(store)).to_dicts()}
    assert (found[3.0]["right"], found[3.0]["known"]) == (5, 8)
    assert (found[1.0]["right"], found[1.0]["known"], found[1.0]["readings"]) == (0, 1, 2)
    assert (found[2.0]["readings"], found[2.0]["share"], found[2.0]["known"]) == (0, 0.0, 0)
    last = found[max(found)]
    assert (last["right"], last["known"]) == (0, 1)


def test_the_last_bin_has_no_end_where_margins_lie_beyond_it(store: Path) -> None:
    rows = [cycle("fold", margin=value) for value in [0.5] * 400 + [14.5] * 3 + [99.0]]
    add_run(store, "far", [rows], arm="mtp1", workload="code")
    found = margins.by_bin(opened(store))
    assert found["margin_hi"].null_count() == 1
    assert found.row(-1, named=True)["margin_hi"] is None
    assert found["margin_hi"][:-1].null_count() == 0
    assert found["readings"].sum() == 404


@pytest.mark.parametrize(("workload", "share"), [("chat", 0.625), ("code", 0.75)])
def test_margins_of_real_logs_are_what_a_query_finds(
    workload: str, share: float, corpus: Path, command: Command, tmp_path: Path
) -> None:
    root = real_store(corpus, command, tmp_path / "real")
    rows = margins.by_bin(catalog.Catalog([root]), {"workload": workload})
    bin_ = rows.filter(margin_lo=3.0).row(0, named=True)
    assert bin_["right"] / bin_["known"] == share


def test_no_margin_gives_no_row(legacy: catalog.Catalog) -> None:
    assert margins.by_bin(legacy).is_empty()


def test_seconds_of_a_turn_are_of_the_same_prompts(store: Path) -> None:
    def arm(name: str, seconds: dict[str, float], prefill: float | None) -> None:
        columns = [
            {"workload": "code", "prompt_id": prompt, "decode_ms": 1000 * value,
             "prefill_ms": prefill}
            for prompt, value in seconds.items()
        ]  # fmt: skip
        add_run(store, name, [[] for _ in columns], columns, arm=name)

    arm("off", {"p1": 10.0, "p2": 20.0, "p3": 99.0}, 2000.0)
    arm("mtp1", {"p1": 9.0, "p2": 16.0}, 1000.0)
    row = turns.table(opened(store)).row(0, named=True)
    assert row["pairs"] == 2
    assert row["off_s"] == pytest.approx((12 + 22) / 2)
    assert row["treated_s"] == pytest.approx((10 + 17) / 2)
    # Saved 2 and 5: mean 3.5, standard error 1.5, t(0.975, 1) = 12.7062.
    assert row["saved_s"] == pytest.approx(3.5)
    assert row["saved_s_lo"] == pytest.approx(3.5 - 12.7062 * 1.5, rel=1e-4)


def test_decode_alone_where_an_arm_has_no_prefill(store: Path) -> None:
    for name, prefill, decode in (("off", 500.0, 4000.0), ("mtp1", None, 3000.0)):
        add_run(store, name, [[]], [{"prompt_id": "p", "decode_ms": decode, "prefill_ms": prefill}],
                arm=name, workload="code")  # fmt: skip
    row = turns.table(opened(store)).row(0, named=True)
    assert (row["off_s"], row["treated_s"], row["prefill"]) == (4.0, 3.0, False)
    assert row["saved_s_lo"] is None


@pytest.mark.parametrize("scenario", ("sample", "hostile", "old"))
def test_a_figures_query_gives_the_rows_behind_it(scenario: str, tmp_path: Path) -> None:
    data = catalog.Catalog([build(scenario, tmp_path / "s")])
    rows = metrics.table(data, (*evidence.KEYS,))
    assert rows.height
    sums = {
        "tau": ("SUM(emitted)", "COUNT(*)"),
        "committed_acceptance": ("SUM(accepted)", "SUM(verified)"),
        "fold_rate": ("COUNT(*) FILTER (outcome = 'folded')", "COUNT(*)"),
        "draft_yield": ("SUM(free_accepted + accepted)", "SUM(drafted)"),
    }
    for row in rows.iter_rows(named=True):
        for name, (num, den) in sums.items():
            if not row[f"{name}_den"]:
                continue
            asked = data.ask(f"SELECT {num} AS num, {den} AS den FROM "
                             f"({evidence.cycles(row, name)})")  # fmt: skip
            assert asked.row(0) == (row[f"{name}_num"], row[f"{name}_den"])
