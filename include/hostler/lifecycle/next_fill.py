"""Decisions on the way up: plan, acquire, and what brings every slot to a node that is launched, set up and validated. Pure."""

from datetime import datetime, timedelta

from hostler.lifecycle.choice import Choice, choose
from hostler.lifecycle.fleet import LifecycleSettings
from hostler.lifecycle.next_slot import end, look_step, node_step
from hostler.lifecycle.slots import GIVEN_BACK, Slot, slots_of
from hostler.lifecycle.step import Effect, Fail, Kind, Memory, Step, Wait, when_due
from hostler.model.enums import FleetMode, IntentState, LeaseState, Phase
from hostler.model.lease import Intent, LeaseView
from hostler.model.offering import Offering

PLAN_AGE_S = 900
"""A plan that bought nothing in this time is made anew: prices and offerings change."""

CAP_PATIENCE = 3
"""A partial gang that a cap keeps waiting is given back after so many tries: two halves would else wait for each other.
Counted in the ledger: drivers come and go, and each would begin to count anew."""

STOPPED_TEXT = "purchases are stopped for the whole deployment; `hostler resume` lifts it"


def next_plan(view: LeaseView, now: datetime, memory: Memory) -> tuple[Step, ...]:
    """Returns the effect that makes the plan; empty when there is one."""
    if view.lease.plan is not None:
        return ()
    return (when_due(Effect(kind=Kind.PLAN, key="plan"), memory, now, "the clouds are asked what can be bought"),)


def next_acquire(view: LeaseView, settings: LifecycleSettings, memory: Memory) -> tuple[Step, ...]:
    """Returns the grant, or why nothing is bought; empty when the lease is granted."""
    if settings.mode is FleetMode.OBSERVE:
        offerings = view.lease.plan.offerings if view.lease.plan else ()
        best = f"; it would buy {offerings[0].key}" if offerings else ""
        return (Fail(reason=f"mode: observe in fleet.yaml: nothing is bought{best}. Set `mode: enforce` to buy."),)
    if memory.is_spending_stopped:
        return (Fail(reason=STOPPED_TEXT, is_permanent=False),)
    if view.lease.state is LeaseState.REQUESTED:
        return (Effect(kind=Kind.GRANT, key="grant"),)
    return ()


def prepare(view: LeaseView, now: datetime, settings: LifecycleSettings, memory: Memory, goal: Phase) -> tuple[Step, ...]:
    """Returns what brings every slot to ``goal`` (launch, setup or validate); empty when all are there."""
    look = look_step(view, now, settings, memory)
    if isinstance(look, Effect):
        return (look,)
    slots = slots_of(view)
    worn = _worn_out(slots, settings)
    if worn is not None:
        return (Effect(kind=Kind.FAIL, key="fail", reason=worn),)
    steps = _fill(view, slots, now, memory)
    handled = {step.slot_index for step in steps if isinstance(step, Effect)}
    for slot in slots:
        if slot.index not in handled:
            steps += node_step(slot, now, settings, memory, goal)
    return tuple(steps)


def _worn_out(slots: tuple[Slot, ...], settings: LifecycleSettings) -> str | None:
    """Returns which limit of replacements is used up, in words; None while none is."""
    for slot in slots:
        if slot.replaced_count > settings.slot_replacements:
            return f"slot {slot.index}: {settings.slot_replacements} replacements used up; the last node: {slot.last_fault}"
    total = sum(slot.replaced_count for slot in slots)
    if total > settings.run_replacements:
        last = next((slot.last_fault for slot in reversed(slots) if slot.last_fault), "")
        return f"the run: {settings.run_replacements} replacements used up; the last node: {last}"
    return None


def _fill(view: LeaseView, slots: tuple[Slot, ...], now: datetime, memory: Memory) -> list[Step]:
    """Returns what fills empty slots: all on one offering, or nothing held at all."""
    missing = tuple(slot.index for slot in slots if slot.is_empty)
    calls = [slot.intent for slot in slots if _is_ours_to_call(slot.intent, memory)]
    if not missing and not calls:
        return []
    if memory.is_spending_stopped and calls:
        return _withdraw(calls, STOPPED_TEXT)
    choice = choose(view, memory.stock_outs, now)
    is_stuck = view.lease.held_back >= CAP_PATIENCE and 0 < len(missing) < len(slots)
    if choice.offering is None or is_stuck:
        return _let_go(view, slots, choice, now, memory)
    wrong = [slot for slot in slots if _held_offering(slot) not in {None, choice.offering.key}]
    if wrong:
        return _give_back(wrong, f"the gang moves to {choice.offering.key}", now, memory)
    if missing:
        return _open(missing, choice.offering, now, memory)
    return [_call(intent, now, memory) for intent in calls if intent is not None]


def _open(missing: tuple[int, ...], offering: Offering, now: datetime, memory: Memory) -> list[Step]:
    if memory.is_spending_stopped:
        return [Fail(reason=STOPPED_TEXT, is_permanent=False)]
    effect = Effect(kind=Kind.OPEN_INTENTS, key="open", slots=missing, offering=offering)
    return [when_due(effect, memory, now, "room under the caps")]


def _call(intent: Intent, now: datetime, memory: Memory) -> Step:
    effect = Effect(kind=Kind.LAUNCH, key=f"launch:{intent.intent_id}", slot_index=intent.slot_index)
    return when_due(effect, memory, now, f"slot {intent.slot_index}: the cloud is busy")


def _withdraw(calls: list[Intent | None], reason: str) -> list[Step]:
    """Takes back intents that were written before the stop and are not called yet: the stop holds from now on."""
    return [
        Effect(kind=Kind.WITHDRAW, key=f"withdraw:{intent.slot_index}", slot_index=intent.slot_index, reason=reason)
        for intent in calls
        if intent is not None
    ]


def _let_go(view: LeaseView, slots: tuple[Slot, ...], choice: Choice, now: datetime, memory: Memory) -> list[Step]:
    """Nothing can be bought now: a partial gang is given back whole, then the lease waits."""
    held = [slot for slot in slots if not slot.is_empty]
    if held:
        return _give_back(held, choice.reason or "a cap leaves no room for the whole gang", now, memory)
    plan = view.lease.plan
    if plan is not None and now - plan.made_at > timedelta(seconds=PLAN_AGE_S):
        return [when_due(Effect(kind=Kind.PLAN, key="plan"), memory, now, choice.reason)]
    if choice.wait_s is None:
        return [Effect(kind=Kind.FAIL, key="fail", reason=choice.reason)]
    return [Wait(reason=choice.reason, retry_after_s=choice.wait_s)]


def _give_back(held: list[Slot], reason: str, now: datetime, memory: Memory) -> list[Step]:
    """Ends machines, withdraws intents that were never served, waits for the rest."""
    steps: list[Step] = []
    for slot in held:
        if slot.node is not None:
            steps.append(end(slot.node, f"{GIVEN_BACK}: {reason}", now, memory))
        elif _is_ours_to_call(slot.intent, memory):
            steps.append(Effect(kind=Kind.WITHDRAW, key=f"withdraw:{slot.index}", slot_index=slot.index, reason=reason))
        else:
            steps.append(Wait(reason=f"slot {slot.index}: a launch without an answer is being looked up", retry_after_s=5.0))
    return steps


def _held_offering(slot: Slot) -> str | None:
    if slot.node is not None:
        return slot.node.offering.key
    return None if slot.is_empty or slot.intent is None else slot.intent.offering.key


def _is_ours_to_call(intent: Intent | None, memory: Memory) -> bool:
    return intent is not None and intent.state is IntentState.OPEN and intent.fence == memory.fence
