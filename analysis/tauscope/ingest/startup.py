"""What a log says about the run itself: its facts, and where a run begins."""

from __future__ import annotations

import polars as pl

from tauscope.ingest.text import NUMBER, STAMP

# A start-up line that follows a cycle, a request or a speed line begins a run.
BEGINS = (
    rf"^(?:ds4: (?:.*\bloaded(?:: .*| \(.*\))?$|warming |[A-Za-z0-9]+ device |context buffers )"
    rf"|{STAMP}ds4-server: (?:context buffers |listening on ))"
)
# These say what an engine at work met, and may quote anything: none begins a run.
AT_WORK = r"^ds4: (?:mtp |glm mtp|dspark |DSpark |Qwen[0-9.]* (?:MTP|mtp)\b|Qwen graph failed )"
_LOADS = r"^ds4: (?:mtp|DSpark|Qwen[0-9.]* MTP) (?:support |draft )?model loaded\b"
SPEED = rf"^ds4: prefill: ({NUMBER}) t/s, generation: ({NUMBER}) t/s$"
# A line of the engine or its server, up to its subject.
_OF = rf"^(?:ds4: |{STAMP}ds4-server: )(?:[A-Za-z0-9]+ )?"
FIRST, LAST = "first", "last"
# name, pattern (its first group is the value), which one stays when it is said again
_FACTS = (
    ("drafter", r"^ds4: (?:MTP|DSpark) support model (?:loaded|detected): (.+?)(?: \(draft=[0-9]+\))?$", FIRST),  # noqa: E501
    ("draft_depth", r"^ds4: (?:MTP|DSpark) support model loaded: .+\(draft=([0-9]{1,6})\)$", FIRST),
    ("draft_depth", r"^ds4: Qwen MTP state capture: depth=([0-9]{1,6}) ", FIRST),
    ("machine", r"^ds4: [A-Za-z0-9]+ device (.+)$", FIRST),
    ("device", r"^ds4: ([A-Za-z0-9]+) device ", FIRST),
    ("model", r"^ds4: (?:target )?model(?: loaded)?: (.+)$", FIRST),
    ("ctx", _OF + r"(?:context buffers|memory detail:|graph allocated:) .*?\bctx=([0-9]{1,12})\b", FIRST),  # noqa: E501
    ("backend", _OF + r"(?:context buffers|memory detail:) .*?\bbackend=([A-Za-z0-9_-]+)", FIRST),
    ("listening", rf"^{STAMP}ds4-server: listening on (.+)$", FIRST),
    ("qwen_histogram", r"^ds4: Qwen MTP accepted-length histogram ([0-9= ]+)$", LAST),
    ("qwen_scheduler", r"^ds4: Qwen MTP scheduler (.+)$", LAST),
    ("graph_failed", r"^ds4: Qwen graph failed (.+)$", FIRST),
    ("history_short", r"^ds4: Qwen MTP history frontier short (.+)$", FIRST),
    ("mtp_probe", r"^ds4: mtp probe token=.* hit=([0-9]+/[0-9]+)$", LAST),
    ("verifier_failed", r"^ds4: mtp (.*)verifier failed, falling back to sequential$", FIRST),
    ("dspark_scheduler", r"^ds4: DSpark ((?:scheduler|break-even) .+)$", LAST),
    ("verify_cycles", r"^ds4: (Qwen[0-9.]* mtp: .+)$", LAST),
)  # fmt: skip
STATS = "^ds4: DSpark stats "
# A terminal or a pasted report wraps the long stats line: what follows holds fields only.
WRAPPED = r"^[ \t]*[A-Za-z0-9_.%=,:/ \t-]*[=%][A-Za-z0-9_.%=,:/ \t-]*$"
WRAPPED_LINES = 3


def begins(text: pl.Expr) -> pl.Expr:
    """Whether a piece is a start-up line."""
    working = text.str.contains(AT_WORK) & ~text.str.contains(_LOADS)
    return text.str.contains(BEGINS) & ~working


def facts(frame: pl.DataFrame) -> pl.DataFrame:
    """Pieces (line, piece, text) to facts (line, piece, name, value, keep)."""
    parts = []
    for name, pattern, keep in _FACTS:
        part = frame.select(
            "line",
            "piece",
            pl.lit(name).alias("name"),
            pl.col("text").str.extract(pattern).str.slice(0, 500).alias("value"),
            pl.lit(keep).alias("keep"),
        ).filter(pl.col("value").is_not_null())
        if part.height:
            parts.append(part)
    if parts:
        return pl.concat(parts)
    return pl.DataFrame(
        schema={
            "line": pl.Int64, "piece": pl.Int32, "name": pl.String, "value": pl.String,
            "keep": pl.String,
        }
    )  # fmt: skip


def speeds(frame: pl.DataFrame) -> pl.DataFrame:
    """Pieces to the speed lines among them (line, piece, prefill, generation), tokens/s."""
    return (
        frame.with_columns(
            pl.col("text")
            .str.extract_groups(SPEED)
            .struct.rename_fields(["prefill", "generation"])
            .alias("parts")
        )
        .unnest("parts")
        .with_columns(pl.col("prefill", "generation").cast(pl.Float64, strict=False))
        .filter(pl.all_horizontal(pl.col("prefill", "generation").is_finite()))
        .select("line", "piece", "prefill", "generation")
    )
