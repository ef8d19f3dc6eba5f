"""Speed-up of an arm over its off arm: pairs, clusters, matching, verdicts, flips."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from frames import add_run, cycle, opened

from tauscope import arms, speedup


def arm(
    root: Path, log: str, name: str, times: dict[str | None, tuple[float, int]], **run: Any
) -> None:
    """A run whose requests (by prompt id) took so many ms for so many tokens; no cycle lines."""
    columns = [
        {"prompt_id": prompt, "decode_ms": ms, "generated_tokens": tokens, "output_hash": "same"}
        for prompt, (ms, tokens) in times.items()
    ]
    add_run(root, log, [[] for _ in columns], columns,
            **{"workload": "code", "arm": name, "baseline_drafts": False, **run})  # fmt: skip


def row(root: Path) -> dict[str, Any]:
    return speedup.table(opened(root)).row(0, named=True)


def test_pairs_are_the_prompts_that_both_arms_ran(store: Path) -> None:
    arm(store, "a", "off", {"p1": (1000, 100), "p2": (3000, 100), "only-off": (9e9, 1)})
    arm(store, "b", "mtp1", {"p1": (900, 100), "p2": (2700, 100), "only-mtp": (1, 9000)})
    found = row(store)
    # (1000 + 3000) / (900 + 2700), and both prompts agree exactly.
    assert found["speedup"] == pytest.approx(4000 / 3600)
    assert (found["pairs"], found["clusters"]) == (2, 2)
    assert found["speedup_lo"] == pytest.approx(found["speedup_hi"])


def test_paired_interval_by_hand(store: Path) -> None:
    arm(store, "a", "off", {"p1": (110, 10), "p2": (100, 10), "p3": (90, 10)})
    arm(store, "b", "mtp1", {"p1": (100, 10), "p2": (100, 10), "p3": (100, 10)})
    found = row(store)
    # S = 300/300. Deviations of log S a prompt: base/300 - treated/300 = +1/30, 0, -1/30;
    # n/(n-1) Σ d² = 3/2 x 2/900 = 1/300; t(0.975, 2) = 4.302653.
    half = 4.302652729911275 * (1 / 300) ** 0.5
    assert found["speedup"] == pytest.approx(1.0)
    assert found["speedup_hi"] - 1 == pytest.approx(half, rel=1e-6)


def test_one_pair_has_no_interval_and_says_so(store: Path) -> None:
    arm(store, "a", "off", {"p1": (1000, 100)})
    arm(store, "b", "mtp1", {"p1": (800, 100)})
    found = row(store)
    assert found["speedup"] == pytest.approx(1.25)
    assert found["speedup_lo"] is None
    assert "no spread to see" in found["speedup_why"]
    assert found["verdict"] == "undecided"
    assert {"interval", "clusters", "pairs"} <= set(found["reasons"])


def test_unnamed_prompts_are_compared_as_they_are_and_it_is_said(store: Path) -> None:
    arm(store, "a", "off", {None: (1000, 100)})
    arm(store, "b", "mtp1", {None: (800, 100)})
    found = row(store)
    assert found["speedup"] == pytest.approx(1.25)
    assert found["pairs"] == 0
    assert any("prompts have no names" in remark for remark in found["remarks"])


def test_prompts_that_differ_between_the_arms_give_no_speed_up(store: Path) -> None:
    arm(store, "a", "off", {"p1": (1000, 100)})
    arm(store, "b", "mtp1", {"p2": (800, 100)})
    found = row(store)
    assert found["speedup"] is None
    assert found["speedup_why"] == "the arms have no prompt in common"


@pytest.mark.parametrize("column", ["machine", "model", "experiment"])
def test_arms_match_only_on_the_same(store: Path, column: str) -> None:
    arm(store, "a", "off", {"p1": (1000, 100)}, **{column: "one"})
    arm(store, "b", "mtp1", {"p1": (800, 100)}, **{column: "another"})
    found = row(store)
    assert found["speedup"] is None
    assert found["speedup_why"].startswith("no off arm with the same workload")
    assert found["remarks"] == []


def test_shadow_is_an_instrument_and_never_treated(store: Path) -> None:
    arm(store, "a", "off", {"p1": (1000, 100)})
    arm(store, "b", "shadow", {"p1": (1100, 100)})
    assert speedup.table(opened(store)).is_empty()


def test_a_baseline_that_drafts_is_remarked_and_earns_no_verdict(store: Path) -> None:
    prompts = [f"p{n}" for n in range(6)]
    arm(store, "a", "off", {p: (1000, 100) for p in prompts}, baseline_drafts=True)
    arm(store, "b", "mtp1", {p: (900 + n, 100) for n, p in enumerate(prompts)})
    found = row(store)
    assert "baseline" in found["reasons"]
    assert any("baseline that drafts" in remark for remark in found["remarks"])


def treated(root: Path, log: str, ms: float, **run: Any) -> None:
    """Six prompts of 40 bets and 10 folds, all in cycles of so many ms."""
    rows = [[cycle("bet+", wall_ms=2 * ms)] * 40 + [cycle("fold", wall_ms=ms)] * 10] * 6
    made = [{"prompt_id": f"p{n}", "generated_tokens": 90, "output_hash": f"h{n}",
             "decode_ms": 90 * ms} for n in range(6)]  # fmt: skip
    add_run(root, log, rows, made, arm="mtp1", **run)


def plain(root: Path, log: str, ms: float, **run: Any) -> None:
    rows = [[cycle("plain", wall_ms=ms + 0.001 * n)] * 90 for n in range(6)]
    made = [{"prompt_id": f"p{n}", "generated_tokens": 90, "output_hash": f"h{n}",
             "decode_ms": 90 * ms} for n in range(6)]  # fmt: skip
    add_run(root, log, rows, made, arm="off", baseline_drafts=False, **run)


def test_verdicts_on_and_off_and_the_flip_between_them(store: Path) -> None:
    treated(store, "a", 9.0, workload="agent")
    plain(store, "b", 10.0, workload="agent")
    treated(store, "c", 11.0, workload="chat")
    plain(store, "d", 10.0, workload="chat")
    data = opened(store)
    found = speedup.table(data)
    assert dict(found.select("workload", "verdict").iter_rows()) == {"agent": "on", "chat": "off"}
    assert found["reasons"].to_list() == [[], []]
    flips = speedup.flips(found)
    assert flips.select("gains", "loses").row(0) == ("agent", "chat")
    pooled = speedup.pooled(data).row(0, named=True)
    assert pooled["speedup"] == pytest.approx(1.0, abs=0.01)


def test_outputs_that_differ_in_length_by_more_than_five_percent_undo_a_verdict(
    store: Path,
) -> None:
    plain(store, "a", 10.0, workload="agent")
    rows = [[cycle("bet+", wall_ms=18.0)] * 50] * 6
    made = [{"prompt_id": f"p{n}", "generated_tokens": 100, "output_hash": f"h{n}",
             "decode_ms": 900.0} for n in range(6)]  # fmt: skip
    add_run(store, "b", rows, made, workload="agent", arm="mtp1")
    assert row(store)["reasons"] == ["outputs"]


def test_a_path_that_slows_down_over_the_run_is_drift(store: Path) -> None:
    plain(store, "a", 10.0, workload="agent")
    rows = [[cycle("bet+", wall_ms=17.0 + 0.9 * n)] * 45 for n in range(6)]
    made = [{"prompt_id": f"p{n}", "generated_tokens": 90, "output_hash": f"h{n}",
             "decode_ms": 900.0} for n in range(6)]  # fmt: skip
    add_run(store, "b", rows, made, workload="agent", arm="mtp1")
    found = row(store)
    assert found["drift"] == pytest.approx((17 + 0.9 * 4.5) / (17 + 0.9 * 0.5) - 1, rel=1e-6)
    assert "drift" in found["reasons"]


def growing(slower: float = 1.0, tokens: int = 192, each: float = 0.01) -> list[dict]:
    """Plain cycles of one request that get dearer with every token of context."""
    return [cycle("plain", wall_ms=(10 + each * pos) * slower, pos=pos) for pos in range(tokens)]


def test_a_growing_context_is_no_drift(store: Path) -> None:
    """Two requests at the same positions: only one of two machines gets slower."""
    add_run(store, "a", [growing()] * 3, arm="off", workload="agent")
    add_run(store, "b", [growing(), growing(), growing(1.1)], arm="off", workload="chat")
    moved = arms.drifts(opened(store), {}).select("workload", "stretch", "cycles", "drift")
    assert moved.rows() == [
        ("agent", "a-0", 192, pytest.approx(0)),
        ("chat", "b-0", 192, pytest.approx(0.1)),
    ]


def test_the_runs_of_an_experiment_drift_as_one(store: Path) -> None:
    """Their order is the experiment's, not that of their names."""
    for name, place, slower in (("c", 0, 1.0), ("a", 1, 1.0), ("b", 2, 1.2)):
        fact = {"name": "experiment_order", "value": str(place), "line": None}
        add_run(store, name, [growing(slower)], arm="off", workload="agent",
                experiment="e", facts=[fact])  # fmt: skip
    (row,) = arms.drifts(opened(store), {}).rows(named=True)
    assert (row["stretch"], row["cycles"]) == ("e", 192)
    assert row["drift"] == pytest.approx(0.2)


