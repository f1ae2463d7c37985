"""What every ledger promises about money: slots, caps and the stop."""

from dataclasses import replace
from decimal import Decimal

import pytest
from tests import samples
from tests.samples import NO_CAPS

from hostler.ledger.errors import (
    FenceLostError,
    LeaseClosedError,
    LeaseNotFoundError,
    LimitExceededError,
    StaleWriteError,
)
from hostler.ledger.port import Caps, Spending
from hostler.model.enums import IntentState, LeaseState, NodeState

NOTHING = Spending(usd_per_hour=Decimal(0), nodes=0)


def buy(ledger, lease, fence, *, slot=0, attempt=1, caps=NO_CAPS, **changes):
    asked = samples.intent(lease, slot, attempt, fence.token, **changes)
    return ledger.insert_intent(asked, fence, caps, [samples.event(lease.lease_id, "intent.opened")])


def bought(ledger):
    return [event.what for event in ledger.list_events(None)].count("intent.opened")


def refused(ledger, intent):
    return ledger.write(intent.lease_id, [replace(intent, state=IntentState.REFUSED)], [])[0]


def owned(ledger, intent):
    rows = [replace(intent, state=IntentState.OWNED), samples.node(intent)]
    return ledger.write(intent.lease_id, rows, [])


def test_intent_when_all_is_well_then_it_is_stored_and_counts(ledger, lease, fence):
    intent = buy(ledger, lease, fence)
    assert intent == replace(samples.intent(lease, fence=fence.token), row_version=1)
    assert ledger.view(lease.lease_id).intents == (intent,)
    assert ledger.spending() == ledger.spending("vision") == Spending(usd_per_hour=Decimal(10), nodes=1)
    assert ledger.spending("nobody") == NOTHING
    assert bought(ledger) == 1


def test_intent_when_no_such_lease_then_not_found(ledger, lease, fence):
    stranger = samples.lease("r9")
    with pytest.raises(LeaseNotFoundError):
        buy(ledger, stranger, replace(fence, lease_id=stranger.lease_id))


def test_intent_when_a_newer_fence_was_taken_then_nothing_is_bought(ledger, lease, fence):
    ledger.take_fence(lease.lease_id, "release")
    with pytest.raises(FenceLostError):
        buy(ledger, lease, fence)
    assert (ledger.spending(), bought(ledger)) == (NOTHING, 0)


@pytest.mark.parametrize(
    ("path", "is_open"),
    [
        ((), True),
        ((LeaseState.GRANTED,), True),
        ((LeaseState.GRANTED, LeaseState.ACTIVE), True),
        ((LeaseState.GRANTED, LeaseState.ACTIVE, LeaseState.UNATTENDED), True),
        ((LeaseState.DRAINING,), False),
        ((LeaseState.DRAINING, LeaseState.RELEASED), False),
        ((LeaseState.EXPIRED,), False),
        ((LeaseState.GRANTED, LeaseState.LOST), False),
    ],
)
def test_intent_when_the_lease_is_in_a_state_then_only_open_ones_buy(ledger, lease, fence, path, is_open):
    now = ledger.view(lease.lease_id).lease
    for state in path:
        (now,) = ledger.write(lease.lease_id, [replace(now, state=state)], [], fence)
    if is_open:
        buy(ledger, lease, fence)
        return
    with pytest.raises(LeaseClosedError, match=str(now.state)):
        buy(ledger, lease, fence)
    assert (ledger.spending(), bought(ledger)) == (NOTHING, 0)


def test_intent_when_spending_is_stopped_then_nothing_is_bought_until_resumed(ledger, lease, fence):
    assert not ledger.is_spending_stopped()
    ledger.set_spending_stopped(stopped=True, events=[samples.event(None, "spending.stopped")])
    assert ledger.is_spending_stopped()
    with pytest.raises(LeaseClosedError, match="resume"):
        buy(ledger, lease, fence)
    assert bought(ledger) == 0
    ledger.set_spending_stopped(stopped=False, events=[samples.event(None, "spending.resumed")])
    assert not ledger.is_spending_stopped()
    buy(ledger, lease, fence)
    assert [event.what for event in ledger.list_events(None)][-3:] == ["spending.stopped", "spending.resumed", "intent.opened"]


@pytest.mark.parametrize("attempt", [0, 2, 3])
def test_intent_when_it_is_not_the_first_of_its_slot_then_it_is_stale(ledger, lease, fence, attempt):
    with pytest.raises(StaleWriteError):
        buy(ledger, lease, fence, attempt=attempt)
    assert bought(ledger) == 0


