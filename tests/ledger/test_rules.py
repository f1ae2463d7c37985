from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import samples

from hostler.ledger import rules
from hostler.ledger.errors import LimitExceededError, StaleWriteError
from hostler.ledger.port import Caps, Spending
from hostler.model.enums import IntentState, LeaseState, NodeState

INTENT = samples.intent(samples.lease())
NOTHING = Spending(usd_per_hour=Decimal(0), nodes=0)
MONEY = st.decimals(0, 1000, places=4)


@pytest.mark.parametrize("state", IntentState)
@pytest.mark.parametrize("nodes", [(), (NodeState.LAUNCHED,), (NodeState.GONE,), (NodeState.TERMINATING,)])
def test_intent_when_its_state_is_known_then_it_counts_unless_refused_or_gone(state, nodes):
    over = state is IntentState.REFUSED or (state is IntentState.OWNED and nodes == (NodeState.GONE,))
    assert rules.is_live(state, nodes) is not over


def test_lease_when_it_is_over_or_ending_then_it_is_closed():
    assert set(LeaseState) - rules.CLOSED_STATES == {
        LeaseState.REQUESTED,
        LeaseState.GRANTED,
        LeaseState.ACTIVE,
        LeaseState.UNATTENDED,
    }


@given(cap=MONEY, used=MONEY, price=MONEY.filter(bool))
def test_caps_when_a_purchase_is_weighed_then_the_sum_decides(cap, used, price):
    asked = samples.intent(samples.lease(), price=str(price))
    everyone = Spending(usd_per_hour=used, nodes=3)
    if used + price <= cap:
        rules.check_caps(asked, Caps(usd_per_hour=cap), everyone, NOTHING)
        return
    with pytest.raises(LimitExceededError) as caught:
        rules.check_caps(asked, Caps(usd_per_hour=cap), everyone, NOTHING)
    assert str(caught.value) == f"usd_per_hour: cap {cap}, in use {used}, asked {price}"


@given(st.lists(st.tuples(st.integers(1, 6), st.booleans()), max_size=6, unique_by=lambda row: row[0]), st.integers(0, 8))
def test_slot_when_it_has_a_history_then_only_the_next_intent_after_dead_ones_fits(history, attempt):
    earlier = [rules.Attempt(attempt=number, state=IntentState.OPEN, is_live=is_live) for number, is_live in history]
    asked = samples.intent(samples.lease(), attempt=attempt)
    fits = attempt == max([number for number, _ in history], default=0) + 1 and not any(is_live for _, is_live in history)
    if fits:
        rules.check_slot_is_free(asked, earlier)
        return
    with pytest.raises(StaleWriteError):
        rules.check_slot_is_free(asked, earlier)


def test_stage_when_rows_are_new_or_known_then_versions_grow_by_one():
    lease = samples.lease(row_version=4, fence=7)
    stored = rules.stage(lease.lease_id, [samples.job(lease), lease], {("lease", lease.lease_id): lease})
    assert [row.row_version for row in stored] == [1, 5]
