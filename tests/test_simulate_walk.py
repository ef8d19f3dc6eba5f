"""Cycles of a simulation: hand-computed cases, a slow walk to check against, the ledger."""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from tauscope import schema
from tauscope.simulate import Model, Simulated, rows, simulate, texts
from tauscope.simulate.model import check

OFF = {"arm": "off", "path": "off"}
MTP1 = {"arm": "mtp1", "path": "continuous", "threshold": 3.0}
SHADOW = {"arm": "shadow", "path": "shadow"}
BLOCK = {"arm": "block3", "path": "continuous", "depth": 3}
LEGACY = {"arm": "mtp2", "path": "legacy", "threshold": 3.0}
COSTS = {"forward_ms": [60.0, 90.0, 100.0, 110.0], "draft_ms": 4.0}
TEXT = {
    "name": "agent",
    "prompts": 1,
    "tokens": 7,
    "margin_mean": 5.0,
    "margin_sd": 0.0,
    "right_floor": 1.0,
    "right_ceiling": 1.0,
}


def model(*runs: dict, costs: dict | None = None, **text: object) -> Model:
    stated = {
        "name": "small",
        "seed": 1,
        "costs": COSTS | (costs or {}),
        "workloads": [TEXT | text],
        "runs": list(runs),
    }
    made = msgspec.convert(stated, Model)
    check(made)
    return made


def only(stated: Model, **how: object) -> Simulated:
    (part,) = simulate(stated, **how)
    return part


def column(part: Simulated, name: str) -> list:
    return part.cycles[name].to_list()


# Hand-computed: seven tokens, every margin 5 logits, drafts always or never right.


def test_off_is_one_plain_step_a_token() -> None:
    part = only(model(OFF, costs={"other_ms": 0.5}, tokens=3))
    assert column(part, "outcome") == ["undrafted"] * 3
    assert column(part, "wall_ms") == [60.5] * 3
    assert column(part, "drafted") == [0] * 3
    assert column(part, "target_forwards") == [1] * 3
    assert part.cycles.select("margin", "draft_ms", "verify_ms", "decode_ms").null_count().row(
        0
    ) == (3, 3, 3, 3)
    assert part.requests["decode_ms"].item() == 181.5
    assert part.runs.select("arm", "draft_depth", "drafter", "threshold").row(0) == (
        "off",
        0,
        None,
        None,
    )


def test_right_drafts_ahead_of_the_bar_are_bet_on_and_accepted() -> None:
    part = only(model(MTP1))
    assert column(part, "outcome") == ["all_accepted"] * 3 + ["undrafted"]
    assert column(part, "emitted") == [2, 2, 2, 1]
    assert column(part, "verified") == [1, 1, 1, 0]
    assert column(part, "target_forwards") == [1, 1, 1, 1]
    assert column(part, "wall_ms") == [94.0, 94.0, 94.0, 60.0]
    assert column(part, "verify_ms") == [90.0, 90.0, 90.0, None]
    assert column(part, "margin") == [5.0, 5.0, 5.0, None]
    assert part.cycles["draft_token"].equals(part.cycles["next_token"], null_equal=True)


def test_wrong_drafts_ahead_of_the_bar_are_bet_on_and_replayed() -> None:
    wrong = {"right_floor": 0.0, "right_ceiling": 0.0, "tokens": 3}
    part = only(model(MTP1, costs={"replay_ms": 7.0}, **wrong))
    assert column(part, "outcome") == ["rejected", "rejected", "undrafted"]
    assert column(part, "emitted") == [1, 1, 1]
    assert column(part, "target_forwards") == [2, 2, 1]
    assert column(part, "replayed") == [True, True, False]
    assert column(part, "commit_ms") == [7.0, 7.0, None]
    assert column(part, "wall_ms") == [101.0, 101.0, 60.0]
    known = part.cycles.drop_nulls("next_token")
    assert (known["draft_token"] != known["next_token"]).all()


def test_drafts_behind_the_bar_are_folded() -> None:
    part = only(model(MTP1 | {"threshold": 5.001}, tokens=3))
    assert column(part, "outcome") == ["folded", "folded", "undrafted"]
    assert column(part, "decode_ms") == [60.0, 60.0, None]
    assert column(part, "wall_ms") == [64.0, 64.0, 60.0]
    assert column(part, "verify_ms") == [None, None, None]
    assert column(part, "threshold") == [5.001, 5.001, None]