@pytest.mark.parametrize("state", [IntentState.OPEN, IntentState.UNKNOWN, IntentState.OWNED])
def test_second_intent_when_the_first_may_be_a_machine_then_it_waits(ledger, lease, fence, state):
    first = buy(ledger, lease, fence)
    (first,) = ledger.write(lease.lease_id, [replace(first, state=state)], [])
    for attempt in (1, 2):
        with pytest.raises(StaleWriteError):
            buy(ledger, lease, fence, attempt=attempt)
    assert ledger.spending().nodes == 1
    buy(ledger, lease, fence, slot=1)


def test_second_intent_when_the_first_was_refused_then_it_is_stored(ledger, lease, fence):
    refused(ledger, buy(ledger, lease, fence))
    assert ledger.spending() == NOTHING
    buy(ledger, lease, fence, attempt=2, price="7.25")
    assert ledger.spending() == Spending(usd_per_hour=Decimal("7.25"), nodes=1)
    with pytest.raises(StaleWriteError):
        buy(ledger, lease, fence, attempt=1)


@pytest.mark.parametrize("state", [NodeState.REGISTERED, NodeState.UNREACHABLE, NodeState.STOPPED, NodeState.TERMINATING])
def test_second_intent_when_the_node_is_not_gone_then_it_waits_and_counts(ledger, lease, fence, state):
    _, node = owned(ledger, buy(ledger, lease, fence))
    ledger.write(lease.lease_id, [replace(node, state=state)], [])
    with pytest.raises(StaleWriteError):
        buy(ledger, lease, fence, attempt=2)
    assert ledger.spending().nodes == 1


def test_second_intent_when_the_node_is_gone_then_it_is_stored(ledger, lease, fence):
    _, node = owned(ledger, buy(ledger, lease, fence))
    ledger.write(lease.lease_id, [replace(node, state=NodeState.GONE)], [])
    assert ledger.spending() == NOTHING
    buy(ledger, lease, fence, attempt=2)
    assert ledger.spending().nodes == 1


def test_spending_when_a_refused_intent_turns_out_to_be_a_machine_then_it_counts_again(ledger, lease, fence):
    first = refused(ledger, buy(ledger, lease, fence))
    owned(ledger, first)
    assert ledger.spending().nodes == 1
    with pytest.raises(StaleWriteError):
        buy(ledger, lease, fence, attempt=2)


def test_spending_when_intent_and_node_end_in_one_write_then_it_stops_counting(ledger, lease, fence):
    intent = buy(ledger, lease, fence)
    rows = [replace(intent, state=IntentState.OWNED), samples.node(intent, NodeState.GONE)]
    ledger.write(lease.lease_id, rows, [])
    assert ledger.spending() == NOTHING


@pytest.mark.parametrize(
    ("limit", "caps"),
    [
        ("usd_per_hour", Caps(usd_per_hour=Decimal("29.99"))),
        ("nodes", Caps(nodes=2)),
        ("tenant_usd_per_hour", Caps(tenant_usd_per_hour=Decimal("19.99"))),
        ("tenant_nodes", Caps(tenant_nodes=1)),
    ],
)
def test_caps_when_one_would_be_passed_then_it_is_named_and_nothing_is_bought(ledger, lease, fence, limit, caps):
    other = ledger.admit(samples.lease("r2", tenant="speech"), []).lease
    other_fence = ledger.take_fence(other.lease_id, "two")
    buy(ledger, other, other_fence)
    buy(ledger, lease, fence)
    with pytest.raises(LimitExceededError, match=limit) as caught:
        buy(ledger, lease, fence, slot=1, caps=caps)
    assert caught.value.limit == limit
    assert ledger.spending().nodes == 2
    assert bought(ledger) == 2


@pytest.mark.parametrize(
    "caps", [Caps(usd_per_hour=Decimal(20), nodes=2), Caps(tenant_usd_per_hour=Decimal("20.00"), tenant_nodes=2), NO_CAPS]
)
def test_caps_when_they_are_just_met_then_it_is_bought(ledger, lease, fence, caps):
    buy(ledger, lease, fence)
    buy(ledger, lease, fence, slot=1, caps=caps)
    assert ledger.spending() == Spending(usd_per_hour=Decimal(20), nodes=2)


def test_caps_when_no_price_is_known_then_nothing_is_bought(ledger, lease, fence):
    with pytest.raises(LimitExceededError, match="price"):
        buy(ledger, lease, fence, price=None)
    assert ledger.spending() == NOTHING


def test_caps_when_prices_are_fractions_of_cents_then_sums_are_exact(ledger, lease, fence):
    for slot in range(10):
        buy(ledger, lease, fence, slot=slot, price="0.1000001")
    assert ledger.spending().usd_per_hour == Decimal("1.000001")
