"""Import a log into a store: told apart, parsed once, kept as it was, committed in one step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from tauscope import damage, schema, store
from tauscope.errors import Problem
from tauscope.ingest import agree, identity, twins
from tauscope.ingest.gather import Rows, says_something
from tauscope.ingest.parser import LogParser
from tauscope.ingest.rawcopy import RawCopy
from tauscope.ingest.source import Log
from tauscope.record import marker

Progress = Callable[[int], None]
STATUSES = {
    "imported": "new to the store",
    "continued": "a log that was in the store has grown",
    "recounted": "the same log, read again with what was given",
    "relabelled": "the same log, with other labels",
    "restored": "the same log, its damaged rows made again",
    "unchanged": "already in the store",
}


@dataclass(frozen=True, slots=True)
class Labels:
    """What the user says of the runs of a log; None leaves what is there."""

    workload: str | None = None
    arm: str | None = None
    prompt_id: str | None = None

    def given(self) -> dict[str, str]:
        """The labels that were given, by column."""
        pairs = {"workload": self.workload, "arm": self.arm, "prompt_id": self.prompt_id}
        return {name: value for name, value in pairs.items() if value is not None}


@dataclass(slots=True)
class Imported:
    """What became of one log. `status` is one word of STATUSES."""

    source: str
    status: str
    log_id: str
    runs: pl.DataFrame
    requests: pl.DataFrame
    outcomes: dict[str, int] = field(default_factory=dict)
    emitted: int | None = None
    # Names of the rotated parts that were read as one log, oldest first.
    parts: list[str] = field(default_factory=list)
    # What to know before trusting the labels, in whole lines.
    notes: list[str] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Counts for people and for --json; None where a count is unknown."""
        total = {
            name: int(self.runs[name].sum() or 0)
            for name in ("lines", "ignored_lines", "unfit_lines", "refused_rows", "unlogged_cycles")
        }
        made = self.requests["generated_tokens"]
        return {
            "source": self.source,
            "status": self.status,
            "log_id": self.log_id,
            "parts": self.parts,
            "notes": self.notes,
            "runs": self.runs["run_id"].to_list(),
            "requests": self.requests.height,
            "cycles": sum(self.outcomes.values()),
            "outcomes": self.outcomes,
            "tokens_accounted": self.emitted,
            "tokens_generated": None if made.null_count() else int(made.sum()),
            **total,
            "unfit_examples": self._listed("unfit_examples").to_list()[:3],
            "unknown_kinds": self._listed("unknown_kinds").unique().sort().to_list(),
            "dialects": self._listed("dialects").unique().sort().to_list(),
            "log_check": self._checks(),
        }

    def _checks(self) -> list[str]:
        """What the log beside a native trace came to: the count, then what differs."""
        facts = self._listed("facts").struct.unnest()
        return facts.filter(pl.col("name").is_in(["log_check", "log_disagrees"]))["value"].to_list()

    def _listed(self, column: str) -> pl.Series:
        return self.runs[column].explode().drop_nulls()