def test_a_margin_on_the_bar_is_a_bet() -> None:
    part = only(model(MTP1 | {"threshold": 5.0}, tokens=2))
    assert column(part, "outcome") == ["all_accepted"]


def test_shadow_drafts_everywhere_and_bets_nowhere() -> None:
    part = only(model(SHADOW))
    assert column(part, "outcome") == ["folded"] * 6 + ["undrafted"]
    assert column(part, "emitted") == [1] * 7
    assert column(part, "margin") == [5.0] * 6 + [None]
    assert part.cycles["next_token"].null_count() == 1
    assert part.cycles["threshold"].null_count() == 7


def test_blocks_are_cut_to_what_is_left() -> None:
    part = only(model(BLOCK))
    assert column(part, "emitted") == [4, 3]
    assert column(part, "drafted") == [3, 2]
    assert column(part, "outcome") == ["all_accepted", "all_accepted"]
    assert column(part, "verify_ms") == [110.0, 100.0]
    assert column(part, "draft_ms") == [12.0, 8.0]
    assert part.cycles["margin"].null_count() == 2


def test_nothing_is_right_beyond_the_first_draft_when_depth_decays_to_nothing() -> None:
    part = only(model(BLOCK, depth_decay=0.0))
    assert column(part, "emitted") == [2, 2, 2, 1]
    assert column(part, "outcome") == ["partial", "partial", "partial", "undrafted"]
    # With two tokens left only one draft fits, and it is a whole block.
    assert column(only(model(BLOCK, depth_decay=0.0, tokens=2)), "outcome") == ["all_accepted"]


def test_legacy_counts_and_times() -> None:
    part = only(model(LEGACY, tokens=8, costs={"snapshot_ms": 1.0}))
    assert column(part, "outcome") == ["all_accepted", "all_accepted", "unverified"]
    assert column(part, "emitted") == [3, 3, 2]
    assert column(part, "drafted") == [2, 2, 1]
    assert column(part, "free_checked") == [1, 1, 1]
    assert column(part, "free_accepted") == [1, 1, 1]
    assert column(part, "verified") == [1, 1, 0]
    assert column(part, "target_forwards") == [2, 2, 2]
    assert column(part, "draft_ms") == [4.0, 4.0, 0.0]
    assert column(part, "verify_ms") == [90.0, 90.0, 60.0]
    assert column(part, "reported_ms") == [95.0, 95.0, 61.0]
    assert part.cycles["wall_ms"].null_count() == 3
    assert part.cycles["t_ms"].null_count() == 3
    # Three base decodes and three first drafts stand in no line.
    assert part.requests["decode_ms"].item() == 95 + 95 + 61 + 3 * 64


def test_legacy_folds_misses_and_replays() -> None:
    folds = only(model(LEGACY | {"threshold": 6.0}, tokens=5))
    assert column(folds, "outcome") == ["folded", "folded", "undrafted"]
    assert column(folds, "emitted") == [2, 2, 1]
    assert column(folds, "target_forwards") == [2, 2, 1]
    assert column(folds, "reported_ms") == [64.0, 64.0, None]
    assert folds.requests["decode_ms"].item() == 2 * 64 + 2 * 64 + 60

    misses = only(model(LEGACY, tokens=3, right_floor=0.0, right_ceiling=0.0))
    assert column(misses, "outcome") == ["missed", "missed", "undrafted"]
    assert column(misses, "free_checked") == [1, 1, 0]
    assert column(misses, "reported_ms") == [None, None, None]
    assert misses.requests["decode_ms"].item() == 64 + 64 + 60

    replays = only(model(LEGACY, tokens=5, depth_decay=0.0, costs={"replay_ms": 9.0}))
    assert column(replays, "outcome") == ["rejected", "rejected", "undrafted"]
    assert column(replays, "emitted") == [2, 2, 1]
    assert column(replays, "target_forwards") == [3, 3, 1]
    assert column(replays, "reported_ms") == [103.0, 103.0, None]


def test_one_token_is_undrafted_in_every_arm() -> None:
    for part in simulate(model(OFF, MTP1, SHADOW, BLOCK, LEGACY, tokens=1)):
        assert part.cycles.select("outcome", "emitted").rows() == [("undrafted", 1)]


