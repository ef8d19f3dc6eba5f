"""The bundled real traces are whole, and say of themselves what the experiment said."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tauscope.catalog import Catalog
from tauscope.compare import compare
from tauscope.economics import costs, waterfall
from tauscope.schema import WORKLOADS
from tauscope.select import opened

RECORDED = Path(__file__).resolve().parents[1] / "traces" / "recorded"


@pytest.fixture(scope="module")
def data() -> Catalog:
    return Catalog([RECORDED])


@pytest.fixture(scope="module")
def said() -> dict:
    return json.loads((RECORDED / "experiment.json").read_text(encoding="utf-8"))


def test_real_cycles_of_all_workloads_and_arms(data: Catalog, said: dict) -> None:
    rows = data.query("SELECT workload, arm, simulated, COUNT(*) AS n FROM cycles GROUP BY ALL")
    assert not rows["simulated"].any()
    assert set(rows["workload"]) == set(WORKLOADS)
    assert rows["arm"].n_unique() >= 4
    assert rows.height == 5 * rows["arm"].n_unique()
    assert data.runs.height == said["cells"] == said["done"]
    assert not data.damaged
    assert sum(path.stat().st_size for path in RECORDED.rglob("*") if path.is_file()) < 5_000_000


def test_tokens_are_conserved_in_every_run(data: Catalog) -> None:
    rows = data.query(
        """
        SELECT run_id, ANY_VALUE(q.generated_tokens) AS made, SUM(c.emitted) AS emitted
        FROM requests AS q JOIN cycles AS c USING (run_id) GROUP BY run_id
        """
    )
    assert rows.height == data.runs.height
    assert (rows["made"] == rows["emitted"]).all()
    assert data.query("SELECT COUNT(*) AS n FROM refused")["n"].item() == 0
    assert data.runs["unfit_lines"].sum() == 0


def test_outputs_are_equal_or_the_difference_is_listed(data: Catalog, said: dict) -> None:
    rows = data.query(
        """
        SELECT prompt_id, arm, output_hash <> FIRST(output_hash)
          OVER (PARTITION BY prompt_id ORDER BY arm <> 'off') AS differs
        FROM requests
        """
    ).filter(pl.col("arm") != "off")
    differ = {(p, a) for p, a, d in rows.iter_rows() if d}
    listed = {(r["prompt_id"], r["arm"]) for r in said["outputs"] if r["equal"] is False}
    assert differ == listed
    assert all(r["equal"] is not None and r["unit"] == "token" for r in said["outputs"])


def test_compare_agrees_with_the_experiments_own_table(said: dict) -> None:
    table = {(row["arm"], row["workload"]): row for row in said["speedups"]}
    for arm in {arm for arm, _ in table}:
        sides = [opened(f"{RECORDED}:arm={name}") for name in ("off", arm)]
        for row in compare(*sides).speedups.iter_rows(named=True):
            mine = table[arm, row["workload"]]
            for name in ("speedup", "speedup_lo", "speedup_hi", "pairs"):
                assert row[name] == pytest.approx(mine[name], rel=1e-9)


def test_the_waterfall_leaves_at_most_one_percent_open(data: Catalog) -> None:
    rows = waterfall.table(costs.each(data))
    open_ = rows.filter(pl.col("part") == "unattributed")
    assert open_.height >= 15 and open_["ms_each_token"].null_count() == 0
    assert (open_["ms_each_token"].abs() <= 0.01 * open_["ms_per_token"]).all()
