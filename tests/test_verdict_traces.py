"""Each condition of a verdict, by a small trace that fails that one alone, beside a clean one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from frames import add_run, cycle, opened

from tauscope import speedup
from tauscope.economics import costs, modelled


def arm(
    root: Path,
    name: str,
    ms: float,
    kinds: dict[str, int],
    *,
    prompts: int = 6,
    more_tokens: int = 0,
    slower: float = 0.0,
    jitter: float = 0.01,
    hashed: bool = True,
    **run: Any,
) -> None:
    """A run of `prompts` texts: so many cycles of each kind, `ms` a token, named and counted.

    `more_tokens`: beyond those emitted; `slower`: growth of a cycle's time from one prompt
    to the next; `jitter`: spread between prompts, so that intervals have a width.
    """
    requests, columns = [], []
    for number in range(prompts):
        scale = ms * (1 + slower * number) * (1 + jitter * (-1) ** number)
        rows = []
        for kind, count in kinds.items():
            row = cycle(kind)
            wall = scale * row["emitted"]
            stages = {"draft_ms": 0.0, "decode_ms": wall} if kind == "fold" else {"draft_ms": 0.0}
            rows += [{**row, "wall_ms": wall, **stages}] * count
        emitted = sum(row["emitted"] for row in rows)
        requests.append(rows)
        columns.append(
            {"prompt_id": f"p{number}", "generated_tokens": emitted + more_tokens,
             "output_hash": f"sha256:{number}" if hashed else None,
             "decode_ms": scale * emitted}
        )  # fmt: skip
    add_run(root, name, requests, columns, workload="code", arm=name,
            **{"baseline_drafts": False, **run})  # fmt: skip


BETS = {"bet+": 40, "fold": 20}
PLAIN = {"plain": 100}


def measured(root: Path, treated: dict[str, Any], base: dict[str, Any]) -> list[str]:
    """The reasons of the measured verdict; the treated arm is 10 % faster unless it says else."""
    arm(root, "mtp1", **{"ms": 9.0, "kinds": BETS, **treated})
    arm(root, "off", **{"ms": 10.0, "kinds": PLAIN, **base})
    return speedup.table(opened(root)).row(0, named=True)["reasons"]


@pytest.mark.parametrize(
    ("reason", "treated", "base"),
    [
        ("interval", {"jitter": 0.1}, {"jitter": -0.1}),
        ("bets", {"kinds": {"bet+": 4, "fold": 92}}, {}),
        ("treatment", {"kinds": {"bet+": 20, "plain": 60}}, {}),
        ("tokens", {"more_tokens": 3}, {}),
        ("baseline", {}, {"baseline_drafts": True}),
        ("outputs", {"hashed": False}, {}),
        ("outputs", {"kinds": {"bet+": 44, "fold": 20}}, {}),
        ("drift", {"slower": 0.02, "ms": 8.5}, {}),
    ],
)
def test_one_condition_fails_alone(
    store: Path, reason: str, treated: dict[str, Any], base: dict[str, Any]
) -> None:
    assert measured(store, treated, base) == [reason]


def test_a_clean_pair_of_arms_has_no_reason(store: Path) -> None:
    assert measured(store, {}, {}) == []


def test_without_names_there_are_no_pairs_and_no_outputs_to_compare(store: Path) -> None:
    for name, ms, kinds in (("mtp1", 9.0, BETS), ("off", 10.0, PLAIN)):
        arm(store, name, ms, kinds)
    # The same traces, their prompts unnamed: still six clusters in each arm.
    import polars as pl

    for path in (store / "requests").glob("*.parquet"):
        rows = pl.read_parquet(path).with_columns(pl.lit(None, pl.String).alias("prompt_id"))
        rows.write_parquet(path)
    row = speedup.table(opened(store)).row(0, named=True)
    assert row["clusters"] == 6
    assert row["reasons"] == ["pairs", "outputs"]


def reasons_modelled(root: Path, arm_name: str = "mtp1") -> list[str]:
    data = opened(root)
    rows = modelled.table(data, costs.each(data))
    return next(r["reasons"] for r in rows.iter_rows(named=True) if r["arm"] == arm_name)


@pytest.mark.parametrize(("prompts", "reasons"), [(6, []), (4, ["clusters"])])
def test_too_few_prompts_for_a_modelled_verdict(
    store: Path, prompts: int, reasons: list[str]
) -> None:
    # Folds at 10 ms are the plain step; a bet makes two tokens in 16.
    kinds = {"bet+": 40, "fold": 20}
    arm(store, "mtp1", 10.0, kinds, prompts=prompts)
    cheaper_bets(store)
    assert reasons_modelled(store) == reasons


def test_sources_of_the_plain_step_that_disagree(store: Path) -> None:
    arm(store, "mtp1", 10.0, {"bet+": 40, "fold": 20})
    cheaper_bets(store)
    arm(store, "off", 10.5, PLAIN)  # 5 % from what the folds say
    assert reasons_modelled(store) == ["sources"]


def cheaper_bets(root: Path) -> None:
    """Let each bet of the stored arm take 80 % of the time it had."""
    import polars as pl

    for path in (root / "cycles").glob("mtp1*.parquet"):
        pl.read_parquet(path).with_columns(
            pl.when(pl.col("outcome") == "all_accepted")
            .then(pl.col("wall_ms") * 0.8)
            .otherwise(pl.col("wall_ms"))
            .alias("wall_ms")
        ).write_parquet(path)
