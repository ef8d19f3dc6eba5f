"""Whose cycles are whose: the requests of a run, and the request of every cycle.

A CLI run is one request, or one for each speed line of a REPL. Once ds4-server
has said anything in a run, only its own start and finish lines open and close
requests, and a cycle outside them belongs to none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from tauscope.ingest import server
from tauscope.ingest.records import Rule

_PLACE = ("line", "piece")


@dataclass
class _Open:
    """What the current run's requests look like at the end of a block."""

    run: int = 0
    serving: bool = False
    cli_id: int = 0  # number of the CLI request that is open, or comes next
    cli_line: int | None = None  # its first line, once it has one
    next_id: int = 0  # first free number, once the server speaks
    events: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=server.STATE))


class Requests:
    """Follows the requests of a log from block to block."""

    def __init__(self) -> None:
        self._open = _Open()
        self.count = 0  # requests in all runs so far

    def assign(
        self,
        run: int,
        cycles: pl.DataFrame,
        marks: pl.DataFrame,
        speeds: pl.DataFrame,
        events: pl.DataFrame,
    ) -> tuple[pl.Series, pl.DataFrame]:
        """Request of each row of `cycles`, and the requests opened or changed.

        `cycles` has line, piece, run, first_line, last_line, in order; `marks` the
        records (line, piece, run, rule) of speed and server lines; `speeds` and
        `events` what they say, with `run`. `run` is the run the block ends in.
        """
        now = self._open
        if not marks.height and not now.serving and run == now.run:
            return self._only_cycles(cycles)
        flow = self._flow(cycles, marks)
        base = self._first_free(flow)
        table = server.follow(now.events, events, base)
        flow = self._with_server(flow, table)
        rows = [self._cli_rows(flow, speeds)]
        served = server.rows(table) if table.height else None
        if served is not None and served.height:
            rows.append(served.select("run", pl.col("id").alias("request_id"), *_SERVED))
        fresh = pl.concat(rows, how="diagonal")
        self._close(run, flow, table, served, base)
        ids = flow.filter(pl.col("nth").is_not_null()).sort("nth")["request_id"]
        return ids, fresh

    def _only_cycles(self, cycles: pl.DataFrame) -> tuple[pl.Series, pl.DataFrame]:
        """The usual block of a long log: cycles of the one open CLI request, nothing else."""
        now = self._open
        ids = pl.Series("request_id", [now.cli_id], pl.Int64).new_from_index(0, cycles.height)
        if not cycles.height:
            return ids, pl.DataFrame(schema=_CLI)
        if now.cli_line is None:
            now.cli_line = int(cycles["first_line"].min())
            self.count += 1
        row = {
            "run": now.run,
            "request_id": now.cli_id,
            "first_line": now.cli_line,
            "last_line": int(cycles["last_line"].max()),
        }
        return ids, pl.DataFrame([row], schema=_CLI)

    def _flow(self, cycles: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
        """Cycles and marks in the order of the log, with their CLI request."""
        now = self._open
        flow = pl.concat(
            [
                cycles.select(*_PLACE, "run", "first_line", "last_line")
                .with_row_index("nth")
                .with_columns(rule=pl.lit(0, pl.UInt8), nth=pl.col("nth").cast(pl.Int64)),
                marks.select(*_PLACE, "run", "rule").with_columns(
                    first_line="line", last_line="line"
                ),
            ],
            how="diagonal",
        ).sort(*_PLACE, maintain_order=True)
        here = pl.col("run") == now.run
        speaks = pl.col("rule").is_in([int(Rule.SERVER), int(Rule.NOTE)])
        serving = speaks.cum_max().over("run") | (here & now.serving)
        flow = flow.with_columns(serving=serving)
        turn = ((pl.col("rule") == Rule.SPEED) & ~pl.col("serving")).cast(pl.Int64)
        first = pl.when(here).then(now.cli_id).otherwise(0)
        counts = ~pl.col("serving") & ((pl.col("rule") == 0) | (pl.col("rule") == Rule.SPEED))
        return flow.with_columns(
            cli=pl.when(counts).then(first + (turn.cum_sum() - turn).over("run")),
            turn=turn,
        )

    def _first_free(self, flow: pl.DataFrame) -> dict[int, int]:
        """First request number free for the server, by run."""
        now = self._open
        base = {
            run: (-1 if last is None else last) + 1
            for run, last in flow.group_by("run").agg(pl.col("cli").max()).iter_rows()
        }
        taken = now.next_id if now.serving else now.cli_id + (now.cli_line is not None)
        base[now.run] = max(base.get(now.run, 0), taken)
        return base

    def _with_server(self, flow: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
        """`flow` with `request_id`: of the CLI, or the server's only open request."""
        now = self._open
        carried = now.events.height
        count, sole = (0, -1)
        if carried:
            count, sole = table.row(carried - 1, named=True)["open"], table["sole"][carried - 1]
            sole = -1 if sole is None else sole
        state = table.slice(carried).select(*_PLACE, "open", pl.col("sole").fill_null(-1))
        here = pl.col("run") == now.run
        flow = flow.join(state, on=list(_PLACE), how="left", maintain_order="left").with_columns(
            pl.col("open", "sole").forward_fill().over("run")
        )
        flow = flow.with_columns(
            open=pl.col("open").fill_null(pl.when(here).then(count).otherwise(0)),
            sole=pl.col("sole").fill_null(pl.when(here).then(sole).otherwise(-1)),
        )
        alone = pl.col("serving") & (pl.col("open") == 1) & (pl.col("sole") >= 0)
        return flow.with_columns(request_id=pl.when(alone).then("sole").otherwise("cli"))

    def _cli_rows(self, flow: pl.DataFrame, speeds: pl.DataFrame) -> pl.DataFrame:
        now = self._open
        table = flow.filter(pl.col("cli").is_not_null()).join(
            speeds.select(*_PLACE, "prefill", "generation"),
            on=list(_PLACE),
            how="left",
            maintain_order="left",
        )
        rows = table.group_by("run", "cli", maintain_order=True).agg(
            pl.col("first_line").min(),
            pl.col("last_line").max(),
            pl.col("turn").max(),
            pl.col("prefill", "generation").drop_nulls().first(),
        )
        begun = (pl.col("run") == now.run) & (pl.col("cli") == now.cli_id)
        if now.cli_line is not None:
            rows = rows.with_columns(
                first_line=pl.when(begun).then(now.cli_line).otherwise("first_line")
            )
            self.count -= rows.filter(begun).height
        self.count += rows.height
        # 0.00 t/s is what the engine prints when there was nothing to divide.
        return rows.select(
            "run",
            pl.col("cli").alias("request_id"),
            pl.when(pl.col("turn") == 1).then(pl.lit("cli")).alias("kind"),
            pl.when(pl.col("prefill") > 0).then("prefill").alias("prefill_tokens_per_s"),
            pl.when(pl.col("generation") > 0).then("generation").alias("decode_tokens_per_s"),
            "first_line",
            "last_line",
        )

    def _close(
        self,
        run: int,
        flow: pl.DataFrame,
        table: pl.DataFrame,
        served: pl.DataFrame | None,
        base: dict[int, int],
    ) -> None:
        """Keep what the next block needs to know."""
        was, here = self._open, flow.filter(pl.col("run") == run)
        now = was if was.run == run else _Open(run)
        if here.height:
            now.serving = bool(here["serving"][-1])
        turns = here.filter(pl.col("turn") == 1)
        if turns.height:
            now.cli_id, now.cli_line = int(turns["cli"].max()) + 1, None
        since = here.filter(pl.col("cli") == now.cli_id)
        if since.height and now.cli_line is None:
            now.cli_line = int(since["first_line"].min())
        now.next_id = base.get(run, 0)
        if served is not None and served.height:
            new = served.filter(pl.col("id") >= pl.col("run").replace_strict(base, default=0))
            self.count += new.height
            mine = served.filter(pl.col("run") == run)
            if mine.height:
                now.next_id = max(now.next_id, int(mine["id"].max()) + 1)
            now.events = server.still_open(table, served, run)
        elif was.run != run:
            now.events = pl.DataFrame(schema=server.STATE)
        self._open = now


_CLI = {
    "run": pl.Int64(),
    "request_id": pl.Int64(),
    "first_line": pl.Int64(),
    "last_line": pl.Int64(),
}
_SERVED = (
    "kind", "flags", "finish", "error", "prompt_tokens", "cached_tokens", "generated_tokens",
    "tokens_source", "prefill_ms", "prefill_tokens_per_s", "decode_ms", "decode_tokens_per_s",
    "started_at", "overlapped", "first_line", "last_line",
)  # fmt: skip