# Against a slow walk, one cycle at a time.


def slow_walk(stated: Model, run_number: int) -> list[tuple]:
    """(request, pos in text, outcome, drafted, free accepted, verified, accepted, emitted)."""
    run = stated.runs[run_number]
    chosen = [w for w in stated.workloads if run.workloads is None or w.name in run.workloads]
    drawn = {w.name: texts.draw(w, stated.seed, range(w.prompts)) for w in chosen}
    out = []
    turns = [(p, w) for p in range(max(w.prompts for w in chosen)) for w in chosen]
    for request, (p, w) in enumerate(turn for turn in turns if turn[0] < turn[1].prompts):
        text, n, at = drawn[w.name], w.tokens, 0

        def right(place: int, ahead: int, text=text, p=p, w=w) -> bool:
            # `ahead` drafts were made before the one that stands at `place`.
            lucky = ahead == 0 or text.luck[p, place] < w.depth_decay**ahead
            return bool(text.right[p, place] and lucky)

        while at < n:
            room = n - at - 1
            kind = type(run).__name__
            bar = getattr(run, "threshold", None)
            if kind == "Off" or room == 0:
                cycle = ("undrafted", 0, 0, 0, 0)
            elif kind == "Shadow":
                cycle = ("folded", 1, 0, 0, 0)
            elif kind == "Continuous":
                k = min(run.depth, room)
                if bar is not None and text.margin[p, at] < bar:
                    cycle = ("folded", 1, 0, 0, 0)
                else:
                    got = 0
                    while got < k and right(at + got, got):
                        got += 1
                    how = "all_accepted" if got == k else "partial" if got else "rejected"
                    cycle = (how, k, 0, k, got)
            elif not text.right[p, at]:
                cycle = ("missed", 1, 0, 0, 0)
            elif room == 1:
                cycle = ("unverified", 1, 1, 0, 0)
            elif bar is not None and text.margin[p, at + 1] < bar:
                cycle = ("folded", 2, 1, 0, 0)
            elif right(at + 1, 1):
                cycle = ("all_accepted", 2, 1, 1, 1)
            else:
                cycle = ("rejected", 2, 1, 1, 0)
            emitted = 1 + cycle[2] + cycle[4]
            out.append((request, at, *cycle, emitted))
            at += emitted
    return out


def workloads() -> st.SearchStrategy[list[dict]]:
    share = st.floats(0, 1)
    one = st.fixed_dictionaries(
        {
            "prompts": st.integers(1, 5),
            "tokens": st.integers(1, 70),
            "prompt_tokens": st.integers(1, 50),
            "margin_mean": st.floats(0, 5),
            "margin_sd": st.floats(0, 4),
            "margin_between_prompts": st.floats(0, 1),
            "margin_autocorrelation": st.floats(0, 0.99),
            "right_floor": share,
            "right_slope": st.floats(0, 5),
            "right_middle": st.floats(-2, 6),
            "right_autocorrelation": st.floats(0, 0.99),
            "depth_decay": share,
        }
    )
    return st.lists(one, min_size=1, max_size=3).map(
        lambda many: [
            text | {"name": f"w{i}", "right_ceiling": min(1.0, text["right_floor"] + 0.4)}
            for i, text in enumerate(many)
        ]
    )


def models() -> st.SearchStrategy[Model]:
    bar = st.one_of(st.none(), st.floats(0, 6))
    run = st.one_of(
        st.sampled_from([OFF, SHADOW]),
        st.builds(
            lambda depth, at: {"arm": "c", "path": "continuous", "depth": depth, "threshold": at},
            st.integers(1, 8),
            bar,
        ),
        st.builds(lambda at: {"arm": "l", "path": "legacy", "threshold": at}, bar),
    )
    small = st.floats(0, 0.2)
    costs = st.fixed_dictionaries(
        {
            "forward_ms": st.lists(st.floats(0.01, 200), min_size=9, max_size=9),
            "draft_ms": st.floats(0, 9),
            "snapshot_ms": st.floats(0, 2),
            "replay_ms": st.sampled_from([0.0, 30.0]),
            "other_ms": st.floats(0, 1),
            "per_1k_tokens": small,
            "cycle_noise": small,
            "run_noise": small,
            "drift_per_hour": st.floats(-0.5, 5),
            "warmup_cycles": st.integers(0, 9),
            "warmup_slowdown": st.floats(0, 2),
        }
    )
    return st.fixed_dictionaries(
        {
            "name": st.just("any"),
            "seed": st.integers(0, 2**63 - 1),
            "costs": costs,
            "workloads": workloads(),
            "runs": st.lists(run, min_size=1, max_size=3),
        }
    ).map(lambda stated: msgspec.convert(stated, Model))


