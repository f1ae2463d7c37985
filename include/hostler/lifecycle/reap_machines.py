"""From the cloud's side: whose is this machine, and does anybody answer for it?"""

from dataclasses import dataclass
from datetime import datetime

from hostler.cloud.driver import Machine
from hostler.cloud.tags import INTENT, LEASE
from hostler.ledger.errors import LeaseNotFoundError
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.reap_report import Finding
from hostler.model.enums import LeaseState
from hostler.model.lease import Intent, LeaseView


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A machine that carries our tag. ``is_ours``: no other owner claims it. ``is_live``: it is not terminated."""

    machine: Machine
    is_ours: bool
    is_live: bool


async def judge_machine(fleet: Fleet, sighting: Sighting, now: datetime) -> Finding | None:
    """Returns what is to be said of a live machine; None when its lease is open and answers for it."""
    del now
    machine = sighting.machine
    if not sighting.is_ours:
        return _finding(machine, "foreign", "none", "another owner claims it: never touched")
    view = await _view_of(fleet, machine)
    intent = _intent_of(view, machine)
    if view is None or intent is None:
        known = "its lease is not in the ledger" if view is None else "its lease knows no such intent"
        return _finding(machine, "orphan", "end", f"carries our tag, and {known}")
    if intent.provider_id not in {None, machine.provider_id}:
        return _finding(machine, "late", "end", f"intent {intent.intent_id} has another machine, {intent.provider_id}")
    if view.lease.state is LeaseState.RELEASED:
        return _finding(machine, "late", "end", f"came up after lease {view.lease.lease_id} was released")
    return None


async def _view_of(fleet: Fleet, machine: Machine) -> LeaseView | None:
    lease_id = machine.tags.get(LEASE)
    if not lease_id:
        return None
    try:
        return await fleet.offload(lambda: fleet.ledger.view(lease_id))
    except LeaseNotFoundError:
        return None


def _intent_of(view: LeaseView | None, machine: Machine) -> Intent | None:
    intents = () if view is None else view.intents
    return next((intent for intent in intents if intent.intent_id == machine.tags.get(INTENT)), None)


def _finding(machine: Machine, kind: str, action: str, reason: str) -> Finding:
    return Finding(subject=machine.provider_id, kind=kind, action=action, reason=reason)