def test_cycles_that_emit_more_are_no_drift(store: Path) -> None:
    """Blocks that are accepted further are cheaper a token, on a machine that is steady."""
    add_run(store, "a", [
        [cycle("bet+", wall_ms=20.0, verified=3, accepted=2, emitted=3)] * 50 + [cycle("plain")]
        + [cycle("bet+", wall_ms=20.0, verified=3, accepted=1, emitted=2)] * 50
        + [cycle("bet+", wall_ms=22.0, verified=3, accepted=2, emitted=3)] * 50
    ], arm="block3", workload="agent")  # fmt: skip
    (row,) = arms.drifts(opened(store), {}).rows(named=True)
    assert row["drift"] == pytest.approx(0.1)


def test_treated_arms_without_bets_are_no_treatment(store: Path) -> None:
    plain(store, "a", 10.0, workload="agent")
    rows = [[cycle("plain", wall_ms=9.0 + 0.01 * n)] * 90 for n in range(6)]
    made = [{"prompt_id": f"p{n}", "generated_tokens": 90, "output_hash": f"h{n}",
             "decode_ms": 810.0} for n in range(6)]  # fmt: skip
    add_run(store, "b", rows, made, workload="agent", arm="mtp1")
    assert row(store)["reasons"] == ["bets", "treatment"]


@pytest.mark.parametrize(
    ("base", "treated", "equal"),
    [
        ("fnv1a64:1", "fnv1a64:1", True),
        ("fnv1a64:1", "fnv1a64:2", False),
        ("fnv1a64:1", "sha256:1", None),  # token ids against text: nothing was compared
        ("fnv1a64:1", None, None),
        ("plain", "plain", True),
    ],
)
def test_outputs_are_compared_by_hashes_of_one_kind(
    store: Path, base: str, treated: str | None, equal: bool | None
) -> None:
    for log, name, output in (("a", "off", base), ("b", "mtp1", treated)):
        made = {"prompt_id": "p", "decode_ms": 90.0, "generated_tokens": 9, "output_hash": output}
        add_run(store, log, [[]], [made], workload="code", arm=name, baseline_drafts=False)
    assert row(store)["outputs_equal"] is equal
