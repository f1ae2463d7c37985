"""Phase ``launch``, the buying half: intents before calls, one call per intent, each answer taken at its word."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from hostler.cloud.driver import LaunchOrder, Machine
from hostler.cloud.errors import (
    CloudAuthError,
    CloudConfigError,
    CloudError,
    CloudThrottledError,
    CloudUnavailableError,
    InsufficientCapacityError,
    QuotaExceededError,
    SpotUnavailableError,
)
from hostler.cloud.tags import tags_for
from hostler.ledger.errors import LeaseClosedError, LimitExceededError, StaleWriteError
from hostler.ledger.port import StockOut
from hostler.lifecycle.adopt import node_of, owned_by
from hostler.lifecycle.charge import Charge
from hostler.lifecycle.choice import decayed_until, spot_siblings
from hostler.lifecycle.events import shorten, words_of
from hostler.lifecycle.freshness import why_stale
from hostler.lifecycle.room import no_room
from hostler.lifecycle.step import Effect
from hostler.metrics.cost import SECONDS_PER_HOUR
from hostler.model.enums import IntentState
from hostler.model.lease import Intent, client_token_for, intent_id_for
from hostler.model.offering import Offering

START_SLACK_S = 30
"""An intent's call begins within this of its writing, or ``settle_after`` is written anew first."""

LEAST_SLACK_S = 15
"""What must be left of it just before the call: for a process that is held up between the look at the clock and the call."""

CAP_WAIT_S = 20
STALE_WAIT_S = 60.0
WITHDRAWN = "WithdrawnError"


async def open_intents(charge: Charge, effect: Effect) -> None:
    """Effect OPEN_INTENTS: writes one intent for each empty slot, all or none; no cloud is called yet."""
    assert effect.offering is not None  # noqa: S101 - the pure core names one
    offering, count = effect.offering, len(effect.slots)
    ledger, tenant = charge.fleet.ledger, charge.lease.request.tenant
    stale = await charge.fleet.offload(lambda: why_stale(charge.fleet))
    if stale is not None:
        charge.memory.hold("open", charge.now(), STALE_WAIT_S, stale)
        return
    full = await charge.fleet.offload(lambda: no_room(ledger, charge.memory.caps, tenant, offering, count))
    if full is not None:
        await _hold_back(charge, [], full)
        return
    inserted: list[Intent] = []
    for slot_index in effect.slots:
        intent = _new_intent(charge, slot_index, offering)
        try:
            inserted.append(await _insert(charge, intent))
        except LimitExceededError as error:
            await _take_back(charge, inserted, f"{error.limit}: {error}")
            return
        except LeaseClosedError as error:
            await _take_back(charge, inserted, str(error))
            return
        except StaleWriteError:
            return  # another look at the rows decides again
    charge.memory.clear("open")
    if charge.lease.held_back:
        await charge.write("room", [replace(charge.lease, held_back=0)], [])


async def _insert(charge: Charge, intent: Intent) -> Intent:
    why = f"slot {intent.slot_index} is bought: {intent.offering.key} at {intent.offering.price_usd_per_hour} USD per hour"
    event = charge.event("intent.opened", why, slot_index=intent.slot_index, intent_id=intent.intent_id)
    charge.fleet.crash("write:intent:before")
    stored = await charge.fleet.offload(
        lambda: charge.fleet.ledger.insert_intent(intent, charge.fence, charge.memory.caps, [event])
    )
    charge.fleet.crash("write:intent:after")
    return stored


async def _take_back(charge: Charge, inserted: list[Intent], reason: str) -> None:
    """No room for the whole gang: what was written for a part of it is refused again, uncalled, and the lease waits."""
    refused = [replace(intent, state=IntentState.REFUSED, error=WITHDRAWN, error_text=shorten(reason)) for intent in inserted]
    await _hold_back(charge, refused, reason)


