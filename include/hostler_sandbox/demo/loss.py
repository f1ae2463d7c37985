"""The cloud takes one node of the demo: a random one, at a random moment of its training."""

import random
from dataclasses import dataclass
from typing import Final

from hostler.model.enums import JobState
from hostler.model.lease import LeaseView
from hostler_sandbox.demo.stage import Stage

_EARLIEST_RATIO: Final = 0.15
_LATEST_RATIO: Final = 0.75
"""Part of the training within which the node is taken: late enough that there is work to lose, early enough that some is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What is to be taken: the node of ``rank``, as soon as the job is seen at ``step`` or later."""

    step: int
    rank: int


def choose_loss(rng: random.Random, *, steps: int, nodes: int) -> Loss:
    """Returns the moment and the node; the same seed chooses the same.

    Args:
        steps: of the whole training. nodes: of the gang.
    """
    step = rng.randrange(int(steps * _EARLIEST_RATIO), int(steps * _LATEST_RATIO))
    return Loss(step=step, rank=rng.randrange(nodes))


class NodeTaker:
    """Takes the node once. ``taken``: the machine's id; empty while it has not happened."""

    def __init__(self, stage: Stage, loss: Loss) -> None:
        self._stage = stage
        self._loss = loss
        self.taken = ""

    def look(self, view: LeaseView) -> str:
        """Takes the node if its moment has come; returns what was done in words, else an empty text."""
        job = view.jobs[-1] if view.jobs else None
        if self.taken or job is None or job.state is not JobState.RUNNING or job.step < self._loss.step:
            return ""
        name = job.node_names[self._loss.rank]
        node = next(node for node in view.nodes if node.node_name == name)
        self._stage.control("reclaim", machine_id=node.provider_id)
        self.taken = node.provider_id
        return f"the cloud takes node {node.slot_index} ({node.provider_id}) without notice, at step {job.step}"


def redone_steps(view: LeaseView) -> int:
    """Returns how many steps were trained twice: what each attempt had reached, less where the next one began."""
    pairs = zip(view.jobs, view.jobs[1:], strict=False)
    return sum(max(0, before.step - after.resumed_from_step) for before, after in pairs)