def import_log(
    log: Log,
    root: Path,
    labels: Labels | None = None,
    *,
    tokens: int | None = None,
    max_tokens: int | None = None,
    beside: Log | None = None,
    progress: Progress | None = None,
) -> Imported:
    """Bring one log into the store at `root`.

    `tokens`: exact count that its single request generated; `max_tokens`: a limit, kept
    as a fact; `beside`: what the same run printed, held against its native trace and not
    counted. `progress` is called with the number of bytes read, twice over the log.
    Raises Problem for a log that says nothing of speculation, speed or requests, that
    can't be read, or whose several requests can't share one token count.
    """
    labels = labels or Labels()
    held, damaged = held_logs(root)
    found = _restored(log, held, root) or identity.identify(log, held, root)
    if marker.path_of(root, found.log_id).exists():
        raise Problem(
            f"{log.name}: is log {found.log_id}, which is still being recorded; import it when "
            "that is over"
        )
    if found.kind in (identity.SAME, identity.OLDER):
        runs = store.read_runs(root, found.log_id)
        agrees = apply_labels(runs, labels).equals(runs) and tokens is None and max_tokens is None
        if found.kind == identity.OLDER and not agrees:
            raise Problem(
                f"{log.name}: is the beginning of log {found.log_id}, which is in the store "
                "already; what is given here would hold for all of that: use tauscope label"
            )
        if _is_whole(root, runs, damaged):
            counts_given = {"tokens_exact": tokens, "max_tokens": max_tokens}
            read_again = found.kind == identity.SAME and (
                beside is not None
                or any(
                    value is not None and runs[name].to_list() != [value] * runs.height
                    for name, value in counts_given.items()
                )
            )
            if not read_again:
                return _relabelled(log, root, found.log_id, labels)
        elif found.kind == identity.OLDER:
            raise Problem(
                f"{log.name}: is the beginning of log {found.log_id}, whose rows are damaged; "
                f"run first: tauscope import {root / 'raw' / found.log_id}.log.zst"
            )
        tokens = tokens if tokens is not None else runs["tokens_exact"].max()
        max_tokens = max_tokens if max_tokens is not None else runs["max_tokens"].max()
    if found.kind == identity.NEW and not _is_kept(log, root):
        twins.refuse_overlap(log, held, root)
    if found.kind in (identity.NEW, identity.GROWN):
        twins.refuse_inside(log, held, root, found.log_id)
    done = _parse(log, root, found, labels, tokens, max_tokens, beside, progress)
    if found.kind == identity.SAME and found.log_id in damaged:
        done.status = "restored"
    return done


def _is_whole(root: Path, runs: pl.DataFrame, damaged: set[str]) -> bool:
    """Can all rows of a log be read? If not, its name is put among the `damaged`."""
    if store.unreadable(runs.with_columns(pl.lit(str(root)).alias("store"))):
        damaged.add(runs["log_id"][0])
    return not damaged.intersection(runs["log_id"])


def _relabelled(log: Log, root: Path, log_id: str, labels: Labels) -> Imported:
    """A log that is in the store already, under `labels` where they are given."""
    # Another command may be labelling it too: what is changed is read under the lock.
    with store.locked(root):
        runs, requests = read_rows(root, log_id)
        changed = apply_labels(runs, labels)
        done = Imported(log.name, "unchanged", log_id, changed, requests)
        if not changed.equals(runs):
            store.relabel(root, log_id, changed, requests)
            done.status = "relabelled"
            done.notes = _taken_over(log, runs, changed)
    done.outcomes, done.emitted = stored_counts(root, changed)
    return done


def _taken_over(log: Log, before: pl.DataFrame, after: pl.DataFrame) -> list[str]:
    """A warning where a file of another name changes the labels of the one that is there."""
    names = ["workload", "arm", "prompt_id"]
    old, new = before.row(0, named=True), after.row(0, named=True)
    lost = [f"{n} {old[n]}" for n in names if old[n] is not None and old[n] != new[n]]
    if old["source"] == Path(log.name).name or not lost:
        return []
    return [
        f"{log.name}: the same bytes are in the store already as {old['source']} "
        f"({', '.join(lost)}); that log now has the new labels, and no second one was made"
    ]