@settings(max_examples=60, deadline=None)
@given(models())
def test_cycles_are_those_of_a_slow_walk(stated: Model) -> None:
    for number, part in enumerate(simulate(stated)):
        asked = part.requests["prompt_tokens"].to_list()
        found = [
            (request, pos - asked[request], *rest)
            for request, pos, *rest in part.cycles.select(
                "request_id",
                "pos",
                "outcome",
                "drafted",
                "free_accepted",
                "verified",
                "accepted",
                "emitted",
            ).iter_rows()
        ]
        assert found == slow_walk(stated, number)


@settings(max_examples=60, deadline=None)
@given(models())
def test_ledger_bounds_and_sums_hold(stated: Model) -> None:
    hashes = {}
    for part in simulate(stated):
        c = part.cycles
        for table, frame in (("RUNS", part.runs), ("REQUESTS", part.requests), ("CYCLES", c)):
            assert dict(frame.schema) == getattr(schema, table).polars()
        assert set(c["outcome"]) <= set(schema.OUTCOMES)
        held = c.select(
            identity=pl.col("emitted")
            == 1 + pl.col("free_accepted") + pl.col("accepted") + pl.col("resampled"),
            accepted=pl.col("accepted").is_between(0, pl.col("verified")),
            free=pl.col("free_accepted").is_between(0, pl.col("free_checked")),
            drafted=pl.col("free_checked") + pl.col("verified") <= pl.col("drafted"),
            forwards=pl.col("target_forwards") >= 1,
            whole=~pl.col("truncated"),
            times=pl.all_horizontal(
                (pl.col(pl.Float64).exclude("margin", "threshold") >= 0).fill_null(True)
            ),
            tokens=(pl.col("draft_token") == pl.col("next_token")).fill_null(True)
            | (pl.col("accepted") == 0),
        )
        assert all(held.select(pl.all().all()).row(0)), held.select(pl.all().all())
        assert c["cycle"].to_list() == list(range(c.height))
        by_request = c.group_by("request_id", maintain_order=True).agg(
            pl.col("emitted").sum().cast(pl.Int64), pl.col("wall_ms").sum(), pl.col("pos")
        )
        assert by_request["request_id"].equals(part.requests["request_id"])
        assert by_request["emitted"].to_list() == part.requests["generated_tokens"].to_list()
        if c["wall_ms"].null_count() == 0:
            assert by_request["wall_ms"].to_list() == pytest.approx(
                part.requests["decode_ms"].to_list(), abs=1e-3
            )
            assert c["t_ms"].is_sorted()
            stages = c.select(
                pl.sum_horizontal("draft_ms", "snapshot_ms", "verify_ms", "commit_ms", "decode_ms")
            ).to_series()
            assert (stages <= c["wall_ms"] + 1e-9).all()
        # conform() drops what the tables don't know: a renamed column would be all null.
        asked = part.requests.select("overlapped", "prompt_tokens", "tokens_source", "prefill_ms")
        assert asked.null_count().row(0) == (0, 0, 0, 0)
        # Lossless: the same text in every arm.
        texts_of = dict(part.requests.select("prompt_id", "output_hash").iter_rows())
        assert hashes.setdefault("all", texts_of) == texts_of


# The same positions serve all arms.


def test_a_walk_over_the_shadow_gives_the_cycles_of_any_bar() -> None:
    bars = [0.0, 1.7, 3.0, 9.0]
    stated = model(
        SHADOW,
        *({"arm": f"at{bar}", "path": "continuous", "threshold": bar} for bar in bars),
        prompts=4,
        tokens=150,
        margin_mean=2.0,
        margin_sd=2.0,
        margin_autocorrelation=0.5,
        right_floor=0.3,
        right_ceiling=0.9,
    )
    shadow, *treated = simulate(stated)
    known = shadow.cycles.with_columns(hit=pl.col("draft_token") == pl.col("next_token"))
    places = known.select("request_id", "pos", "margin", "hit").rows()
    for bar, part in zip(bars, treated, strict=True):
        expected, skip = [], False
        for request, pos, margin, hit in places:
            if skip:
                skip = False
                continue
            bet = margin is not None and margin >= bar
            skip = bool(bet and hit)
            expected.append((request, pos, margin, 1 + skip))
        assert part.cycles.select("request_id", "pos", "margin", "emitted").rows() == expected


