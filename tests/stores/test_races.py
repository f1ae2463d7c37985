"""Threads and processes on one ledger at the same time."""

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal

import pytest
from tests import samples
from tests.samples import NO_CAPS
from tests.stores import racers

from hostler.ledger.errors import FenceLostError, LeaseClosedError, LimitExceededError, StaleWriteError
from hostler.ledger.port import Caps
from hostler.model.enums import IntentState, LeaseState

CAPS = Caps(usd_per_hour=Decimal(100), nodes=9, tenant_usd_per_hour=Decimal(60), tenant_nodes=5)


def admit(ledger, number, tenant):
    lease = ledger.admit(samples.lease(f"r{number}", tenant), []).lease
    return lease, ledger.take_fence(lease.lease_id, f"racer {number}")


def attempt(call, *expected):
    """Returns what the call returned, or the type of the expected error."""
    try:
        return call()
    except expected as error:
        return type(error)


def together(calls):
    """Runs all calls at once, each in its thread; returns their answers in order."""
    gate = threading.Barrier(len(calls))

    def run(call):
        gate.wait(timeout=60)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


class SpendingWatch(threading.Thread):
    """Looks at spending all the time; keeps what passed a cap."""

    def __init__(self, ledger, tenants):
        super().__init__()
        self.ledger, self.tenants = ledger, tenants
        self.over, self.looks, self.done = [], 0, threading.Event()

    def run(self):
        while not self.done.is_set():
            self.looks += 1
            whole = self.ledger.spending()
            if whole.usd_per_hour > CAPS.usd_per_hour or whole.nodes > CAPS.nodes:
                self.over.append(whole)
            for tenant in self.tenants:
                part = self.ledger.spending(tenant)
                if part.usd_per_hour > CAPS.tenant_usd_per_hour or part.nodes > CAPS.tenant_nodes:
                    self.over.append((tenant, part))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.join(timeout=60)


def test_caps_when_32_buy_at_once_for_two_tenants_then_none_is_passed(ledger):
    tenants = ("vision", "speech")
    racers_ = [admit(ledger, number, tenants[number % 2]) for number in range(32)]

    def buyer(lease, fence):
        return lambda: attempt(
            lambda: ledger.insert_intent(samples.intent(lease), fence, CAPS, [samples.event(lease.lease_id)]),
            LimitExceededError,
        )

    with SpendingWatch(ledger, tenants) as watch:
        answers = together([buyer(*racer) for racer in racers_])
    won = [answer for answer in answers if answer is not LimitExceededError]
    assert watch.looks > 0
    assert watch.over == []
    assert len(won) == 9
    assert sorted(ledger.spending(tenant).nodes for tenant in tenants) == [4, 5]
    assert ledger.spending().usd_per_hour == Decimal(90)
    assert len([event for event in ledger.list_events(None) if event.what == "lease.requested"]) == 9


def test_caps_when_nodes_are_refused_and_bought_again_then_none_is_passed(ledger):
    tenants = ("vision", "speech")
    racers_ = [admit(ledger, number, tenants[number % 2]) for number in range(12)]

    def churn(lease, fence):
        def run():
            for attempt_ in range(1, 6):
                asked = samples.intent(lease, attempt=attempt_)
                row = attempt(lambda asked=asked: ledger.insert_intent(asked, fence, CAPS, []), LimitExceededError)
                if row is LimitExceededError:
                    return
                ledger.write(lease.lease_id, [replace(row, state=IntentState.REFUSED)], [], fence)

        return run

    with SpendingWatch(ledger, tenants) as watch:
        together([churn(*racer) for racer in racers_])
    assert watch.over == []
    assert ledger.spending().nodes == 0


def test_slot_when_16_threads_fill_it_then_one_does(ledger, lease, fence):
    def fill():
        return attempt(lambda: ledger.insert_intent(samples.intent(lease), fence, NO_CAPS, []), StaleWriteError)

    answers = together([fill] * 16)
    assert answers.count(StaleWriteError) == 15
    assert ledger.spending().nodes == 1


def test_row_when_two_write_it_then_one_is_stale(ledger, lease):
    (row,) = ledger.write(lease.lease_id, [samples.job(lease)], [])
    for _ in range(10):
        old = row
        answers = together(
            [
                lambda step=step, old=old: attempt(
                    lambda: ledger.write(lease.lease_id, [replace(old, step=step)], []), StaleWriteError
                )
                for step in (1, 2)
            ]
        )
        assert answers.count(StaleWriteError) == 1
        ((row,),) = (answer for answer in answers if answer is not StaleWriteError)
        assert ledger.view(lease.lease_id).jobs == (row,)