async def _hold_back(charge: Charge, refused: Sequence[Intent], reason: str) -> None:
    """Waits for room, and counts in the ledger how often in a row it had to."""
    count = charge.lease.held_back + 1
    wait_s = CAP_WAIT_S + _spread(charge.lease.lease_id, count) * CAP_WAIT_S
    charge.memory.hold("open", charge.now(), wait_s, reason)
    events = [charge.event("lease.held_back", reason, slots=len(refused))] if refused else []
    await charge.write("withdraw", [*refused, replace(charge.lease, held_back=count)], events)


def _spread(lease_id: str, tries: int) -> float:
    """Returns a number in [0, 1) that differs by lease and try, so that waiters do not come back all at once."""
    return hashlib.sha256(f"{lease_id}/{tries}".encode()).digest()[0] / 256


def _new_intent(charge: Charge, slot_index: int, offering: Offering) -> Intent:
    earlier = [intent.attempt for intent in charge.view.intents if intent.slot_index == slot_index]
    attempt = max(earlier, default=0) + 1
    intent_id = intent_id_for(charge.lease.lease_id, slot_index, attempt)
    now = charge.now()
    return Intent(
        intent_id=intent_id,
        lease_id=charge.lease.lease_id,
        slot_index=slot_index,
        attempt=attempt,
        tenant=charge.lease.request.tenant,
        offering=offering,
        client_token=client_token_for(intent_id, offering.key),
        state=IntentState.OPEN,
        fence=charge.fence.token,
        written_at=now,
        settle_after=now + timedelta(seconds=charge.driver(offering.cloud).call_budget_s + START_SLACK_S),
    )


async def withdraw(charge: Charge, effect: Effect) -> None:
    """Effect WITHDRAW: refuses an intent of ours whose call was never made, or was answered "not made"."""
    intent = charge.intent(effect.slot_index)
    event = charge.event("intent.withdrawn", effect.reason, slot_index=intent.slot_index, intent_id=intent.intent_id)
    refused = replace(intent, state=IntentState.REFUSED, error=WITHDRAWN, error_text=shorten(effect.reason))
    await charge.write("withdraw", [refused], [event])


async def launch(charge: Charge, effect: Effect) -> None:
    """Effect LAUNCH: calls the cloud for one intent and writes down what came of it."""
    intent = await _freshen(charge, charge.intent(effect.slot_index))
    driver = charge.driver(intent.offering.cloud)
    order = order_of(charge, intent)
    try:
        machine = await charge.call("launch", lambda: driver.launch(order))
    except (CloudThrottledError, CloudUnavailableError) as error:
        _hold(charge, effect.key, error)
    except (InsufficientCapacityError, SpotUnavailableError) as error:
        await _remember(charge, intent, error)
        await _refuse(charge, intent, error)
    except QuotaExceededError as error:
        await _refuse(charge, intent, error)
    except (CloudAuthError, CloudConfigError) as error:
        charge.memory.fatal = f"launch: {words_of(error)}"
        await _refuse(charge, intent, error)
    except CloudError as error:
        # The answer is lost, or the token's machine is of another shape: only a look at the cloud can tell.
        await _doubt(charge, intent, error)
    else:
        charge.memory.clear(effect.key)
        await _own(charge, intent, machine)


async def _freshen(charge: Charge, intent: Intent) -> Intent:
    """Writes ``settle_after`` anew when the call would begin too late for it: no look may come before it.

    The database is asked for its clock just before: a machine that was suspended counts its own seconds wrong.
    """
    budget_s = charge.driver(intent.offering.cloud).call_budget_s
    now = await charge.read_clock()
    if now + timedelta(seconds=budget_s + LEAST_SLACK_S) <= intent.settle_after:
        return intent
    fresh = replace(intent, settle_after=now + timedelta(seconds=budget_s + START_SLACK_S))
    stored = (await charge.write("intent", [fresh], []))[0]
    assert isinstance(stored, Intent)  # noqa: S101 - the ledger returns what it was given
    return stored


