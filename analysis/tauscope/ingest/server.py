"""ds4-server's lines to requests.

A request is known by its kind and its prompt's length, `ctx=cached..prompt:new`;
equal ones are taken first in, first out. A decoding chunk shows the context as
it grows, so its prompt is the end of its span less the tokens generated so far.
While exactly one request is open, the cycles printed meanwhile are its own;
while several are (batched sessions), nobody can tell, and nobody guesses.

Decode time: the seconds of the last decoding chunk, counted since the prompt was
done, when that chunk covers every generated token; else the request's seconds
(which include the prompt) less those of `prompt done`.
"""

from __future__ import annotations

import polars as pl

from tauscope.ingest.text import NUMBER, STAMP

FLAGS = r"((?: [A-Z][A-Z_]+)*)"
_HEAD = r"^(?:([0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}) )?ds4-server: (chat|completion) ctx=([0-9]+)\.\.([0-9]+):([0-9]+)(.*)$"  # noqa: E501
_CHUNK = rf" chunk=({NUMBER}) t/s avg=({NUMBER}) t/s ({NUMBER})s$"
_SHAPES = {
    "start": (rf"^{FLAGS} prompt start$", ["flags"]),
    "done": (rf"^{FLAGS} prompt done ({NUMBER})s$", ["flags", "seconds"]),
    "prefill": (
        rf"^{FLAGS} [a-z][a-z ]* chunk [0-9]+/[0-9]+ \({NUMBER}%\){_CHUNK}",
        ["flags", "chunk", "avg", "seconds"],
    ),
    "decode": (
        rf"^ gen=([0-9]+){FLAGS} decoding{_CHUNK}",
        ["gen", "flags", "chunk", "avg", "seconds"],
    ),
    "finish": (
        rf'^ gen=([0-9]+){FLAGS} finish=([a-z_]+)(?: error="(.*)")? ({NUMBER})s$',
        ["gen", "flags", "finish", "error", "seconds"],
    ),
    # The client went away, or the prompt failed: no finish line follows.
    "abort": (
        rf"^{FLAGS} ((?:stream closed during prefill|[a-z ]*headers failed"
        rf"|[A-Za-z ]*stream start failed|prefill [A-Za-z ]*(?:failed|closed): ).*)$",
        ["flags", "error"],
    ),
}
EVENT: dict[str, pl.DataType] = {
    "line": pl.Int64(),
    "piece": pl.Int32(),
    "event": pl.String(),
    "stamp": pl.String(),
    "kind": pl.String(),
    "cached": pl.Int64(),
    "prompt": pl.Int64(),
    "gen": pl.Int64(),
    "flags": pl.String(),
    "avg": pl.Float64(),
    "seconds": pl.Float64(),
    "finish": pl.String(),
    "error": pl.String(),
}
STATE = {**EVENT, "run": pl.Int64(), "id": pl.Int64(), "overlapped": pl.Boolean()}
_KEY = ("run", "kind", "prompt")


def is_server(column: pl.Expr) -> pl.Expr:
    return column.str.contains(f"^{STAMP}ds4-server: ")


def events(frame: pl.DataFrame) -> pl.DataFrame:
    """Lines of ds4-server (line, piece, text) to request events; other lines of it are left out."""
    names = ["stamp", "kind", "cached", "prompt", "span", "rest"]
    heads = (
        frame.with_columns(
            pl.col("text").str.extract_groups(_HEAD).struct.rename_fields(names).alias("parts")
        )
        .unnest("parts")
        .filter(pl.col("kind").is_not_null())
        .with_columns(pl.col("cached", "prompt").cast(pl.Int64, strict=False))
        .filter(pl.all_horizontal(pl.col("cached", "prompt").is_not_null()))
    )
    found = []
    for event, (pattern, fields) in _SHAPES.items():
        part = (
            heads.filter(pl.col("rest").str.contains(pattern))
            .with_columns(
                pl.col("rest")
                .str.extract_groups(pattern)
                .struct.rename_fields(fields)
                .alias("more"),
                pl.lit(event).alias("event"),
            )
            .unnest("more")
        )
        have = set(part.columns)
        found.append(
            part.select(
                pl.col(name).cast(dtype, strict=False)
                if name in have
                else pl.lit(None, dtype=dtype).alias(name)
                for name, dtype in EVENT.items()
            )
        )
    table = pl.concat(found)
    decode = pl.col("event") == "decode"
    counted = pl.col("event").is_in(["decode", "finish"])
    return table.filter(~counted | pl.col("gen").is_not_null()).with_columns(
        prompt=pl.when(decode).then(pl.col("prompt") - pl.col("gen")).otherwise("prompt"),
        cached=pl.when(~decode).then("cached"),
    )


