"""Real and simulated rows in one chart or table: each says which it is, no title lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from frames import add_run, cycle, opened

from tauscope import compare, speedup
from tauscope.batch import index, render
from tauscope.economics import routing
from tauscope.figures import cause_charts, cause_tables, cause_words, charts, tables
from tauscope.select import Selection


def arm_of(
    root: Path, log: str, arm: str, ms: float, workloads: tuple[str, ...], **run: Any
) -> None:
    """Six prompts a workload, with `ms` a token, one a little slower than another."""
    requests, columns = [], []
    for workload in workloads:
        for number in range(6):
            # Speculation helps code and harms chat.
            each = ms * (1.3 if workload == "chat" and arm != "off" else 1.0) + number / 100
            kind = "plain" if arm == "off" else "bet+"
            wall = each if arm == "off" else 2 * each
            requests.append([cycle(kind, wall_ms=wall)] * 10)
            columns.append({"workload": workload, "prompt_id": f"{workload}{number}",
                            "generated_tokens": 10 if arm == "off" else 20,
                            "output_hash": "h"})  # fmt: skip
    add_run(root, log, requests, columns, arm=arm, model="m", **run)


@pytest.fixture
def mixed(store: Path) -> Any:
    """Real: arm `steady` without a flip and `torn` with one; simulated: `mtp1` without one."""
    both = ("code", "chat")
    for simulated, machine in ((False, "desk"), (True, "simulated")):
        mark = {"simulated": simulated, "machine": machine, "baseline_drafts": False}
        arm_of(store, f"off{simulated}", "off", 10.0, both, **mark)
        if simulated:
            arm_of(store, "mtp1", "mtp1", 7.0, both, **mark)
        else:
            arm_of(store, "steady", "steady", 6.0, both, **mark)
            arm_of(store, "torn", "torn", 9.0, both, **mark)
    return opened(store)


def about(chart: Any) -> dict[str, Any]:
    return chart.to_dict()["usermeta"]["tauscope"]


def test_a_title_says_simulated_where_every_row_is(mixed: Any) -> None:
    rows = speedup.table(mixed)
    both, alone = charts.speedup(rows), charts.speedup(rows.filter("simulated"))
    assert about(both)["title"] == "Speed-up over the off arm"
    assert about(both)["simulated"] == [False, True]
    assert about(alone)["title"] == "Speed-up over the off arm · simulated"
    names = [row["row"] for row in render.chart_rows(both.to_dict())]
    assert all(name.endswith((" · real", " · simulated")) for name in names)
    names = [row["row"] for row in render.chart_rows(alone.to_dict())]
    assert names == ["code", "chat"]


def test_every_row_of_a_table_says_which_data_it_is_of(mixed: Any) -> None:
    found = tables.speedups(speedup.table(mixed), speedup.pooled(mixed),
                            speedup.flips(speedup.table(mixed)))  # fmt: skip
    told = [f"{row[0].text} {row[0].small}" for row in found.rows]
    assert all("real" in name or "simulated" in name for name in told)


def test_only_an_arm_with_a_flip_has_its_pooled_figure_struck_out(mixed: Any) -> None:
    rows = speedup.table(mixed)
    flips = speedup.flips(rows)
    assert flips["arm"].unique().to_list() == ["torn"]
    found = tables.speedups(rows, speedup.pooled(mixed), flips)
    struck = [row[0].small for row in found.rows if row[0].text == "all pooled"]
    assert struck == ["torn · real"]
    pooled = [row for row in index._answers(index.collect(mixed)) if row["pooled"]]
    assert [(row["name"], row["arm"]) for row in pooled] == [("all pooled · real", "torn")]


def test_routing_says_which_arm_and_which_data_it_shows(mixed: Any) -> None:
    rows = routing.table(mixed)
    shown = {row["simulated"]: row["arm"] for row in rows.to_dicts()}
    text = cause_words.routing_answer(rows.to_dicts()).replace("\u2068", "").replace("\u2069", "")
    assert text.startswith(f"Under {shown[False]}, the arm that decides most, speculation is ")
    assert "In the simulated runs, under mtp1, " in text
    heading = about(cause_charts.routes(rows))["title"]
    assert heading.endswith(f"under {shown[False]} (real) and mtp1 (simulated)")
    mix = cause_tables.blended(routing.example(rows))
    assert mix.title == f"What a mix comes to, under {shown[False]} (real)"


def test_timing_names_the_arm_with_what_it_says() -> None:
    def row(arm: str, workload: str, bottleneck: str) -> dict[str, Any]:
        return {"simulated": False, "arm": arm, "workload": workload, "bottleneck": bottleneck,
                "because": "x"}  # fmt: skip

    rows = [row("a", "code", "drafter"), row("b", "code", "verifier"), row("b", "chat", "none")]
    text = cause_words.timing_answer(rows, []).replace("\u2068", "").replace("\u2069", "")
    assert text == (
        "Under a: what holds speculation back is the drafter for code. Under b: what holds "
        "speculation back is the verifier for code; no part stands out for chat."
    )


def test_only_paired_rows_tell_of_different_experiments(store: Path) -> None:
    for arm, ms in (("off", 10.0), ("mtp1", 8.0)):
        arm_of(store, arm, arm, ms, ("code",), machine="desk", experiment="night")
    arm_of(store, "more", "off", 10.0, ("code", "chat", "prose"), machine="other", experiment="e")
    data = opened(store)
    found = compare.compare(
        *(Selection(f"arm {arm}", data, {"arm": [arm]}) for arm in ("off", "mtp1"))
    )
    assert not any("experiments" in text for text in found.speedups.item(0, "remarks"))
    (text,) = found.only_a
    assert text.startswith("only in arm off: workloads ")
    assert text.endswith(", machine other, model m")


@pytest.mark.parametrize(
    ("prefill", "title"),
    [((True, True), "a whole request"), ((True, False), "a whole request"),
     ((False, False), "the decode of a request, without prefill")],
)  # fmt: skip
def test_seconds_without_prefill_are_called_decode(prefill: tuple, title: str) -> None:
    row = {"workload": "code", "simulated": False, "machine": "m", "model": "m",
           "experiment": None, "arm": "mtp1", "off_s": 2.0, "treated_s": 1.5, "saved_s": 0.5,
           "pairs": 5, "saved_s_lo": 0.4, "saved_s_hi": 0.6}  # fmt: skip
    rows = pl.DataFrame([{**row, "workload": w, "prefill": p}
                         for w, p in zip(("code", "chat"), prefill, strict=True)],
                        schema_overrides={"experiment": pl.String})  # fmt: skip
    assert tables.turns(rows).title == f"Seconds of {title}"
    shown = charts.turns(rows)
    assert about(shown)["title"] == f"Seconds saved of {title}"
    parts = [row["part"] for row in render.chart_rows(shown.to_dict())]
    assert parts == ["prefill and decode" if p else "decode alone" for p in prefill]
    axis = shown.to_dict()["layer"][-1]["encoding"]["x"]["title"]
    assert ("decode alone" in axis) == (not any(prefill))


def test_an_arm_has_a_panel_of_its_own() -> None:
    row = {"workload": "code", "simulated": False, "machine": None, "model": None,
           "experiment": None, "threshold": 3.0, "readings": 4, "share": 1.0, "right": 1,
           "known": 2, "margin": 15.5, "margin_lo": 15.0, "margin_hi": None}  # fmt: skip
    rows = pl.DataFrame([{**row, "arm": arm} for arm in ("a", "b")],
                        schema_overrides={"margin_hi": pl.Float64})  # fmt: skip
    spec = charts.margins(rows).to_dict()
    drawn = render.chart_rows(spec)
    assert [row["panel"] for row in drawn] == ["a", "b"]
    assert drawn[0]["bin"] == "15 and more"
    assert drawn[0]["accuracy"] == "50.0 % of 2 known"
    assert "under a and b" in spec["usermeta"]["tauscope"]["alt"]
    assert "interpolate" not in str(spec)