def test_fence_when_taken_while_old_holders_write_then_none_of_theirs_lands_later(ledger, lease, fence):
    """Each old holder writes until it is refused; what it wrote must be older than the taking."""
    (row,) = ledger.write(lease.lease_id, [samples.job(lease)], [], fence)
    begun = threading.Event()

    def write_on():
        now, count = row, 0
        while True:
            written = attempt(
                lambda now=now: ledger.write(
                    lease.lease_id, [replace(now, step=now.step + 1)], [samples.event(lease.lease_id, "job.step")], fence
                ),
                FenceLostError,
            )
            if written is FenceLostError:
                return count
            (now,), count = written, count + 1
            if count >= 3:
                begun.set()

    def buy_on():
        count = 0
        while True:
            asked = samples.intent(lease, slot=count)
            bought = attempt(
                lambda asked=asked: ledger.insert_intent(
                    asked, fence, NO_CAPS, [samples.event(lease.lease_id, "intent.opened")]
                ),
                FenceLostError,
            )
            if bought is FenceLostError:
                return count
            count += 1

    def take():
        assert begun.wait(timeout=60)
        newest = ledger.take_fence(lease.lease_id, "release")
        return newest, ledger.view(lease.lease_id)

    steps, bought, (newest, seen) = together([write_on, buy_on, take])
    after = ledger.view(lease.lease_id)
    assert after == seen
    assert (after.jobs[0].step, len(after.intents)) == (steps, bought)
    whats = [event.what for event in ledger.list_events(lease.lease_id)]
    assert whats[-1] == "fence.taken"
    assert newest.token == fence.token + 1


def test_fences_when_16_are_taken_at_once_then_all_differ_and_one_writes(ledger, lease):
    fences = together([lambda n=n: ledger.take_fence(lease.lease_id, f"taker {n}") for n in range(16)])
    assert sorted(fence.token for fence in fences) == list(range(1, 17))
    answers = [attempt(lambda fence=fence: ledger.write(lease.lease_id, [], [], fence), FenceLostError) for fence in fences]
    assert answers.count(FenceLostError) == 15


def test_admit_when_the_same_lease_comes_8_times_at_once_then_it_is_one(ledger):
    asked = samples.lease()
    views = together([lambda: ledger.admit(asked, [samples.event(asked.lease_id)])] * 8)
    assert len({view.lease.row_version for view in views}) == 1
    assert len(ledger.list_leases()) == len(ledger.list_events(None)) == 1


@pytest.mark.parametrize("stopper", ["switch", "drain"])
def test_purchases_when_they_are_stopped_meanwhile_then_none_lands_later(ledger, lease, fence, stopper):
    begun = threading.Event()

    def buy_on():
        count = 0
        while True:
            asked = samples.intent(lease, slot=count)
            if (
                attempt(lambda asked=asked: ledger.insert_intent(asked, fence, NO_CAPS, []), LeaseClosedError)
                is LeaseClosedError
            ):
                return count
            count += 1
            if count >= 3:
                begun.set()

    def stop():
        assert begun.wait(timeout=60)
        if stopper == "switch":
            ledger.set_spending_stopped(stopped=True, events=[])
        else:
            now = ledger.view(lease.lease_id).lease
            ledger.write(lease.lease_id, [replace(now, state=LeaseState.DRAINING)], [], fence)
        return ledger.spending().nodes

    count, seen = together([buy_on, stop])
    assert count == seen == ledger.spending().nodes


def test_events_when_many_write_then_a_reader_who_follows_misses_none(ledger, lease):
    done = threading.Event()

    def write():
        for number in range(20):
            ledger.append_events([samples.event(lease.lease_id, f"step.{number}"), samples.event(None, "fleet.seen")])

    def follow():
        seen, last = [], 0
        while True:
            is_last = done.is_set()
            new = ledger.list_events(None, after=last)
            seen += new
            last = new[-1].sequence if new else last
            if is_last and not new:
                return seen

    with ThreadPoolExecutor(1) as reader:
        following = reader.submit(follow)
        together([write] * 6)
        done.set()
        seen = following.result(timeout=60)
    assert tuple(seen) == ledger.list_events(None)
    assert len(seen) == 240


@pytest.fixture
def processes():
    """Starts clean processes; the modules that they need are loaded once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.stores.racers"])
    return context


def run_processes(context, count, target, *args):
    """Runs the target in processes; returns what each put into the queue that it gets last."""
    answers = context.Queue()
    started = [context.Process(target=target, args=(*args, answers)) for _ in range(count)]
    for process in started:
        process.start()
    told = [answers.get(timeout=120) for _ in started]
    for process in started:
        process.join(timeout=60)
    answers.close()
    return told


def test_slot_when_8_processes_fill_it_then_exactly_one_does(postgres, ledger_url, processes):
    lease, fence = admit(postgres, 1, "vision")
    told = run_processes(processes, 8, racers.fill_slot, ledger_url, fence, processes.Barrier(8))
    assert sorted(told) == [*["StaleWriteError"] * 7, "stored"]
    assert len(postgres.view(lease.lease_id).intents) == 1
    assert postgres.spending().nodes == 1


def test_ledger_when_the_process_forks_then_parent_and_child_both_go_on(postgres, ledger_url, processes):
    _, fence = admit(postgres, 1, "vision")
    told = run_processes(processes, 1, racers.fork_and_fill, ledger_url, fence)
    assert told == [("stored", 0)]
    assert postgres.spending().nodes == 1