def _parse(
    log: Log,
    root: Path,
    found: identity.Identity,
    labels: Labels,
    tokens: int | None,
    max_tokens: int | None,
    beside: Log | None,
    progress: Progress | None,
) -> Imported:
    generation = found.sha256[:8] + (f"n{tokens}" if tokens is not None else "")
    writer = store.LogWriter(root, found.log_id, generation)
    parser = LogParser(log_id=found.log_id, tokens=tokens, max_tokens=max_tokens)
    rows = Rows()
    keep = RawCopy(root, found.log_id, skip=found.bytes == 0 or _is_kept(log, root))
    with keep:
        for block in log.blocks():
            keep.write(block)
            rows.take(parser.feed(block), writer)
            if progress:
                progress(len(block))
        rows.take(parser.finish(), writer)
        runs, requests = rows.tables()
        _check(log, runs, requests, rows, tokens)
        # A native trace counts; what the log beside it says differently becomes a fact.
        checks = [*parser.checks(), *_stated(log, runs, beside)]
        runs = agree.with_checks(runs, checks, [root / n for n in writer.parts(schema.CYCLES)])
        keep.finish()
    runs = runs.with_columns(
        pl.lit(found.log_id).alias("log_id"),
        pl.lit(Path(log.name).name).alias("source"),
        pl.lit("import").alias("source_kind"),
        pl.lit("complete").alias("state"),
        pl.lit(False).alias("simulated"),
        pl.lit(f"raw/{found.log_id}.log.zst").alias("raw_file"),
        pl.lit(found.sha256).alias("raw_sha256"),
        pl.lit(found.bytes, dtype=pl.Int64).alias("raw_bytes"),
    )
    # A label that another command gives while this one reads is not lost.
    with store.locked(root):
        runs, requests = _keep_labels(root, found, runs, requests)
        runs = apply_labels(runs, labels)
        writer.commit(runs, requests)
    store.collect_orphans(root)
    status = {identity.NEW: "imported", identity.GROWN: "continued"}.get(found.kind, "recounted")
    return Imported(
        log.name, status, found.log_id, runs, requests, rows.outcomes, rows.emitted_or_none()
    )


def _stated(log: Log, runs: pl.DataFrame, beside: Log | None) -> list[tuple[str, pl.DataFrame]]:
    """The check that the user stated: the one native run of `log` and the cycles of `beside`."""
    if beside is None:
        return []
    if runs["dialects"].to_list() != [["native"]]:
        raise Problem(
            f"{log.name}: --beside needs a native trace of one run; "
            f"leave it out, or import {beside.name} as a run of its own"
        )
    return [(runs["run_id"][0], agree.one_run(beside))]


def apply_labels(runs: pl.DataFrame, labels: Labels) -> pl.DataFrame:
    """`runs` with the given labels in place."""
    return runs.with_columns(
        pl.lit(value, dtype=pl.String).alias(name) for name, value in labels.given().items()
    )


def held_logs(root: Path) -> tuple[pl.DataFrame, set[str]]:
    """(logs of a store, one row each, and which of them are damaged): log_id, raw_bytes,
    raw_sha256, raw_file, source."""
    names = ["log_id", "raw_bytes", "raw_sha256", "raw_file", "source"]
    contents = store.read([root])
    frames = [contents.runs.select(names)]
    for lost in contents.damaged:
        # What is damaged is known still, so that it can be made again in its place.
        with contextlib.suppress(OSError, pl.exceptions.PolarsError):
            frames.append(store.read_runs(root, lost.log_id).select(names))
    held = pl.concat(frames).unique("log_id", maintain_order=True)
    return held, {lost.log_id for lost in contents.damaged}


