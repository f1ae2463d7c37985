"""What every ledger promises: rows, fences, moves and events."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests import samples
from tests.samples import AT, NO_CAPS

from hostler.ledger.errors import FenceLostError, LeaseNotFoundError, StaleWriteError
from hostler.ledger.port import StockOut
from hostler.model.enums import IntentState, LeaseState, NodeState
from hostler.model.transitions import IllegalTransitionError


def whats(ledger, lease_id=None):
    return [event.what for event in ledger.list_events(lease_id)]


def test_clock_when_asked_then_it_is_aware_utc_and_near_ours(ledger):
    now = ledger.now()
    assert now.utcoffset() == timedelta(0)
    assert abs(now - datetime.now(tz=UTC)) < timedelta(minutes=1)


def test_admit_when_new_then_the_lease_is_stored_with_its_event(ledger):
    asked = samples.lease()
    view = ledger.admit(asked, [samples.event(asked.lease_id)])
    assert view.lease == replace(asked, row_version=1)
    assert view == ledger.view(asked.lease_id)
    assert whats(ledger, asked.lease_id) == ["lease.requested"]


def test_admit_when_it_exists_then_nothing_changes(ledger, lease, fence):
    again = ledger.admit(samples.lease(deployment="other"), [samples.event(lease.lease_id)])
    assert again.lease.deployment == "lab"
    assert again.lease.fence == fence.token
    assert whats(ledger) == ["fence.taken"]


def test_view_when_no_such_lease_then_not_found(ledger):
    with pytest.raises(LeaseNotFoundError, match="nowhere"):
        ledger.view("nowhere")


def test_list_views_when_states_are_named_then_what_view_returns_oldest_first(ledger, lease, fence):
    ledger.insert_intent(samples.intent(lease), fence, NO_CAPS, [])
    older = ledger.admit(samples.lease("r0", created_at=AT - timedelta(hours=1)), []).lease
    drained = ledger.admit(samples.lease("r2", created_at=AT + timedelta(hours=1)), []).lease
    ledger.write(drained.lease_id, [replace(drained, state=LeaseState.DRAINING)], [])
    assert ledger.list_views(LeaseState.REQUESTED) == (ledger.view(older.lease_id), ledger.view(lease.lease_id))
    assert [view.lease.run.run_id for view in ledger.list_views()] == ["r0", "r1", "r2"]
    assert [view.lease.run.run_id for view in ledger.list_views(newest=2)] == ["r1", "r2"]
    assert ledger.list_views(LeaseState.REQUESTED, newest=1)[0].intents == ledger.view(lease.lease_id).intents
    assert ledger.list_views(LeaseState.LOST) == ()


def test_view_when_all_kinds_are_written_then_each_is_there_in_order(ledger, lease, fence):
    for slot in (1, 0):
        ledger.insert_intent(samples.intent(lease, slot), fence, NO_CAPS, [])
    intents = ledger.view(lease.lease_id).intents
    assert [row.slot_index for row in intents] == [0, 1]
    owned = [replace(row, state=IntentState.OWNED, provider_id="i-1", resources=(("disk", "d-1"),)) for row in intents]
    nodes = [samples.node(row) for row in reversed(intents)]
    jobs = [samples.job(lease, 2, metrics=(("loss", float("inf")),)), samples.job(lease, 1)]
    backups = [samples.backup(lease, "b2", AT + timedelta(1)), samples.backup(lease, "b1")]
    ledger.write(lease.lease_id, [*owned, *nodes, *jobs, *backups, samples.receipt(lease)], [], fence)
    view = ledger.view(lease.lease_id)
    assert view.intents == tuple(replace(row, row_version=2) for row in owned)
    assert view.nodes == tuple(replace(row, row_version=1) for row in reversed(nodes))
    assert view.jobs == tuple(replace(row, row_version=1) for row in reversed(jobs))
    assert view.backups == tuple(replace(row, row_version=1) for row in reversed(backups))
    assert view.receipt == replace(samples.receipt(lease), row_version=1)


def test_view_when_two_leases_name_rows_alike_then_each_sees_its_own(ledger, lease):
    other = ledger.admit(samples.lease("r2"), []).lease
    ledger.write(lease.lease_id, [samples.backup(lease, "b", object_count=1)], [])
    ledger.write(other.lease_id, [samples.backup(other, "b", object_count=2)], [])
    assert ledger.view(lease.lease_id).backups[0].object_count == 1
    assert ledger.view(other.lease_id).backups[0].object_count == 2


def test_list_leases_when_states_are_asked_then_those_come_oldest_first(ledger):
    for number in range(4):
        ledger.admit(samples.lease(f"r{number}", created_at=AT - timedelta(hours=number)), [])
    oldest = ledger.list_leases()[0]
    ledger.write(oldest.lease_id, [replace(oldest, state=LeaseState.GRANTED)], [])
    assert [row.run.run_id for row in ledger.list_leases()] == ["r3", "r2", "r1", "r0"]
    assert [row.run.run_id for row in ledger.list_leases(LeaseState.REQUESTED)] == ["r2", "r1", "r0"]
    assert [row.run.run_id for row in ledger.list_leases(LeaseState.GRANTED, LeaseState.ACTIVE)] == ["r3"]
    assert ledger.list_leases(LeaseState.LOST) == ()


def test_take_fence_when_taken_twice_then_tokens_grow_and_events_tell(ledger, lease):
    first = ledger.take_fence(lease.lease_id, "one")
    second = ledger.take_fence(lease.lease_id, "two")
    assert (first.token, second.token) == (1, 2)
    assert ledger.view(lease.lease_id).lease.fence == 2
    assert [(event.what, event.who) for event in ledger.list_events(lease.lease_id)] == [
        ("fence.taken", "one"),
        ("fence.taken", "two"),
    ]


def test_take_fence_when_no_such_lease_then_not_found(ledger):
    with pytest.raises(LeaseNotFoundError):
        ledger.take_fence("nowhere", "one")


def test_write_when_a_newer_fence_was_taken_then_nothing_is_written(ledger, lease, fence):
    ledger.take_fence(lease.lease_id, "release")
    with pytest.raises(FenceLostError):
        ledger.write(lease.lease_id, [replace(lease, state=LeaseState.GRANTED)], [samples.event(lease.lease_id)], fence)
    assert ledger.view(lease.lease_id).lease.state is LeaseState.REQUESTED
    assert whats(ledger) == ["fence.taken", "fence.taken"]


def test_write_when_the_fence_is_of_another_lease_then_nothing_is_written(ledger, lease, fence):
    other = ledger.admit(samples.lease("r2"), []).lease
    ledger.take_fence(other.lease_id, "two")
    with pytest.raises(FenceLostError):
        ledger.write(other.lease_id, [samples.job(other)], [], fence)
    assert ledger.view(other.lease_id).jobs == ()


def test_write_when_no_such_lease_then_not_found(ledger):
    with pytest.raises(LeaseNotFoundError):
        ledger.write("nowhere", [], [samples.event("nowhere")])
    assert whats(ledger) == []


def test_write_when_a_record_is_of_another_lease_then_it_is_a_defect(ledger, lease):
    other = ledger.admit(samples.lease("r2"), []).lease
    with pytest.raises(ValueError, match="lease"):
        ledger.write(lease.lease_id, [samples.job(other)], [])


def test_write_when_the_row_changed_since_it_was_read_then_it_is_stale(ledger, lease):
    ledger.write(lease.lease_id, [replace(lease, state=LeaseState.GRANTED)], [])
    with pytest.raises(StaleWriteError):
        ledger.write(lease.lease_id, [replace(lease, state=LeaseState.DRAINING)], [])
    assert ledger.view(lease.lease_id).lease.state is LeaseState.GRANTED


def test_write_when_a_new_row_exists_already_then_it_is_stale(ledger, lease):
    ledger.write(lease.lease_id, [samples.job(lease)], [])
    with pytest.raises(StaleWriteError):
        ledger.write(lease.lease_id, [samples.job(lease, step=5)], [])
    assert ledger.view(lease.lease_id).jobs[0].step == 0


def test_write_when_one_record_of_many_is_stale_then_none_is_written(ledger, lease):
    ledger.write(lease.lease_id, [samples.job(lease)], [])
    with pytest.raises(StaleWriteError):
        ledger.write(lease.lease_id, [samples.backup(lease), samples.job(lease)], [samples.event(lease.lease_id)])
    assert ledger.view(lease.lease_id).backups == ()
    assert whats(ledger) == []


def test_write_when_rows_are_returned_then_they_can_be_written_on(ledger, lease):
    (first,) = ledger.write(lease.lease_id, [samples.job(lease)], [])
    (second,) = ledger.write(lease.lease_id, [replace(first, step=7)], [])
    assert (first.row_version, second.row_version) == (1, 2)
    assert ledger.view(lease.lease_id).jobs == (second,)


def test_write_when_lease_intent_and_node_change_together_then_all_of_them_do(ledger, lease, fence):
    opened = ledger.insert_intent(samples.intent(lease), fence, NO_CAPS, [])
    owned = replace(opened, state=IntentState.OWNED, provider_id="i-1")
    moved = replace(ledger.view(lease.lease_id).lease, wait_reason="boots")
    stored = ledger.write(lease.lease_id, [moved, owned, samples.node(opened)], [], fence)
    assert [row.row_version for row in stored] == [moved.row_version + 1, 2, 1]


def test_write_when_a_record_comes_twice_then_the_later_holds(ledger, lease):
    first = samples.job(lease)
    rows = ledger.write(lease.lease_id, [first, replace(first, step=3, row_version=1)], [])
    assert [row.row_version for row in rows] == [1, 2]
    assert ledger.view(lease.lease_id).jobs[0].step == 3


def test_write_when_the_lease_carries_another_fence_then_that_is_not_written(ledger, lease, fence):
    now = ledger.view(lease.lease_id).lease
    (written,) = ledger.write(lease.lease_id, [replace(now, state=LeaseState.GRANTED, fence=99)], [], fence)
    assert written == ledger.view(lease.lease_id).lease
    assert ledger.view(lease.lease_id).lease.fence == fence.token
    ledger.write(lease.lease_id, [], [samples.event(lease.lease_id)], fence)


def test_write_when_an_intent_or_lease_is_new_then_it_is_refused(ledger, lease, fence):
    with pytest.raises(StaleWriteError):
        ledger.write(lease.lease_id, [samples.intent(lease)], [], fence)


@pytest.mark.parametrize("state", [LeaseState.RELEASED, LeaseState.ACTIVE, LeaseState.UNATTENDED])
def test_write_when_a_lease_cannot_become_that_then_nothing_is_written(ledger, lease, state):
    with pytest.raises(IllegalTransitionError):
        ledger.write(lease.lease_id, [replace(lease, state=state)], [samples.event(lease.lease_id)])
    assert ledger.view(lease.lease_id).lease == lease
    assert whats(ledger) == []


def test_write_when_a_node_is_gone_then_it_never_comes_back(ledger, lease, fence):
    intent = ledger.insert_intent(samples.intent(lease), fence, NO_CAPS, [])
    (node,) = ledger.write(lease.lease_id, [samples.node(intent)], [])
    (node,) = ledger.write(lease.lease_id, [replace(node, state=NodeState.GONE)], [])
    with pytest.raises(IllegalTransitionError):
        ledger.write(lease.lease_id, [replace(node, state=NodeState.REGISTERED)], [])


def test_events_when_written_then_number_and_time_are_the_ledgers(ledger, lease):
    before = ledger.now()
    asked = samples.event(lease.lease_id, slot_index=1, evidence=(("a", "b"), ("c", "ä\u2028")))
    ledger.append_events([asked, samples.event(None, "fleet.seen")])
    first, second = ledger.list_events(None)
    assert first == replace(asked, at=first.at, sequence=first.sequence)
    assert before <= first.at <= second.at <= ledger.now()
    assert 0 < first.sequence < second.sequence


def test_events_when_asked_after_one_then_only_later_ones_come(ledger, lease):
    ledger.append_events([samples.event(lease.lease_id, f"step.{number}") for number in range(5)])
    ledger.append_events([samples.event(None, "fleet.seen")])
    everything = ledger.list_events(None)
    assert [event.what for event in everything] == [*(f"step.{number}" for number in range(5)), "fleet.seen"]
    assert ledger.list_events(None, after=everything[1].sequence) == everything[2:]
    assert ledger.list_events(lease.lease_id, after=everything[1].sequence, limit=2) == everything[2:4]
    assert ledger.list_events(None, after=everything[-1].sequence) == ()
    assert ledger.list_events("nowhere") == ()


def test_stock_outs_when_over_then_they_are_not_told(ledger):
    now = ledger.now()
    old = StockOut(subject="aws/eu-west-1", until=now - timedelta(seconds=1), count=1, reason="empty")
    new = StockOut(subject="aws/us-east-1//p5.48xlarge", until=now + timedelta(hours=1), count=1, reason="empty")
    for memory in (new, old):
        ledger.remember_stock_out(memory)
    assert ledger.stock_outs() == (new,)
    again = replace(new, count=2, until=now + timedelta(hours=2), reason="empty again")
    ledger.remember_stock_out(again)
    ledger.remember_stock_out(replace(new, subject="aws/ap-south-1"))
    assert ledger.stock_outs() == (replace(new, subject="aws/ap-south-1"), again)


def test_meta_when_set_twice_then_the_later_holds(ledger):
    assert ledger.get_meta("epoch") is None
    ledger.set_meta("epoch", "1")
    ledger.set_meta("epoch", "2")
    assert ledger.get_meta("epoch") == "2"
    assert ledger.get_meta("other") is None


def test_swap_meta_when_it_is_still_as_expected_then_it_is_kept_and_else_not(ledger):
    assert not ledger.swap_meta("key", "something", "new")
    assert ledger.swap_meta("key", None, "first")
    assert not ledger.swap_meta("key", None, "second")
    assert ledger.swap_meta("key", "first", "second")
    assert ledger.get_meta("key") == "second"


def test_swap_meta_when_many_swap_at_once_then_none_is_lost(ledger):
    def add(_number):
        while True:
            before = ledger.get_meta("count")
            if ledger.swap_meta("count", before, str(int(before or 0) + 1)):
                return

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(40)))
    assert ledger.get_meta("count") == "40"


def test_identity_when_asked_twice_then_it_is_the_same_and_not_empty(ledger):
    assert ledger.identity() == ledger.identity() != ""


def test_calls_when_the_burst_is_used_up_then_the_wait_is_told_and_nothing_is_taken(ledger):
    waits = [ledger.claim_call("aws/x", calls_per_s=0.01, burst=3) for _ in range(5)]
    assert waits[:3] == [0, 0, 0]
    assert all(90 < wait <= 100 for wait in waits[3:])
    assert ledger.claim_call("aws/y", calls_per_s=0.01, burst=3) == 0


def test_calls_when_many_claim_at_once_then_no_more_than_the_burst_go_through(ledger):
    with ThreadPoolExecutor(8) as pool:
        waits = list(pool.map(lambda _n: ledger.claim_call("aws", calls_per_s=0.001, burst=10), range(40)))
    assert sum(1 for wait in waits if wait == 0) == 10
