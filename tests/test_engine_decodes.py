"""The example engine's loop, on a fake model whose every answer is known.

The fake says the same for a token whether it comes alone or in a batch, so every arm must
give the off arm's output exactly; the real model's batches may flip a near-tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.decode import Text, generate
from engine.drafter import Drafter, load_table
from engine.gate import SHUT, Gate
from tauscope.ingest import LogParser
from tauscope.trace import HASH, Trace, token_hash

STOP = 0
VOCABULARY = 6


class Fake:
    """Says token `rule[last two tokens]`; keeps a cache as a real model does."""

    stops = (STOP,)

    def __init__(self, rule: Sequence[int]) -> None:
        self.rule = rule
        self.cache: list[int] = []
        self.passes: list[int] = []

    def prefill(self, tokens: Sequence[int]) -> np.ndarray:
        assert not self.cache
        return self._take(tokens)[-1]

    def score(self, tokens: Sequence[int]) -> np.ndarray:
        self.passes.append(len(tokens))
        return self._take(tokens)

    def _take(self, tokens: Sequence[int]) -> np.ndarray:
        rows = []
        for token in tokens:
            self.cache.append(token)
            before = self.cache[-2] if len(self.cache) > 1 else 0
            rows.append(np.eye(VOCABULARY)[self.rule[before * VOCABULARY + token]])
        return np.array(rows)

    def forget(self, count: int) -> None:
        assert 0 < count < len(self.cache)
        del self.cache[-count:]


def ran(
    folder: Path, gate: Gate, rule: Sequence[int], prompt: Sequence[int], most: int
) -> tuple[Text, Fake, pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """(text, model, cycles, requests, refused) of one generation, read back from its trace."""
    path = folder / "trace.ndjson"
    path.unlink(missing_ok=True)
    model = Fake(rule)
    with Trace(path, engine="fake") as trace:
        request = trace.begin(prompt_tokens=len(prompt))
        text = generate(model, Drafter({}), gate, prompt, most, trace, request)
        trace.end(request, decode_ms=text.decode_ms, finish=text.finish)
    parser = LogParser(log_id="log")
    batches = [parser.feed(path.read_bytes()), parser.finish()]
    cycles = pl.concat([b.cycles for b in batches])
    requests = pl.concat([b.requests for b in batches]).unique("request_id", keep="last")
    return text, model, cycles, requests, pl.concat([b.refused for b in batches])


rules = st.lists(
    # The stop token is one of many, or texts would all be short.
    st.sampled_from([1, 2, 3, 4, 5, 1, 2, 3, 4, 5, STOP]),
    min_size=VOCABULARY**2,
    max_size=VOCABULARY**2,
)
prompts = st.lists(st.integers(1, VOCABULARY - 1), min_size=1, max_size=12)
gates = st.builds(Gate, st.integers(0, 8), st.sampled_from([-1e6, 0.0, 1.0, 3.0, SHUT]))


@settings(max_examples=60, deadline=None)
@given(rule=rules, prompt=prompts, gate=gates, most=st.integers(1, 40))
def test_every_arm_says_what_the_off_arm_says(
    tmp_path_factory: pytest.TempPathFactory,
    rule: list[int],
    prompt: list[int],
    gate: Gate,
    most: int,
) -> None:
    folder = tmp_path_factory.mktemp("t")
    plain, _, off, _, _ = ran(folder, Gate(), rule, prompt, most)
    text, model, cycles, requests, refused = ran(folder, gate, rule, prompt, most)
    assert text.tokens == plain.tokens and text.finish == plain.finish
    assert STOP not in text.tokens and len(text.tokens) <= most
    # Cache: prompt and output, and never a rejected draft. A draft that was right about the
    # end of the text stays in it.
    kept = model.cache[: len(prompt) + len(text.tokens)]
    assert kept == [*prompt, *text.tokens]
    assert model.cache[len(kept) :] in ([], [STOP]) or cycles["truncated"][-1]
    # Ledger: the importer checks the identity and the bounds, and refuses what breaks them.
    assert refused.is_empty()
    assert cycles["emitted"].sum() == len(text.tokens) == requests["generated_tokens"].item()
    assert (cycles["target_forwards"] == 1).all()
    assert len(model.passes) == cycles.height
    assert model.passes == (1 + cycles["verified"]).to_list()
    assert (
        cycles["pos"].to_list()
        == (len(prompt) + cycles["emitted"].cum_sum() - cycles["emitted"]).to_list()
    )
    assert set(off["outcome"]) <= {"undrafted"} and off.height == len(plain.tokens)
    state = HASH
    for token in text.tokens:
        state = token_hash(state, token)
    said = requests["output_hash"].item()
    assert said == (f"fnv1a64:{state:016x}" if text.tokens else None)
    # The gate: below the bar a fold, at it or above a bet.
    gated = cycles.filter(pl.col("margin").is_not_null())
    assert ((gated["margin"] < gate.bar) == (gated["outcome"] == "folded")).all()
    assert set(cycles.filter(pl.col("drafted") == 0)["outcome"]) <= {"undrafted"}
    assert (cycles["drafted"] <= gate.depth).all()
    assert (cycles["margin"].is_null() == (cycles["drafted"] == 0)).all()
    # What the target said at the draft's place decides, in bets and in folds alike.
    right = (gated["draft_token"] == gated["next_token"]).alias("right")
    bets = gated.with_columns(right).filter(pl.col("verified") > 0)
    assert (bets["right"] == (bets["accepted"] > 0)).all()


# 1 2 3 1 2 3 …: after the prompt's two rounds every draft is right.
ROUND = [(token % 3) + 1 for _ in range(VOCABULARY) for token in range(VOCABULARY)]


def test_depth_1_emits_two_tokens_a_pass(tmp_path: Path) -> None:
    text, model, cycles, _, _ = ran(tmp_path, Gate(1, 0.5), ROUND, [1, 2, 3, 1, 2, 3], 11)
    assert text.tokens == [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2]
    # Of the odd token at the end nothing is left to draft.
    assert cycles["outcome"].to_list() == ["all_accepted"] * 5 + ["undrafted"]
    assert cycles["emitted"].to_list() == [2, 2, 2, 2, 2, 1]
    assert model.passes == [2, 2, 2, 2, 2, 1]
    assert cycles["verify_ms"].null_count() == 1 and cycles["decode_ms"].null_count() == 5


def test_a_block_is_cut_at_the_cap(tmp_path: Path) -> None:
    text, model, cycles, _, _ = ran(tmp_path, Gate(7, 0.5), ROUND, [1, 2, 3, 1, 2, 3], 11)
    assert len(text.tokens) == 11 and text.finish == "length"
    assert cycles["drafted"].to_list() == [7, 2]
    assert cycles["emitted"].to_list() == [8, 3]
    assert not cycles["truncated"].any()
    assert model.passes == [8, 3]


def test_an_end_of_text_among_accepted_drafts_cuts_the_cycle(tmp_path: Path) -> None:
    # 1 → 2 → 3 → stop → 1: the prompt has seen the stop, so that it is drafted.
    rule = [{1: 2, 2: 3, 3: STOP, STOP: 1}.get(t, 1) for _ in range(6) for t in range(6)]
    prompt = [1, 2, 3, STOP, 1, 2, 3, STOP]
    text, _, cycles, requests, refused = ran(tmp_path, Gate(7, 0.5), rule, prompt, 30)
    assert text.tokens == [1, 2, 3] and text.finish == "stop"
    (row,) = cycles.to_dicts()
    # Seven drafts, all as the target would have it, the third of them the end.
    assert (row["verified"], row["accepted"], row["emitted"]) == (7, 7, 3)
    assert row["truncated"] is True
    assert requests["finish"].item() == "stop" and refused.is_empty()


def test_a_reject_takes_the_rest_out_of_the_cache(tmp_path: Path) -> None:
    # The prompt says 1 2 3 4; the model goes 1 2 3 5.
    rule = [{1: 2, 2: 3, 3: 5, 5: 1}.get(t, 1) for _ in range(6) for t in range(6)]
    text, model, cycles, _, _ = ran(tmp_path, Gate(3, 0.5), rule, [1, 2, 3, 4, 1, 2, 3, 4], 4)
    first = cycles.row(0, named=True)
    assert text.tokens == [1, 2, 3, 5]
    assert (first["outcome"], first["verified"], first["accepted"]) == ("partial", 3, 2)
    assert first["emitted"] == 3
    assert model.cache == [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 5]


def test_shadow_drafts_everywhere_and_bets_nowhere(tmp_path: Path) -> None:
    text, model, cycles, _, _ = ran(tmp_path, Gate(7, SHUT), ROUND, [1, 2, 3, 1, 2, 3], 12)
    assert set(model.passes) == {1}
    assert cycles["outcome"].to_list() == ["folded"] * 11 + ["undrafted"]
    assert cycles["drafted"].to_list() == [7] * 5 + [6, 5, 4, 3, 2, 1, 0]
    assert (cycles["verified"] == 0).all()
    assert cycles["next_token"].to_list()[:11] == text.tokens[1:]


def test_no_trace_no_difference(tmp_path: Path) -> None:
    trace = Trace(None)
    model = Fake(ROUND)
    text = generate(model, Drafter({}), Gate(3, 0.5), [1, 2, 3], 9, trace, trace.begin())
    assert text.tokens == [1, 2, 3, 1, 2, 3, 1, 2, 3]
    with pytest.raises(ValueError, match="no tokens"):
        generate(Fake(ROUND), Drafter({}), Gate(), [], 9, trace, trace.begin())


def test_the_margin_depends_on_the_text_alone() -> None:
    def drafted(pieces: list[list[int]]) -> tuple[list[int], float]:
        drafter = Drafter({(): {4: 10, 5: 5}})
        for piece in pieces:
            drafter.draft(3)  # asking leaves no mark
            drafter.extend(piece)
        return drafter.draft(5)

    assert drafted([[1, 2, 3, 1, 2]]) == drafted([[1], [2, 3], [1, 2]])


def test_the_margin_is_the_lead_of_the_first_over_the_second() -> None:
    drafter = Drafter({})
    drafter.extend([1, 2, 1, 2, 1, 3, 1])
    # After 1 came 2 twice and 3 once; after (…, 3, 1) nothing. With weight 0.5 and a floor
    # of 1e-6: (2 + 5e-7) / 3.5 against (1 + 5e-7) / 3.5.
    drafts, margin = drafter.draft(1)
    assert drafts == [2]
    assert margin == pytest.approx(np.log((2 + 5e-7) / (1 + 5e-7)))
    assert Drafter({}).draft(0) == ([], 0.0)


def test_the_committed_table_is_whole() -> None:
    table = load_table()
    assert len(table) > 10_000
    assert max(len(context) for context in table) == 2
    assert all(count >= 0 for after in table.values() for count in after.values())
    assert all(any(token >= 0 for token in after) for after in table.values())
