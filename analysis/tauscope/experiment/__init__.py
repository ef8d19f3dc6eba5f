"""Experiments: prompts × arms, paired and interleaved, each cell run exactly once."""

from __future__ import annotations

from tauscope.experiment.plan import Plan, load_plan, starting_plan
from tauscope.experiment.run import Result, Watcher, run

__all__ = ["Plan", "Result", "Watcher", "load_plan", "run", "starting_plan"]