def read_rows(root: Path, log_id: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(run rows, request rows) of one log as they are on disk."""
    runs = store.read_runs(root, log_id)
    return runs, pl.concat([schema.empty(schema.REQUESTS), *_requests(root, runs)])


def _requests(root: Path, runs: pl.DataFrame) -> Iterator[pl.DataFrame]:
    for name in runs["request_files"].explode().drop_nulls().unique(maintain_order=True):
        path = damage.inside(root, name)
        yield schema.conform(pl.read_parquet(path, glob=False), schema.REQUESTS)


def stored_counts(root: Path, runs: pl.DataFrame) -> tuple[dict[str, int], int | None]:
    """(cycles by outcome, Σ emitted or None) of a log that is in the store already."""
    counts: dict[str, int] = {}
    emitted: int | None = None
    known = True
    for name in runs["cycle_files"].explode().drop_nulls().unique(maintain_order=True):
        part = pl.read_parquet(root / name, columns=["outcome", "emitted"], glob=False)
        for outcome, count in part["outcome"].value_counts().iter_rows():
            counts[outcome] = counts.get(outcome, 0) + count
        known &= part["emitted"].null_count() == 0
        emitted = (emitted or 0) + int(part["emitted"].cast(pl.Int64).sum())
    return counts, emitted if known else None


def _keep_labels(
    root: Path, found: identity.Identity, runs: pl.DataFrame, requests: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Carry labels over to a log that is parsed again; a new run takes the log's last ones."""
    try:
        old_runs = store.read_runs(root, found.log_id)
    except (OSError, pl.exceptions.PolarsError):
        return runs, requests  # new, or what it said is lost
    old_requests = schema.empty(schema.REQUESTS)
    with contextlib.suppress(OSError, pl.exceptions.PolarsError):
        old_requests = pl.concat([old_requests, *_requests(root, old_runs)])
    names = ["workload", "arm", "prompt_id"]
    runs = (
        runs.drop(names)
        .join(old_runs.select("run_id", *names), on="run_id", how="left", maintain_order="left")
        .with_columns(
            pl.when(pl.col("run_index") > old_runs["run_index"].max())
            .then(pl.lit(old_runs.sort("run_index")[name].last(), dtype=pl.String))
            .otherwise(pl.col(name))
            .alias(name)
            for name in names
        )
    )
    if found.kind == identity.SAME:
        # The same bytes say no less than before: what they don't say, a recorder had added.
        told = [n for n in runs.columns if n not in {*names, "run_id", "source", "source_kind"}]
        before = old_runs.select("run_id", pl.exclude("run_id").name.prefix("old_"))
        runs = runs.join(before, on="run_id", how="left", maintain_order="left").with_columns(
            *(pl.coalesce(n, f"old_{n}") for n in told),
            *(pl.coalesce(f"old_{n}", n).alias(n) for n in ("source", "source_kind")),
        )
    own = ["workload", "prompt_id"]
    kept = old_requests.select("run_id", "request_id", *(pl.col(n).alias(f"old_{n}") for n in own))
    requests = requests.join(
        kept, on=["run_id", "request_id"], how="left", maintain_order="left"
    ).with_columns(pl.coalesce(f"old_{n}", n).alias(n) for n in own)
    return schema.conform(runs, schema.RUNS), schema.conform(requests, schema.REQUESTS)


def _check(
    log: Log, runs: pl.DataFrame, requests: pl.DataFrame, rows: Rows, tokens: int | None
) -> None:
    if not says_something(runs, requests, rows.cycles):
        unfit = int(runs["unfit_lines"].sum() or 0)
        if unfit:
            raise Problem(
                f"{log.name}: {unfit} lines look like speculation but none fits a known shape; "
                "is it a log of another engine or version?"
            )
        raise Problem(
            f"{log.name}: no speculation, speed or request line found; was DS4_MTP_TIMING=1 set?"
        )
    if tokens is not None and requests.height > 1:
        raise Problem(
            f"{log.name}: --tokens is the count of one request, but the log holds "
            f"{requests.height}; leave it out"
        )


def _restored(log: Log, held: pl.DataFrame, root: Path) -> identity.Identity | None:
    """A log that is read back from this store's own raw folder keeps its name."""
    if not _is_kept(log, root):
        return None
    log_id = log.parts[0].name.removesuffix(".log.zst")
    found = identity.identify(log, held, root)
    if found.kind == identity.NEW:
        return identity.Identity(identity.NEW, log_id, found.sha256, found.bytes)
    return found


def _is_kept(log: Log, root: Path) -> bool:
    inside = (root / "raw").resolve()
    return len(log.parts) == 1 and log.parts[0].resolve().parent == inside


def import_all(
    logs: Sequence[Log],
    root: Path,
    labels: Labels | None = None,
    *,
    tokens: int | None = None,
    max_tokens: int | None = None,
    beside: Log | None = None,
    progress: Progress | None = None,
) -> Iterator[Imported | Problem]:
    """Import each log; a bad one yields its Problem and the others go on."""
    for log in logs:
        try:
            done = import_log(
                log, root, labels,
                tokens=tokens, max_tokens=max_tokens, beside=beside, progress=progress,
            )  # fmt: skip
            if len(log.parts) > 1:
                done.parts = [part.name for part in log.parts]
            yield done
        except Problem as problem:
            yield problem
