"""Each finding of the doctor by a trace that has it, with a clean twin that stays silent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import simulated
from conftest import Command
from frames import add_run, cycle, opened

from tauscope import arms, catalog, doctor, schema
from tauscope.store import LogWriter

OFF = {"arm": "off", "workload": "code", "baseline_drafts": False}
MTP = {"arm": "mtp1", "workload": "code"}
BET = cycle("bet+", wall_ms=112.0, draft_ms=4.0, verify_ms=108.0)
FOLD = cycle("fold", wall_ms=72.0, draft_ms=4.0, decode_ms=68.0)
PLAIN = cycle("plain", wall_ms=68.0)


def named(store: Path) -> list[str]:
    return [finding.rule.name for finding in doctor.examine(opened(store))]


def clean(store: Path, **request: Any) -> None:
    """Two arms, one prompt each run once, 40 bets, equal outputs."""
    asked = [{"prompt_id": "p", "generated_tokens": 120, "output_hash": "h", **request}]
    add_run(store, "off", [[PLAIN] * 120], asked, **OFF)
    add_run(store, "mtp", [[BET] * 40 + [FOLD] * 40], asked, **MTP)


def test_a_clean_experiment_has_no_finding(store: Path) -> None:
    clean(store)
    assert named(store) == []


def test_a_simulated_experiment_has_no_finding(tmp_path: Path) -> None:
    data = simulated.made(tmp_path, [simulated.OFF, simulated.MTP1, simulated.SHADOW])
    assert doctor.examine(data) == []


def test_speculation_that_was_not_applied(store: Path) -> None:
    clean(store)
    skipped = cycle("plain", wall_ms=68.0, outcome="bypassed")
    add_run(store, "x", [[BET] * 40 + [skipped] * 40], arm="mtp1", workload="chat")
    add_run(store, "y", [[BET] * 41 + [skipped] * 40], arm="mtp1", workload="prose")
    (found,) = doctor.examine(opened(store))
    assert found.rule.name == "treatment"
    assert found.rows.row(0, named=True) == {
        "workload": "chat", "arm": "mtp1", "run_id": "x-0", "cycles": 80, "bypassed": 40,
        "bets": 40, "drafting_share": 0.5,
    }  # fmt: skip


def test_an_off_arm_that_bets(store: Path) -> None:
    add_run(store, "x", [[BET] * 40], **OFF)
    assert named(store) == ["treatment"]


def test_a_treated_run_without_cycle_lines(store: Path) -> None:
    add_run(store, "x", [[]], [{"generated_tokens": 9, "decode_tokens_per_s": 14.0}], **MTP)
    add_run(store, "y", [[]], [{"generated_tokens": 9, "decode_tokens_per_s": 14.0}],
            arm="off", workload="chat", baseline_drafts=False)  # fmt: skip
    assert named(store) == ["no_cycles"]


def test_a_baseline_that_drafts(store: Path) -> None:
    add_run(store, "x", [[PLAIN]], **{**OFF, "baseline_drafts": True})
    assert named(store) == ["baseline_drafts"]


def test_prompts_in_one_arm_only_or_without_a_name(store: Path) -> None:
    add_run(store, "a", [[PLAIN]], [{"prompt_id": "p"}], **OFF)
    add_run(store, "b", [[BET] * 40, [BET] * 40, [BET]],
            [{"prompt_id": "p"}, {"prompt_id": "q"}, {}], **MTP)  # fmt: skip
    (found,) = doctor.examine(opened(store))
    assert found.rule.name == "unpaired_prompts"
    rows = {row["prompt_id"]: row for row in found.rows.iter_rows(named=True)}
    assert rows["q"]["lacking"] == ["off"]
    assert set(rows) == {"q", None}


def test_one_arm_alone_is_not_unpaired(store: Path) -> None:
    add_run(store, "b", [[BET] * 40], [{"prompt_id": "p"}], **MTP)
    assert named(store) == []


def test_prompts_that_repeat_under_one_name_or_two(store: Path) -> None:
    asked = [{"prompt_id": "p", "output_hash": "1"}, {"prompt_id": "p", "output_hash": "1"},
             {"prompt_id": "q", "output_hash": "2"}, {"prompt_id": "r", "output_hash": "2"},
             {"prompt_id": "s", "output_hash": "3"}]  # fmt: skip
    add_run(store, "b", [[BET] * 40] * 5, asked, **MTP)
    (found,) = doctor.examine(opened(store))
    assert found.rule.name == "repeated_prompts"
    assert found.rows["prompts"].to_list() == [["p"], ["q", "r"]]


@pytest.mark.parametrize(("period", "told"), [(20, ["repetitive_prompts"]), (200, [])])
def test_text_that_repeats_itself(store: Path, period: int, told: list[str]) -> None:
    cycles = [{**BET, "next_token": n % period, "draft_token": n % period} for n in range(150)]
    add_run(store, "b", [cycles], **MTP)
    assert named(store) == told


@pytest.mark.parametrize(("wrong", "told"), [(2, ["repetitive_prompts"]), (60, [])])
def test_drafts_that_are_nearly_always_right(store: Path, wrong: int, told: list[str]) -> None:
    lost = cycle("bet-", wall_ms=112.0, draft_ms=4.0, verify_ms=108.0)
    add_run(store, "b", [[BET] * (250 - wrong) + [lost] * wrong], **MTP)
    assert named(store) == told


@pytest.mark.parametrize(("bets", "told"), [(29, ["few_bets"]), (30, [])])
def test_too_few_bets(store: Path, bets: int, told: list[str]) -> None:
    add_run(store, "b", [[BET] * bets], **MTP)
    assert named(store) == told


def test_dark_cycles_that_no_count_recovers(store: Path) -> None:
    hit = cycle("legacy+", dialect="legacy")
    facts = {"arm": "mtp2", "workload": "chat"}
    add_run(store, "dark", [[hit] * 40], **facts)
    add_run(store, "counted", [[hit] * 40], [{"generated_tokens": 120}], **facts)
    add_run(store, "logged", [[hit] * 40 + [cycle("miss", dialect="legacy")]], **facts)
    recovered = [hit] * 40 + [cycle("dark", dialect="legacy")]
    add_run(store, "recovered", [recovered], [{"generated_tokens": 121}], **facts)
    (found,) = doctor.examine(opened(store))
    assert found.rule.name == "dark_cycles"
    assert found.rows["run_id"].to_list() == ["dark-0"]


@pytest.mark.parametrize(("tokens", "told"), [(83, ["open_tokens"]), (82, [])])
def test_tokens_that_no_cycle_shows(store: Path, tokens: int, told: list[str]) -> None:
    add_run(store, "b", [[BET] * 40], [{"generated_tokens": tokens}], **MTP)
    assert named(store) == told


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        ({"prefill_ms": 4000.0, "decode_ms": 8480.0}, ["prefill_in_speed"]),  # 40 × 112 + 4000
        ({"prefill_ms": 4000.0, "decode_ms": 4480.0}, []),
        ({"decode_ms": 8480.0}, []),  # nothing says that it is prefill
    ],
)
def test_prefill_in_a_decode_time(store: Path, request_: dict, told: list[str]) -> None:
    add_run(store, "b", [[BET] * 40], [{"generated_tokens": 80, **request_}], **MTP)
    assert named(store) == told


def test_prefill_in_the_first_cycle(store: Path) -> None:
    first = {**BET, "wall_ms": 3112.0}
    add_run(store, "b", [[first, *[BET] * 39]], [{"prefill_ms": 3000.0}], **MTP)
    assert named(store) == ["prefill_in_speed"]


def test_a_printed_speed_tells_of_prefill_in_an_off_arm(store: Path) -> None:
    asked = {"generated_tokens": 100, "decode_tokens_per_s": 10.0, "prefill_ms": 5000.0}
    add_run(store, "x", [[]], [{**asked, "decode_ms": 15000.0, "prompt_id": "p"}], **OFF)
    add_run(store, "y", [[]], [{**asked, "decode_ms": 10000.0, "prompt_id": "q"}], **OFF)
    (found,) = doctor.examine(opened(store))
    assert found.rows["run_id"].to_list() == ["x-0"]


@pytest.mark.parametrize(("slower", "told"), [(1.025, ["drift"]), (1.015, [])])
def test_drift(store: Path, slower: float, told: list[str]) -> None:
    late = [{**BET, "wall_ms": 112.0 * slower}] * 50
    add_run(store, "b", [[BET] * 100 + late], **MTP)
    assert named(store) == told


def test_the_drift_that_is_shown_is_the_one_that_verdicts_use(tmp_path: Path) -> None:
    data = simulated.made(tmp_path, [simulated.MTP1], {"agent": {"tokens": 600}},
                          {"drift_per_hour": 1.2})  # fmt: skip
    wide = arms.drifts(data, {}).filter(pl.col("drift").abs() >= 0.02)
    (found,) = doctor.examine(data)
    assert found.rows.height == wide.height > 0
    assert sorted(found.rows["drift"]) == pytest.approx(sorted(wide["drift"]))


def two_runs(store: Path, **second: Any) -> None:
    """One log with two runs under one label."""
    columns = {"log_id": "l", "state": "complete", "source_kind": "import", "simulated": False,
               "workload": "code", "arm": "mtp1", "draft_depth": 1}  # fmt: skip
    rows = [{**columns, "run_id": "l-0", "run_index": 0},
            {**columns, "run_id": "l-1", "run_index": 1, **second}]  # fmt: skip
    writer = LogWriter(store, "l", "t")
    cycles = [{"run_id": f"l-{n}", "request_id": 0, "cycle": c, **BET}
              for n in (0, 1) for c in range(40)]  # fmt: skip
    writer.add(schema.CYCLES, pl.DataFrame(cycles))
    kinds = {n: t for n, t in schema.RUNS.polars().items() if n in rows[1]}
    writer.commit(pl.DataFrame(rows, schema=kinds), schema.empty(schema.REQUESTS))


def test_one_run_in_another_s_log(store: Path) -> None:
    two_runs(store, draft_depth=2)
    assert named(store) == ["mixed_runs"]


def test_two_runs_of_one_kind_may_share_a_log(store: Path) -> None:
    two_runs(store)
    assert named(store) == []


def test_unlike_runs_labelled_apart_may_share_a_log(store: Path) -> None:
    two_runs(store, draft_depth=2, workload="chat")
    assert named(store) == []


@pytest.mark.parametrize(("back", "told"), [(True, ["mixed_runs"]), (False, [])])
def test_a_clock_that_goes_back(store: Path, back: bool, told: list[str]) -> None:
    starts = [112.0 * n for n in range(40)]
    if back:
        starts[20:] = [112.0 * n for n in range(20)]
    cycles = [{**BET, "t_ms": t} for t in starts]
    add_run(store, "b", [cycles], **MTP)
    assert named(store) == told


def test_refused_rows_and_impossible_times(store: Path) -> None:
    add_run(store, "x", [[BET] * 40], **MTP)
    add_run(store, "y", [[*[BET] * 40, {**BET, "wall_ms": 50.0}]], **{**MTP, "workload": "chat"})
    (found,) = doctor.examine(opened(store))
    assert found.rule.name == "impossible_counters"
    assert found.rows["reason"].to_list() == ["stages of 112.0 ms in a cycle of 50.0 ms"]


def test_a_refused_row_is_shown_with_its_reason(store: Path) -> None:
    writer = LogWriter(store, "l", "t")
    row = {"run_id": "l-0", "request_id": 0, "cycle": 0, "line": 7, **BET}
    refused = {**row, "accepted": 2, "reason": "accepted 2 of 1 verified"}
    writer.add(schema.CYCLES, pl.DataFrame([{**row, "cycle": n} for n in range(40)]))
    writer.add(schema.REFUSED, pl.DataFrame([refused]))
    run = {"run_id": "l-0", "log_id": "l", "run_index": 0, "simulated": False, **MTP}
    writer.commit(pl.DataFrame([run]), schema.empty(schema.REQUESTS))
    (found,) = doctor.examine(opened(store))
    assert found.rows.row(0, named=True)["reason"] == "accepted 2 of 1 verified"


@pytest.mark.parametrize(
    ("change", "told"),
    [({}, []), ({"output_hash": "other"}, ["outputs_differ"]),
     ({"generated_tokens": 119}, ["outputs_differ"]), ({"output_hash": None}, [])],
)  # fmt: skip
def test_outputs_that_differ(store: Path, change: dict, told: list[str]) -> None:
    asked = {"prompt_id": "p", "generated_tokens": 120, "output_hash": "h"}
    add_run(store, "off", [[PLAIN] * 120], [{**asked, **change}], **OFF)
    add_run(store, "mtp", [[BET] * 40 + [FOLD] * 40], [asked], **MTP)
    assert named(store) == told


def test_unknown_kinds_and_unfit_lines(store: Path) -> None:
    odd = cycle("unknown", path="warp", line=12)
    add_run(store, "b", [[BET] * 40 + [odd] * 3], unfit_lines=1,
            unfit_examples=[{"line": 9, "text": "ds4: mtp timing micro dra"}], **MTP)  # fmt: skip
    found = {f.rule.name: f.rows.row(0, named=True) for f in doctor.examine(opened(store))}
    assert list(found) == ["unknown_kinds", "unfit_lines"]
    assert (found["unknown_kinds"]["path"], found["unknown_kinds"]["cycles"]) == ("warp", 3)
    assert found["unfit_lines"]["line"] == 9


def test_damaged_logs_come_first(store: Path) -> None:
    clean(store)
    next((store / "cycles").glob("off*")).write_bytes(b"no parquet")
    found = doctor.examine(opened(store))
    assert found[0].rule.name == "damaged_logs"


def test_every_rule_says_what_it_means_and_what_to_do_and_can_be_pasted(store: Path) -> None:
    clean(store)
    data = opened(store)
    files = {path.stem for path in Path(doctor.__file__).parent.glob("*.sql")}
    assert files == set(doctor.NAMES)
    for name in doctor.NAMES:
        rule = doctor.rule(name)
        assert rule.title and rule.means.endswith(".") and rule.remedy.endswith(".")
        assert "-- Grain: " in rule.query and "Unit" in rule.query
        assert data.ask(rule.query).is_empty()


def test_exit_codes_and_what_is_printed(command: Command, store: Path) -> None:
    clean(store)
    assert command("doctor", store) == (0, "2 runs examined: no findings\n", "")
    add_run(store, "bad", [[BET] * 3], arm="mtp1", workload="prose")
    code, out, _ = command("doctor", store, "--json")
    assert code == 1
    (told,) = json.loads(out)
    assert told["name"] == "few_bets"
    assert told["shown"][0]["verified"] == 3
    assert catalog.Catalog([store]).ask(told["query"]).height == told["rows"] == 1
    assert "few_bets.sql" in command("doctor", store)[1]


def test_nothing_to_examine_is_3(command: Command, store: Path) -> None:
    (store / "runs").mkdir(parents=True)
    code, out, err = command("doctor", store)
    assert (code, out) == (3, "")
    assert err.endswith("nothing to examine; import a log first\n")


def test_what_is_not_there_is_no_finding(command: Command, tmp_path: Path) -> None:
    (tmp_path / "prose.log").write_text("nothing of ds4\n")
    for target in ("nowhere", "prose.log"):
        assert command("doctor", tmp_path / target)[0] == 3


def test_a_log_is_examined_and_kept_nowhere(command: Command, corpus: Path) -> None:
    code, out, _ = command("doctor", corpus / "ds4-off-chat.log", "--json")
    assert code == 1
    assert [told["name"] for told in json.loads(out)] == ["baseline_drafts"]
    assert command("doctor", corpus / "ds4-mtp-chat.log")[0] == 0


def test_hostile_labels_are_only_text(command: Command, store: Path) -> None:
    label = "'; DROP VIEW cycles; --\x1b[31m<script>\u202e"
    add_run(store, "b", [[BET] * 3], arm="mtp1", workload=label)
    code, out, _ = command("doctor", store)
    assert code == 1
    assert "\x1b" not in out and "\u202e" not in out
