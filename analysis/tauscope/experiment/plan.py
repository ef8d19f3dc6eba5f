"""The plan of an experiment: what is asked, of which arms, in a TOML file checked on reading."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tauscope.errors import Problem
from tauscope.schema import OFF

Name = Annotated[str, Meta(min_length=1, max_length=80, pattern=r"^[^\x00-\x1f\x7f]+\Z")]
Argument = Annotated[str, Meta(pattern=r"^[^\x00]*\Z")]
Text = Annotated[str, Meta(min_length=1, max_length=1_000_000, pattern=r"^[^\x00]*\Z")]
Variable = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\Z")]
Seconds = Annotated[float, Meta(ge=0, le=86_400)]
Times = Annotated[int, Meta(ge=0, le=100)]

# What may stand in braces in `command` and `arguments`.
PLACES = ("prompt_file", "max_tokens", "tokens_file")
_PLACE = re.compile(r"\{(\w+)\}")


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An unknown key is a typing error, never to be passed over."""


class Arm(Strict):
    """What one arm adds to the command line and to the environment."""

    arguments: list[Argument] = []
    environment: dict[Variable, Argument] = {}


class Prompt(Strict):
    """One prompt, asked once of every arm and repeat."""

    id: Name
    workload: Name
    text: Text


class Plan(Strict):
    """An experiment. Times in seconds, `budget_min` in minutes; `max_tokens` fills its place."""

    name: Name
    command: Annotated[list[Argument], Meta(min_length=1)]
    arms: Annotated[dict[Name, Arm], Meta(min_length=2)]
    directory: Argument = "."  # the engine runs there; relative to the plan's file
    prompts_from: Argument | None = None  # another TOML file with [[prompt]] tables
    prompt: list[Prompt] = []
    prompts_each: Annotated[int, Meta(ge=1)] | None = None  # only so many of each workload
    max_tokens: Annotated[int, Meta(ge=1, le=1_000_000)] = 256
    repeats: Annotated[int, Meta(ge=1, le=100)] = 1
    warmup: Times = 1  # runs of each arm at the start that nobody counts
    cooldown_s: Seconds = 0.0  # pause before each run
    timeout_s: Annotated[float, Meta(gt=0, le=604_800)] = 3600.0
    budget_min: Annotated[float, Meta(gt=0, le=1e6)] | None = None

    @property
    def digest(self) -> str:
        """Hash of all that can change what comes out; time limits and pauses are left out."""
        said = msgspec.to_builtins(self)
        for name in ("budget_min", "timeout_s", "prompts_from", "prompts_each", "directory"):
            del said[name]
        return hashlib.sha256(msgspec.json.encode(said, order="sorted")).hexdigest()

    @property
    def id(self) -> str:
        """Name of the experiment in a store, and of its folder: the plan's name and hash."""
        plain = re.sub(r"[^\w.-]+", "-", self.name, flags=re.ASCII).strip("-.")[:40]
        return f"{plain or 'experiment'}-{self.digest[:8]}"


def load_plan(path: Path) -> Plan:
    """The plan in `path`, its prompts all in place and `directory` absolute.

    Raises Problem in one line for a file that isn't there or isn't TOML, an unknown or
    missing key, a value of the wrong kind, an unknown {place}, prompts that share an id,
    or arms without `off`.
    """
    plan = _decoded(path, _read(path), Plan)
    if plan.prompts_from is not None:
        other = path.parent / plan.prompts_from
        more = _decoded(other, _read(other), _Prompts).prompt
        plan = msgspec.structs.replace(plan, prompt=[*plan.prompt, *more])
    _check(path, plan)
    plan = msgspec.structs.replace(plan, prompt=_first(plan.prompt, plan.prompts_each))
    folder = (path.parent / plan.directory).absolute()
    if not folder.is_dir():
        raise Problem(f"{path}: directory: {folder} is no folder; name the engine's")
    return msgspec.structs.replace(plan, directory=str(folder))


def _first(prompts: list[Prompt], most: int | None) -> list[Prompt]:
    """The first `most` prompts of each workload; all of them for None."""
    seen: Counter[str] = Counter()
    kept = []
    for prompt in prompts:
        seen[prompt.workload] += 1
        if most is None or seen[prompt.workload] <= most:
            kept.append(prompt)
    return kept


class _Prompts(Strict):
    prompt: list[Prompt]


def _read(path: Path) -> dict:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Problem(
            f"{path}: no such file; tauscope experiment --init {path} writes a plan to start from"
        ) from None
    except OSError as error:
        raise Problem(f"{path}: can't be read ({error.strerror}); name a plan") from None
    except UnicodeDecodeError:
        raise Problem(f"{path}: not UTF-8; save the plan as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise Problem(f"{path}: not TOML ({error}); mend the line") from None


def _decoded(path: Path, data: dict, kind: type) -> Plan:
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise Problem(f"{path}: {str(error).splitlines()[0]}; mend the plan") from None


def _check(path: Path, plan: Plan) -> None:
    if not plan.prompt:
        raise Problem(f"{path}: no prompts; add [[prompt]] tables, or prompts_from")
    twice = [name for name, count in Counter(p.id for p in plan.prompt).items() if count > 1]
    if twice:
        raise Problem(f"{path}: prompt {twice[0]!r} stands there twice; give each an id of its own")
    if OFF not in plan.arms:
        raise Problem(
            f"{path}: no arm `{OFF}`; add [arms.{OFF}]: it is what the others are held to"
        )
    for arm, more in plan.arms.items():
        words = [*plan.command, *more.arguments]
        used = [place for word in words for place in _PLACE.findall(word)]
        unknown = [place for place in used if place not in PLACES]
        if unknown:
            known = ", ".join(f"{{{place}}}" for place in PLACES)
            raise Problem(f"{path}: arm {arm}: {{{unknown[0]}}} means nothing; use {known}")
        if "prompt_file" not in used:
            raise Problem(f"{path}: arm {arm}: no {{prompt_file}} in the command; put it in")


def filled(words: list[str], values: dict[str, str]) -> list[str]:
    """`words` with each {place} replaced by its value."""
    return [_PLACE.sub(lambda match: values[match[1]], word) for word in words]


def starting_plan() -> str:
    """The commented plan that `--init` writes: ds4, three arms, five workloads."""
    folder = resources.files("tauscope") / "experiment"
    head, prompts = ((folder / name).read_text("utf-8") for name in ("ds4.toml", "prompts.toml"))
    return f"{head.rstrip()}\n\n{prompts}"