def follow(old: pl.DataFrame, new: pl.DataFrame, base: dict[int, int]) -> pl.DataFrame:
    """Every event with the request it belongs to.

    `old` are the events of requests still open (STATE), `new` those of this
    block with `run`; `base[run]` is the first free request number of a run.
    Returns both in order with `id` (null where ambiguous), `open` and `sole`:
    how many requests are open after the event, and the one when it is the only.
    """
    new = new.select(
        pl.col(name).cast(dtype) if name in new.columns else pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in STATE.items()
    )
    table = pl.concat([old, new]).sort("line", "piece", maintain_order=True)
    start, end = pl.col("event") == "start", pl.col("event").is_in(["finish", "abort"])
    table = table.with_columns(start=start, end=end)
    balance = (pl.col("start").cast(pl.Int64) - pl.col("end").cast(pl.Int64)).cum_sum().over(_KEY)
    floor = pl.min_horizontal(balance.cum_min().over(_KEY), pl.lit(0))
    table = table.with_columns(floor=floor)
    # An end below the floor has no start in this log: a request of its own.
    orphan = pl.col("end") & (pl.col("floor") < pl.col("floor").shift(1, fill_value=0).over(_KEY))
    table = table.with_columns(orphan=orphan).with_columns(end=pl.col("end") & ~pl.col("orphan"))
    begun = pl.col("start").cast(pl.Int64).cum_sum().over(_KEY)
    ended = (pl.col("end").cast(pl.Int64).cum_sum() - pl.col("end").cast(pl.Int64)).over(_KEY)
    table = table.with_columns(
        nth=pl.when("orphan")
        .then(None)
        .when("start")
        .then(begun - 1)
        .when(pl.col("end") | (begun - ended == 1))
        .then(ended)
    )
    fresh = (pl.col("start") | pl.col("orphan")) & pl.col("id").is_null()
    first = pl.col("run").replace_strict(base, default=0, return_dtype=pl.Int64)
    table = table.with_columns(
        id=pl.when(fresh)
        .then(first + fresh.cast(pl.Int64).cum_sum().over("run") - 1)
        .otherwise("id")
    )
    named = table.filter("start").select(*_KEY, "nth", pl.col("id").alias("named"))
    table = (
        table.join(named, on=[*_KEY, "nth"], how="left", maintain_order="left")
        .with_columns(id=pl.coalesce("id", "named"))
        .drop("named")
    )
    step = pl.col("start").cast(pl.Int64) - pl.col("end").cast(pl.Int64)
    table = table.with_columns(
        open=step.cum_sum().over("run"),
        sole=(step * pl.col("id").fill_null(0)).cum_sum().over("run"),
        begun=pl.col("start").cast(pl.Int64).cum_sum().over("run"),
    )
    return table.with_columns(sole=pl.when(pl.col("open") == 1).then("sole"))


def rows(table: pl.DataFrame) -> pl.DataFrame:
    """One row a request out of `follow`'s table: columns of `requests`, and `open_now`."""
    of = lambda event, name: pl.col(name).filter(pl.col("event") == event)  # noqa: E731
    ended = pl.col("event").is_in(["finish", "abort"])
    table = table.with_columns(last_begun=pl.col("begun").last().over("run"))
    grouped = (
        table.filter(pl.col("id").is_not_null())
        .group_by("run", "id", maintain_order=True)
        .agg(
            pl.col("kind").first(),
            pl.col("flags")
            .str.split(" ")
            .list.explode()
            .drop_nulls()
            .unique(maintain_order=True)
            .alias("flags"),
            pl.col("prompt").first().alias("prompt_tokens"),
            pl.col("cached").drop_nulls().first().alias("cached_tokens"),
            of("finish", "gen").last().alias("generated_tokens"),
            of("finish", "finish").last().alias("finish"),
            pl.col("error").drop_nulls().last(),
            of("finish", "seconds").last().alias("total"),
            of("done", "seconds").last().alias("done"),
            of("prefill", "avg").last().alias("prefill_tokens_per_s"),
            of("decode", "gen").last().alias("chunk_gen"),
            of("decode", "avg").last().alias("chunk_avg"),
            of("decode", "seconds").last().alias("chunk_seconds"),
            of("start", "stamp").last().alias("started_at"),
            ended.any().alias("ended"),
            (pl.col("event") == "abort").any().alias("aborted"),
            pl.col("start").any().alias("started"),
            pl.col("overlapped").any().alias("overlapped"),
            of("start", "open").last().alias("open_at_start"),
            of("start", "begun").last().alias("begun_at_start"),
            pl.when(ended).then("begun").otherwise("last_begun").last().alias("begun_at_end"),
            pl.col("line").min().alias("first_line"),
            pl.col("line").max().alias("last_line"),
        )
    )
    covered = pl.col("chunk_gen") == pl.col("generated_tokens")
    closed = pl.col("ended")
    return grouped.with_columns(
        flags=pl.col("flags").list.eval(pl.element().filter(pl.element() != "")),
        finish=pl.when("aborted").then(pl.lit("error")).otherwise("finish"),
        tokens_source=pl.when(pl.col("generated_tokens").is_not_null()).then(pl.lit("engine")),
        prefill_ms=pl.col("done") * 1000,
        decode_ms=pl.when(closed & covered)
        .then(pl.col("chunk_seconds") * 1000)
        .when(closed & (pl.col("total") >= pl.col("done")))
        .then(((pl.col("total") - pl.col("done")) * 1000).round(3)),
        overlapped=pl.when("started").then(
            pl.col("overlapped").fill_null(False)
            | (pl.col("open_at_start") > 1)
            | (pl.col("begun_at_end") > pl.col("begun_at_start"))
        ),
    ).with_columns(
        decode_tokens_per_s=pl.when(closed & covered)
        .then("chunk_avg")
        .when(pl.col("decode_ms") > 0)
        .then(pl.col("generated_tokens") * 1000 / pl.col("decode_ms")),
    )


def still_open(table: pl.DataFrame, requests: pl.DataFrame, run: int) -> pl.DataFrame:
    """What `follow` needs of the open requests of `run` next time: a few events each."""
    keep = requests.filter((pl.col("run") == run) & ~pl.col("ended")).select(
        "run", "id", pl.col("overlapped").alias("now")
    )
    return (
        table.join(keep, on=["run", "id"], how="inner", maintain_order="left")
        .with_columns(overlapped=pl.col("now"))
        .unique(["id", "event"], keep="last", maintain_order=True)
        .select(*STATE)
    )
