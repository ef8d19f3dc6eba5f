"""Labels after the import: by hand for runs and requests, by rules for a server's requests."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import polars as pl

from tauscope import damage, schema, store
from tauscope.errors import Problem
from tauscope.ingest.importer import Labels, apply_labels, read_rows
from tauscope.record import marker


class Rule(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One rule: every condition that is given must hold; the first rule that fits labels."""

    workload: str
    flags: list[str] = []
    without: list[str] = []
    kind: str | None = None
    min_prompt_tokens: int | None = None
    max_prompt_tokens: int | None = None


class Rules(msgspec.Struct, forbid_unknown_fields=True):
    """A rules file: `[[rule]]` tables in order of trust."""

    rule: list[Rule]


def load_rules(path: Path) -> Rules:
    """Read a rules file. Raises Problem with the place of what is wrong in it."""
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Rules)
    except OSError as error:
        raise Problem(f"{path}: can't be read ({error.strerror}); name a rules file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Problem(f"{path}: not TOML ({error}); mend the file") from None
    except msgspec.ValidationError as error:
        raise Problem(
            f"{path}: {error}; a rule is [[rule]] with workload and any of flags, without, kind, "
            "min_prompt_tokens, max_prompt_tokens"
        ) from None


def rules_of(tables: Sequence[dict[str, object]]) -> Rules:
    """Rules from tables that `load_rules` has accepted before (msgspec.to_builtins of them)."""
    return msgspec.convert({"rule": list(tables)}, Rules)


def workload_of(rules: Rules) -> pl.Expr:
    """Workload of each request row by `rules`; `unlabelled` where none fits."""
    fits = pl.lit(schema.UNLABELLED)
    for rule in reversed(rules.rule):
        flags = pl.col("flags").fill_null([])
        conditions = [pl.lit(True)]
        conditions += [flags.list.contains(pl.lit(flag)) for flag in rule.flags]
        conditions += [~flags.list.contains(pl.lit(flag)) for flag in rule.without]
        if rule.kind is not None:
            conditions.append(pl.col("kind").eq_missing(pl.lit(rule.kind)))
        if rule.min_prompt_tokens is not None:
            conditions.append((pl.col("prompt_tokens") >= rule.min_prompt_tokens).fill_null(False))
        if rule.max_prompt_tokens is not None:
            conditions.append((pl.col("prompt_tokens") <= rule.max_prompt_tokens).fill_null(False))
        fits = pl.when(pl.all_horizontal(conditions)).then(pl.lit(rule.workload)).otherwise(fits)
    return fits.alias("workload")


def label(
    root: Path,
    targets: Sequence[str],
    labels: Labels,
    rules: Rules | None = None,
) -> pl.DataFrame:
    """Change labels in the store at `root`; returns run_id, request_id (null: whole run), changed.

    `targets`: run ids, log ids, or RUN:REQUEST; none means every run (with `rules`: every
    request of a server log). Raises Problem for a target that isn't there, or for an arm
    given to a single request: an arm belongs to a run.
    """
    if not labels.given() and rules is None:
        raise Problem("label: nothing to change; give --workload, --arm, --prompt-id or --rules")
    held = store.read([root]).runs
    wanted = [pair for text in targets for pair in _targets(text, held)]
    if not targets:
        wanted = [(run, None) for run in held["run_id"].to_list()]
    if labels.arm is not None and any(request is not None for _, request in wanted):
        raise Problem("label: an arm belongs to a whole run; name the run without a request")
    chosen = pl.DataFrame(
        wanted, schema={"run_id": pl.String, "request_id": pl.Int64}, orient="row"
    )
    done = []
    logs = held.join(chosen, on="run_id", how="semi")["log_id"].unique(maintain_order=True)
    for log_id in logs:
        if marker.path_of(root, log_id).exists():
            raise Problem(
                f"{log_id}: is still being recorded; label it when that is over (or give "
                "labels and rules to tauscope record)"
            )
        # What another command changes at the same time is read before it is written.
        with store.locked(root):
            try:
                runs, requests = read_rows(root, log_id)
            except (OSError, pl.exceptions.PolarsError) as error:
                raise Problem(
                    f"{log_id}: can't be read ({damage.first_line(error)}); import it again"
                ) from None
            new_runs, new_requests = _relabelled(runs, requests, chosen, labels, rules)
            if not (new_runs.equals(runs) and new_requests.equals(requests)):
                store.relabel(root, log_id, new_runs, new_requests)
        before = pl.concat([_rows(runs, None), _rows(requests, "request_id")])
        after = pl.concat([_rows(new_runs, None), _rows(new_requests, "request_id")])
        changed = before.select(pl.struct("workload", "arm", "prompt_id")).to_series()
        same = (
            after.select(pl.struct("workload", "arm", "prompt_id")).to_series().eq_missing(changed)
        )
        done.append(after.with_columns(changed=~same))
    kinds = {"run_id": pl.String, "request_id": pl.Int64, "workload": pl.String, "arm": pl.String,
             "prompt_id": pl.String, "changed": pl.Boolean}  # fmt: skip
    return pl.concat(done).select(*kinds) if done else pl.DataFrame(schema=kinds)


def _rows(frame: pl.DataFrame, request: str | None) -> pl.DataFrame:
    arm = pl.col("arm") if "arm" in frame.columns else pl.lit(None, dtype=pl.String).alias("arm")
    number = pl.col("request_id") if request else pl.lit(None, dtype=pl.Int64).alias("request_id")
    return frame.select("run_id", number, "workload", arm, "prompt_id")


def _relabelled(
    runs: pl.DataFrame,
    requests: pl.DataFrame,
    chosen: pl.DataFrame,
    labels: Labels,
    rules: Rules | None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    whole = pl.col("run_id").is_in(
        chosen.filter(pl.col("request_id").is_null())["run_id"].to_list()
    )
    picked = chosen.filter(pl.col("request_id").is_not_null())
    single = (
        pl.struct("run_id", "request_id").is_in(
            picked.select(pl.struct("run_id", "request_id")).to_series().to_list()
        )
        if picked.height
        else pl.lit(False)
    )
    new_runs = runs.with_columns(
        pl.when(whole).then(apply_labels(runs, labels)[name]).otherwise(pl.col(name)).alias(name)
        for name in labels.given()
    )
    own = {name: value for name, value in labels.given().items() if name != "arm"}
    new_requests = requests.with_columns(
        # A label of the whole run replaces what its requests said of themselves.
        pl.when(single)
        .then(pl.lit(value))
        .when(whole)
        .then(pl.lit(None, dtype=pl.String))
        .otherwise(pl.col(name))
        .alias(name)
        for name, value in own.items()
    )
    if rules is not None:
        served = pl.col("kind").is_in(["chat", "completion"])
        new_requests = new_requests.with_columns(
            pl.when(served & (whole | single))
            .then(workload_of(rules))
            .otherwise(pl.col("workload"))
            .alias("workload")
        )
    return new_runs, new_requests


def _targets(text: str, held: pl.DataFrame) -> list[tuple[str, int | None]]:
    """(run, request or None) of RUN, RUN:REQUEST or a log, which stands for all of its runs."""
    name, _, request = text.partition(":")
    found = held.filter((pl.col("run_id") == name) | (pl.col("log_id") == name))["run_id"]
    if found.is_empty():
        raise Problem(f"{name}: no such run; tauscope runs lists them")
    if not request:
        return [(run, None) for run in found]
    if len(found) > 1 or not request.isdigit():
        raise Problem(f"{text}: name one request of one run, as in {found[0]}:0")
    return [(found[0], int(request))]
