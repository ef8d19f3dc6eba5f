"""Put an experiment that is done into a store of its own: one log in place of hundreds.

    python -m tauscope.experiment.pack FROM TO

The logs of its cells become one, in the order in which they ran; what was read from
them moves along, with its line numbers counted on. For a store that is to be kept or
sent: a thousand small files take more room than what is in them.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import zstandard

from tauscope import schema, store
from tauscope.errors import Problem
from tauscope.experiment.run import ORDER_FACT
from tauscope.ingest.source import Log

LINES = ("line", "first_line", "last_line")


def pack(source: Path, target: Path, experiment: str) -> pl.DataFrame:
    """Write `experiment` of the store `source` into the new store `target`; its run rows.

    Outputs and plan go along, the outputs as one file. Raises Problem when the experiment
    isn't in `source`, a log of it can't be read, or `target` holds runs already.
    """
    if (target / "runs").exists():
        raise Problem(f"{target}: holds runs already; name a new folder")
    held = store.read([source]).runs.filter(pl.col("experiment") == experiment)
    if held.is_empty():
        raise Problem(f"{experiment}: no such experiment in {source}; tauscope runs lists them")
    place = pl.col("facts").list.eval(
        pl.element().filter(pl.element().struct["name"] == ORDER_FACT).struct["value"]
    )
    held = held.with_columns(place=place.list.first().cast(pl.Int64)).sort("place", "run_index")
    log_id = hashlib.sha256(f"packed\0{experiment}".encode()).hexdigest()[:12]
    digest, size, starts = _join_logs(source, target, held, log_id)
    names = held.select("run_id", "log_id").with_row_index("index")
    names = names.join(starts, on="log_id", maintain_order="left").with_columns(
        new=pl.format("{}-{}", pl.lit(log_id), "index")
    )
    writer = store.LogWriter(target, log_id, "packed")
    for table, column in ((schema.CYCLES, "cycle_files"), (schema.REFUSED, "refused_files")):
        writer.add(table, _moved(_rows(source, held, column, table), names))
    requests = _moved(_rows(source, held, "request_files", schema.REQUESTS), names)
    runs = _moved(held, names)
    for name in ("facts", "unfit_examples"):
        runs = _counted_on(runs, name)
    runs = runs.with_columns(
        pl.lit(log_id).alias("log_id"),
        pl.int_range(pl.len()).cast(pl.Int32).alias("run_index"),
        pl.lit(f"raw/{log_id}.log.zst").alias("raw_file"),
        pl.lit(digest).alias("raw_sha256"),
        pl.lit(size, dtype=pl.Int64).alias("raw_bytes"),
    )
    writer.commit(runs, requests)
    _outputs(source / "experiments" / experiment, target, held)
    return schema.conform(runs, schema.RUNS)


def _join_logs(
    source: Path, target: Path, held: pl.DataFrame, log_id: str
) -> tuple[str, int, pl.DataFrame]:
    """(sha256, bytes) of the joined log, and the lines before each log in it."""
    (target / "raw").mkdir(parents=True, exist_ok=True)
    digest, size, lines, starts = hashlib.sha256(), 0, 0, []
    out = zstandard.ZstdCompressor(level=19)
    with (
        (target / "raw" / f"{log_id}.log.zst").open("wb") as handle,
        out.stream_writer(handle, closefd=False) as writer,
    ):
        for name, raw in held.select("log_id", "raw_file").unique(maintain_order=True).iter_rows():
            starts.append((name, lines))
            for block in _whole_lines(Log(raw, (source / raw,)).blocks()):
                digest.update(block)
                size += len(block)
                lines += block.count(b"\n")
                writer.write(block)
    kinds = {"log_id": pl.String, "before": pl.Int64}
    return digest.hexdigest(), size, pl.DataFrame(starts, schema=kinds, orient="row")


def _whole_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks, and an end for a last line that has none."""
    last = b"\n"
    for block in blocks:
        last = block[-1:] or last
        yield block
    if last != b"\n":
        yield b"\n"


def _rows(source: Path, held: pl.DataFrame, column: str, table: schema.Table) -> pl.DataFrame:
    files = held[column].explode().drop_nulls().unique(maintain_order=True)
    frames = [schema.conform(pl.read_parquet(source / f, glob=False), table) for f in files]
    return pl.concat(frames) if frames else schema.empty(table)


def _moved(rows: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """`rows` with the run's new name and its lines counted on, in the runs' order."""
    return (
        rows.join(names.select("run_id", "index", "before", "new"), on="run_id")
        .sort("index", maintain_order=True)
        .with_columns(
            pl.col("new").alias("run_id"),
            *(pl.col(name) + pl.col("before") for name in LINES if name in rows.columns),
        )
    )


def _counted_on(runs: pl.DataFrame, name: str) -> pl.DataFrame:
    """`runs` with the lines in a list of structs counted on; what has no line keeps none."""
    flat = runs.select("run_id", "before", name).explode(name).drop_nulls(name).unnest(name)
    fields = [field.name for field in runs.schema[name].inner.fields]
    lists = (
        flat.with_columns(line=pl.col("line") + pl.col("before"))
        .group_by("run_id", maintain_order=True)
        .agg(pl.struct(fields).alias(name))
    )
    return runs.drop(name).join(lists, on="run_id", how="left", maintain_order="left")


def _outputs(folder: Path, target: Path, held: pl.DataFrame) -> None:
    """plan.json as it is, and outputs.json: each prompt's texts, with the cells that gave them."""
    if (folder / "plan.json").exists():
        shutil.copyfile(folder / "plan.json", target / "plan.json")
    texts: dict[str, dict[str, list[str]]] = {}
    for log_id, prompt, arm in (
        held.select("log_id", "prompt_id", "arm").unique(maintain_order=True).iter_rows()
    ):
        path = folder / "outputs" / f"{log_id}.txt"
        if path.exists():
            text = path.read_text(encoding="utf-8", errors="replace")
            texts.setdefault(prompt, {}).setdefault(text, []).append(arm)
    listed = [
        {"prompt_id": prompt, "arms": arms, "output": text}
        for prompt, found in texts.items()
        for text, arms in found.items()
    ]
    (target / "outputs.json").write_text(
        json.dumps(listed, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )


def main() -> None:
    """Pack the one experiment of a store: FROM TO."""
    source, target = (Path(word).absolute() for word in sys.argv[1:3])
    names = store.read([source]).runs["experiment"].drop_nulls().unique().to_list()
    try:
        if len(names) != 1:
            raise Problem(f"{source}: {len(names)} experiments; pack takes a store with one")
        rows = pack(source, target, names[0])
    except Problem as problem:
        sys.exit(str(problem))
    print(f"{target}: {rows.height} runs of {names[0]}")


if __name__ == "__main__":
    main()
