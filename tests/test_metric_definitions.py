"""Each metric over hand-written rows: (rows, query, expected), values computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from frames import add_run, cycle, opened

from tauscope import metrics

TEN = ["miss"] * 5 + ["legacyfold"] + ["legacy+"] * 2 + ["legacy-"] * 2
DARK = ["dark"] * 5 + ["legacyfold"] + ["legacy+"] * 2 + ["legacy-"] * 2
CONTINUOUS = ["fold"] * 102 + ["bet+"] * 125 + ["bet-"] * 4

ACCEPTANCE = "committed_acceptance(accepted, verified, outcome)"
HIT_RATE = "draft_hit_rate(free_checked, free_accepted, verified, accepted)"

CASES = [
    # 5 + 2 + 6 + 4 tokens in ten cycles.
    ("tau", TEN, "tau(emitted)", 1.7),
    ("tau_dark", DARK, "tau(emitted)", 1.7),
    ("tau_231", CONTINUOUS, "tau(emitted)", 356 / 231),
    # 5 misses at one pass, 5 others at two.
    ("tau_forward", TEN, "tau_forward(emitted, target_forwards)", 17 / 15),
    ("tau_forward_dark", DARK, "tau_forward(emitted, target_forwards)", None),
    ("acceptance", TEN, ACCEPTANCE, 0.5),
    ("acceptance_dark", DARK, ACCEPTANCE, 0.5),
    ("acceptance_231", CONTINUOUS, ACCEPTANCE, 125 / 129),
    ("acceptance_no_bet", ["fold", "plain"], ACCEPTANCE, None),
    ("fold_rate", TEN, "fold_rate(outcome)", 0.1),
    ("fold_rate_231", CONTINUOUS, "fold_rate(outcome)", 102 / 231),
    ("fold_rate_unknown", ["fold", "unknown"], "fold_rate(outcome)", None),
    # Free checks 10, of them 5 right; verified 4, of them 2.
    ("hit_rate", TEN, HIT_RATE, 7 / 14),
    ("hit_rate_dark", DARK, HIT_RATE, None),
    # Drafted 5 x 1 + 5 x 2.
    ("yield", TEN, "draft_yield(free_accepted, accepted, drafted)", 7 / 15),
    ("drafting_share", ["fold", "plain", "plain", "bet+"], "drafting_share(drafted)", 0.5),
    ("tau_unknown", ["bet+", "unknown"], "tau(emitted)", None),
    ("drafting_share_unknown", ["bet+", "unknown"], "drafting_share(drafted)", None),
]  # fmt: skip


@pytest.mark.parametrize(("kinds", "expression", "expected"), [c[1:] for c in CASES],
                         ids=[c[0] for c in CASES])  # fmt: skip
def test_macro_over_hand_written_rows(
    store: Path, kinds: list[str], expression: str, expected: float | None
) -> None:
    add_run(store, "log", [[cycle(kind) for kind in kinds]])
    value = opened(store).query(f"SELECT {expression} AS value FROM cycles").item()
    assert value == pytest.approx(expected, abs=1e-12) if expected is not None else value is None


def test_an_empty_selection_has_no_metric(store: Path) -> None:
    add_run(store, "log", [[cycle("bet+")]])
    row = opened(store).query(
        "SELECT tau(emitted), fold_rate(outcome), drafting_share(drafted), "
        "ms_per_token(wall_ms, emitted) FROM cycles WHERE workload = 'nothing'"
    )
    assert row.row(0) == (None, None, None, None)


def test_fallback_cycles_stay_out_of_acceptance(store: Path) -> None:
    fallback = cycle("bet+", outcome="fallback", verified=3, accepted=3, emitted=4, drafted=3)
    add_run(store, "log", [[cycle("bet+"), cycle("bet-"), fallback]])
    value = (
        opened(store)
        .query("SELECT committed_acceptance(accepted, verified, outcome) FROM cycles")
        .item()
    )
    assert value == 0.5


def test_draft_accuracy_counts_folds_by_the_next_token(store: Path) -> None:
    rows = [
        cycle("fold", draft_token=7, next_token=7),  # right, though folded
        cycle("fold", draft_token=7, next_token=8),
        cycle("fold"),  # nothing tells
        cycle("bet+"),
        cycle("bet-"),
        cycle("miss"),  # judged free of charge, and wrong
        cycle("legacyfold"),  # its first draft was confirmed free of charge
        cycle("unknown", drafted=2, verified=1, accepted=1),  # which draft was free isn't known
    ]
    add_run(store, "log", [rows])
    row = opened(store).query(
        "SELECT draft_accuracy_num(r, outcome) AS num, draft_accuracy_den(r, outcome) AS den, "
        "draft_accuracy(r, outcome) AS v FROM (SELECT outcome, first_draft_right(drafted, "
        "free_checked, free_accepted, verified, accepted, draft_token, next_token) AS r "
        "FROM cycles)"
    )
    assert row.row(0) == (3, 6, 0.5)


def test_gated_folds_divide_by_the_margins_read(store: Path) -> None:
    rows = [cycle("fold", margin=1.0), cycle("bet+", margin=4.0), cycle("bet+", margin=5.0),
            cycle("bet-", margin=3.5), cycle("miss")]  # fmt: skip
    add_run(store, "log", [rows])
    query = "SELECT gated_fold_rate(outcome, margin) FROM cycles"
    assert opened(store).query(query).item() == 0.25  # the miss never came to the gate


def test_verify_over_draft_is_taken_over_bets_alone(store: Path) -> None:
    rows = [
        cycle("bet+", verify_ms=100.0, draft_ms=4.0),
        cycle("bet-", verify_ms=116.0, draft_ms=4.0),
        cycle("fold", draft_ms=50.0),
    ]
    add_run(store, "log", [rows])
    query = "SELECT verify_draft_ratio(outcome, verify_ms, draft_ms) FROM cycles"
    assert opened(store).query(query).item() == 27.0


def test_a_fold_rate_is_a_ratio_of_sums_not_a_mean_of_ratios(store: Path) -> None:
    add_run(store, "log", [[cycle("fold")], [cycle("bet+")] * 9], workload="code", arm="mtp1")
    row = metrics.table(opened(store)).row(0, named=True)
    assert row["fold_rate"] == 0.1  # the mean of the requests' ratios would be 0.5
    assert (row["fold_rate_num"], row["fold_rate_den"]) == (1, 10)


def test_the_table_and_the_macros_agree(store: Path) -> None:
    add_run(store, "log", [[cycle(k, draft_ms=2.0, verify_ms=9.0, wall_ms=30.0) for k in TEN]] * 3,
            workload="code", arm="mtp1")  # fmt: skip
    data = opened(store)
    row = metrics.table(data).row(0, named=True)
    macros = data.query(
        "SELECT tau(emitted) AS tau, tau_forward(emitted, target_forwards) AS tau_forward, "
        "committed_acceptance(accepted, verified, outcome) AS committed_acceptance, "
        "fold_rate(outcome) AS fold_rate, gated_fold_rate(outcome, margin) AS gated_fold_rate, "
        "draft_hit_rate(free_checked, free_accepted, verified, accepted) AS draft_hit_rate, "
        "draft_yield(free_accepted, accepted, drafted) AS draft_yield, "
        "drafting_share(drafted) AS drafting_share, "
        "ms_per_token(wall_ms, emitted) AS ms_per_token, "
        "verify_draft_ratio(outcome, verify_ms, draft_ms) AS verify_draft_ratio FROM cycles"
    ).row(0, named=True)
    assert {name: row[name] for name in macros} == pytest.approx(macros)


def test_every_metric_says_what_it_divides_by(store: Path) -> None:
    add_run(store, "log", [[cycle("bet+")]])
    comments = dict(
        opened(store)
        .query("SELECT function_name, comment FROM duckdb_functions() "
               "WHERE function_type = 'macro' AND NOT internal")
        .iter_rows()
    )  # fmt: skip
    for metric in metrics.METRICS:
        assert comments[metric.name], metric.name
        assert f"[{metric.unit}]" in comments[metric.name], metric.name
