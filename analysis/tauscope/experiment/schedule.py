"""The order of an experiment's cells: paired and interleaved, so that drift hits all arms alike."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from tauscope.experiment.plan import Plan, Prompt


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of the engine: a prompt, an arm, a repeat.

    `order` is its place in the whole experiment, `block` that of its prompt and repeat.
    """

    order: int
    block: int
    prompt: Prompt
    arm: str
    repeat: int

    @property
    def key(self) -> str:
        return f"{self.prompt.workload}/{self.prompt.id}/{self.arm}/{self.repeat}"

    def log_id(self, experiment: str) -> str:
        """The cell's log in a store. Named by the cell, so that it can't be there twice."""
        return hashlib.sha256(f"{experiment}\0{self.key}".encode()).hexdigest()[:12]


def cells(plan: Plan) -> list[Cell]:
    """All cells of `plan` in the order to run them.

    A block is one prompt under every arm, one after the other. The workloads take turns,
    so that each spreads over the whole time. The arms' order is turned round from block to
    block of a workload (A B, B A, A B, …): a machine that slows steadily then costs all
    arms the same.
    """
    by_workload: dict[str, list[Prompt]] = {}
    for prompt in plan.prompt:
        by_workload.setdefault(prompt.workload, []).append(prompt)
    arms = list(plan.arms)
    made: list[Cell] = []
    turns = dict.fromkeys(by_workload, 0)
    block = 0
    for repeat in range(plan.repeats):
        for place in range(max(len(prompts) for prompts in by_workload.values())):
            for number, (workload, prompts) in enumerate(by_workload.items()):
                if place >= len(prompts):
                    continue
                back = (turns[workload] + number) % 2
                turns[workload] += 1
                for arm in reversed(arms) if back else arms:
                    made.append(Cell(len(made), block, prompts[place], arm, repeat))
                block += 1
    return made