def order_of(charge: Charge, intent: Intent) -> LaunchOrder:
    """Returns the order of an intent; the same intent always gives the same order."""
    lease = charge.lease
    return LaunchOrder(
        name=intent.intent_id,
        client_token=intent.client_token,
        offering=intent.offering,
        tags=tags_for(
            deployment=lease.deployment,
            lease_id=lease.lease_id,
            slot_index=intent.slot_index,
            intent_id=intent.intent_id,
            tenant=intent.tenant,
            extra=charge.fleet.settings.tags,
        ),
        user_data=charge.fleet.user_data(intent),
        expires_at=_expires_at(intent, lease.request.max_cost_usd, lease.request.deadline_at),
    )


def _expires_at(intent: Intent, max_cost_usd: Decimal, deadline_at: datetime | None) -> datetime:
    """Returns when the cloud itself should end the machine: the deadline, or when it alone would have cost the maximum."""
    price = intent.offering.price_usd_per_hour or Decimal(1)
    seconds = min(max_cost_usd / price * SECONDS_PER_HOUR, Decimal(30 * 86400))
    at = intent.written_at + timedelta(seconds=float(seconds))
    return at if deadline_at is None else min(at, deadline_at)


async def _own(charge: Charge, intent: Intent, machine: Machine) -> None:
    owned = owned_by(intent, machine)
    why = f"slot {intent.slot_index}: {machine.provider_id} in {machine.zone}"
    event = charge.event("node.launched", why, slot_index=intent.slot_index, provider_id=machine.provider_id)
    await charge.write("node-launched", [owned, node_of(charge, owned, machine)], [event])


async def _refuse(charge: Charge, intent: Intent, error: CloudError) -> None:
    words = words_of(error)
    if isinstance(error, QuotaExceededError) and error.quota:
        words = f"{words} (quota {error.quota}, in {error.unit or 'units of the cloud'})"
    refused = replace(intent, state=IntentState.REFUSED, error=type(error).__name__, error_text=words)
    event = charge.event("intent.refused", words, slot_index=intent.slot_index, offering=intent.offering.key)
    await charge.write("intent-refused", [refused], [event])


async def _doubt(charge: Charge, intent: Intent, error: CloudError) -> None:
    unknown = replace(intent, state=IntentState.UNKNOWN, error=type(error).__name__, error_text=words_of(error))
    why = f"slot {intent.slot_index}: the answer is lost, the cloud is looked up: {words_of(error)}"
    await charge.write("intent-unknown", [unknown], [charge.event("intent.unknown", why, slot_index=intent.slot_index)])


def _hold(charge: Charge, key: str, error: CloudError) -> None:
    """Not made, and the same call is worth making again: the launch is idempotent on its intent."""
    after_s = charge.memory.backoff_s(key, 2.0, 120.0)
    if isinstance(error, CloudThrottledError) and error.retry_after_s is not None:
        after_s = max(1.0, error.retry_after_s)
    charge.memory.hold(key, charge.now(), after_s, f"launch: {words_of(error)}")


async def _remember(charge: Charge, intent: Intent, error: CloudError) -> None:
    """Tells every lease of the deployment what is not worth trying for a while."""
    until, count = decayed_until(charge.view, intent.offering, charge.now())
    for subject in _subjects(charge, intent.offering, error):
        memory = StockOut(subject=subject, until=until, count=count, reason=words_of(error))
        await charge.call("remember", lambda memory=memory: charge.fleet.ledger.remember_stock_out(memory))  # type: ignore[misc]


def _subjects(charge: Charge, offering: Offering, error: CloudError) -> tuple[str, ...]:
    if isinstance(error, SpotUnavailableError):
        return tuple(other.key for other in spot_siblings(charge.view, offering))
    scope = error.scope if isinstance(error, InsufficientCapacityError) else "zone"
    region = f"{offering.cloud}/{offering.region}"
    return ({"zone": offering.key, "region": region, "type": f"{region}//{offering.instance_type}"}[scope],)
