"""A slot as the rows tell it: its newest intent, that intent's node, and older machines that are still there. Pure."""

from collections import defaultdict
from dataclasses import dataclass

from hostler.model.enums import IntentState, NodeState, Phase
from hostler.model.lease import Intent, Lease, LeaseView, Node

GIVEN_BACK = "given back"
"""Ending reasons that begin so are moves of a gang, not faults of a node: they use up no replacement."""

ENDING = frozenset({NodeState.TERMINATING, NodeState.GONE})
PHASES = tuple(Phase)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One place of the gang.

    Attributes:
        intent: newest attempt; None before the first. node: its machine; None while the cloud has named none, and once gone.
        leftovers: machines of this slot that are not ``node`` and not gone.
        replaced_count: nodes that ended here for a fault or were taken.
    """

    index: int
    intent: Intent | None
    node: Node | None
    leftovers: tuple[Node, ...]
    replaced_count: int
    last_fault: str

    @property
    def is_empty(self) -> bool:
        """True when a new intent may be written: nothing of this slot lives or may live."""
        if self.leftovers or self.node is not None:
            return False
        return self.intent is None or self.intent.state in {IntentState.REFUSED, IntentState.OWNED}


def slots_of(view: LeaseView) -> tuple[Slot, ...]:
    """Returns all slots of the request, by index."""
    intents: dict[int, list[Intent]] = defaultdict(list)
    nodes: dict[int, list[Node]] = defaultdict(list)
    for intent in view.intents:
        intents[intent.slot_index].append(intent)
    for node in view.nodes:
        nodes[node.slot_index].append(node)
    return tuple(_slot(index, intents[index], nodes[index]) for index in range(view.lease.request.node_count))


def _slot(index: int, intents: list[Intent], nodes: list[Node]) -> Slot:
    newest = intents[-1] if intents else None
    live = [node for node in nodes if node.state is not NodeState.GONE]
    current = next((node for node in live if newest and node.node_name == newest.intent_id), None)
    faults = [node for node in nodes if node.state in ENDING and not (node.ending_reason or "").startswith(GIVEN_BACK)]
    return Slot(
        index=index,
        intent=newest,
        node=current,
        leftovers=tuple(node for node in live if node is not current),
        replaced_count=len(faults),
        last_fault=(faults[-1].ending_reason or "unknown") if faults else "",
    )


def live_nodes(view: LeaseView) -> tuple[Node, ...]:
    """Returns nodes that the cloud has not called gone."""
    return tuple(node for node in view.nodes if node.state is not NodeState.GONE)


def unresolved(view: LeaseView, own_fence: int | None = None) -> tuple[Intent, ...]:
    """Returns intents of which nobody knows whether a machine came of them.

    Args:
        own_fence: ``open`` intents under this fence are left out: their driver is the one who asks.
    """
    return tuple(
        intent
        for intent in view.intents
        if intent.state is IntentState.UNKNOWN or (intent.state is IntentState.OPEN and intent.fence != own_fence)
    )


def has_reached(lease: Lease, phase: Phase) -> bool:
    """True when the lease has done this phase or a later one."""
    return lease.reached is not None and PHASES.index(Phase(lease.reached)) >= PHASES.index(phase)