def test_the_same_seed_gives_the_same_frames_and_another_seed_others() -> None:
    stated = model(
        MTP1, LEGACY, costs={"cycle_noise": 0.1, "run_noise": 0.1}, tokens=60, margin_sd=3.0
    )
    for one, two, other in zip(
        simulate(stated), simulate(stated, seed=1), simulate(stated, seed=2), strict=True
    ):
        for name in ("runs", "requests", "cycles"):
            assert_frame_equal(getattr(one, name), getattr(two, name))
            assert not getattr(one, name).equals(getattr(other, name))


def test_runs_have_names_of_their_own_and_say_that_they_are_simulated() -> None:
    stated = model(OFF, MTP1, MTP1)
    runs = pl.concat(part.runs for part in simulate(stated))
    assert runs["log_id"].n_unique() == 3
    assert runs["run_id"].to_list() == [f"{log}-0" for log in runs["log_id"]]
    assert runs["simulated"].all()
    assert set(runs["source_kind"]) == {"simulate"}
    assert set(runs["state"]) == {"complete"}
    assert set(runs["experiment"]) == {"small"}
    assert runs["raw_file"].null_count() == runs["cycle_files"].null_count() == 3
    # A text in it, or a cost, makes it another log.
    (other,) = simulate(model(OFF, tokens=8))
    assert other.runs["log_id"].item() not in runs["log_id"]


def test_a_text_depends_on_neither_other_prompts_nor_other_workloads() -> None:
    few = model(MTP1, prompts=2, tokens=50, margin_sd=3.0, costs={"cycle_noise": 0.1})
    many = model(MTP1, prompts=9, tokens=50, margin_sd=3.0, costs={"cycle_noise": 0.1})
    long = only(many).cycles.filter(pl.col("request_id") < 2)
    assert_frame_equal(only(few).cycles.drop("run_id"), long.drop("run_id"))


def test_requests_take_turns_and_choosing_workloads_keeps_their_texts() -> None:
    stated = msgspec.convert(
        {
            "name": "two",
            "seed": 3,
            "costs": COSTS,
            "workloads": [TEXT | {"prompts": 3}, TEXT | {"name": "prose", "prompts": 2}],
            "runs": [MTP1, {"arm": "alone", "path": "off", "workloads": ["prose"]}],
        },
        Model,
    )
    first, alone = simulate(stated)
    assert first.requests["prompt_id"].to_list() == [
        "agent-01",
        "prose-01",
        "agent-02",
        "prose-02",
        "agent-03",
    ]
    assert first.runs["workload"].item() is None
    assert alone.runs["workload"].item() == "prose"
    (agent,) = simulate(stated, workloads=["agent"])
    together = first.requests.filter(pl.col("workload") == "agent")["output_hash"]
    assert agent.requests["output_hash"].equals(together)


@pytest.mark.parametrize("run", [OFF, MTP1, LEGACY])
def test_a_run_in_parts_is_the_run_in_one(run: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = {"cycle_noise": 0.1, "drift_per_hour": 3.0, "warmup_cycles": 70, "warmup_slowdown": 1}
    stated = model(run, prompts=7, tokens=40, margin_sd=3.0, costs=costs)
    whole = only(stated)
    monkeypatch.setattr(rows, "PART", 90)
    parts = list(simulate(stated))
    assert [part.requests.height for part in parts] == [2, 2, 2, 1]
    assert_frame_equal(pl.concat(part.cycles for part in parts), whole.cycles)
    assert_frame_equal(pl.concat(part.requests for part in parts), whole.requests)
    for part in parts:
        assert_frame_equal(part.runs, whole.runs)


def test_starts_of_long_and_short_steps() -> None:
    from tauscope.simulate.walk import starts

    emitted = np.array([[2, 9, 1, 1], [4, 9, 9, 9], [1, 3, 9, 9]])
    assert starts(emitted).tolist() == [0, 2, 3, 4, 8, 9]
