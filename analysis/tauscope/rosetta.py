"""The same cycles under other tools' names, so that someone else's number can be matched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tauscope import catalog


@dataclass(frozen=True, slots=True)
class Name:
    """What a tool calls it, its formula in our columns, and how it misleads."""

    name: str
    tool: str
    formula: str
    kind: str
    trap: str


NAMES = tuple(
    Name(*row)
    for row in (
        ("vllm_length", "vLLM mean acceptance length",
         "1 + Σ(free_accepted + accepted) / cycles that tested a draft", "tokens/cycle",
         "folds stand in neither part, so it is higher than τ wherever a gate folds"),
        ("vllm_rate", "vLLM draft acceptance rate; llama.cpp draft acceptance",
         "Σ(free_accepted + accepted) / Σ(free_checked + verified)", "ratio",
         "a gate raises it by betting less, and says nothing of what the bets cost"),
        ("sglang_length", "SGLang accept length", "Σ emitted / cycles", "tokens/cycle",
         "this is τ; the cycles of another dialect may hold another number of passes"),
        ("sglang_rate", "SGLang accept rate",
         "Σ(free_accepted + accepted) / (cycles × greatest draft depth)", "ratio",
         "the depth is that of the longest draft, even where most are shorter"),
        ("sglang_rate_old", "SGLang accept rate before April 2026",
         "Σ emitted / (cycles × (greatest draft depth + 1))", "ratio",
         "a run that accepts nothing still prints 1 / (depth + 1)"),
        ("tensorrt_rate", "TensorRT-LLM acceptance rate",
         "mean over requests of (emitted − cycles) / (greatest draft depth × cycles)", "ratio",
         "a mean of ratios: a short request weighs as much as a long one"),
        ("spec_bench", "Spec-Bench mean accepted tokens", "mean emitted per cycle",
         "tokens/cycle", "counts the token that every cycle gives anyway"),
        ("lines_committed", "“committed ÷ drafted” of the ds4 timing lines",
         "Σ(free_accepted + accepted) / Σ drafted, printed lines only", "ratio",
         "misses print no line, so they are not seen; a dead draft head shows 50 %"),
        ("lines_committed_less_1", "“(committed − 1) ÷ (drafted − 1)” of the same lines",
         "Σ accepted / Σ(drafted − 1), printed lines only", "ratio",
         "a fold counts as a reject"),
        ("lines_tau", "τ of the timing lines", "1 + mean committed, printed lines only",
         "tokens/cycle", "every missed cycle is left out, so it is too high"),
    )
)  # fmt: skip
BY_NAME = {name.name: name for name in NAMES}
BY = ("arm", "simulated")


def table(
    data: catalog.Catalog, where: Mapping[str, Any] | None = None, by: Sequence[str] = BY
) -> pl.DataFrame:
    """Columns `by`, name, tool, formula, kind, num, den, plus, value, why, trap; one row a name.

    `value` is plus + num / den, null with `why` when it can't be told. The off arm is left
    out; simulated and real cycles are apart. Raises Problem for a name that is no dimension.
    """
    by = [catalog.dimension(name) for name in by]
    by = by if "simulated" in by else [*by, "simulated"]
    condition, params = catalog.selection(where or {})
    text = catalog.sql_text("rosetta").replace("{dims}", ", ".join(by))
    text = text.replace("{where}", condition)
    rows = data.run(text, "rosetta", params)
    about = pl.DataFrame(
        [(n.name, n.tool, n.formula, n.kind, n.trap) for n in NAMES],
        schema=["name", "tool", "formula", "kind", "trap"], orient="row",
    ).with_row_index("place")  # fmt: skip
    why = (
        pl.when(pl.col("value").is_not_null())
        .then(None)
        .when(pl.col("name").str.starts_with("lines_") & (pl.col("den").fill_null(0) == 0))
        .then(pl.lit("no timing lines of the legacy kind here"))
        .when(pl.col("num").is_null() | pl.col("den").is_null())
        .then(pl.lit("a count it needs is unknown in some cycles"))
        .otherwise(pl.lit("nothing to divide by"))
    )
    return (
        rows.join(about, on="name", maintain_order="left")
        .sort(*by, "place", maintain_order=True, nulls_last=True)
        .select(*by, "name", "tool", "formula", "kind", "num", "den", "plus", "value",
                why.alias("why"), "trap", "depth")
    )  # fmt: skip
