"""Blast radius, call rates, revoked roles, wrong clocks, stale reconciles, ledgers that are away: nothing harmful follows."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from tests.sim.stage import (
    TO_END,
    TO_RUN,
    Failed,
    Phase,
    Reached,
    Waiting,
    admitted,
    calls,
    events,
    fair_world,
    let_go,
    run_simulated,
    through,
    until,
)
from tests.sim.world import DEPLOYMENT as OURS
from tests.sim.world import SimCrashError

from hostler.cloud.errors import CloudError
from hostler.cloud.tags import DEPLOYMENT
from hostler.drivers.fake.cloud import Fault
from hostler.ledger.errors import LedgerUnavailableError
from hostler.ledger.port import Caps
from hostler.lifecycle.converge import converge
from hostler.lifecycle.explain import why
from hostler.lifecycle.reap import confirm_epoch, reconcile
from hostler.lifecycle.watch import watch
from hostler.model.enums import CapacityType, JobState, LeaseState, NodeState
from hostler.stores.memory import MemoryLedger


def test_blast_radius_when_two_reconciles_run_at_once_then_they_share_it():
    async def play():
        world = fair_world(settings_changes={"destroyed_per_tick": 2}, lags=1.0)
        orphans = [world.cloud.put_machine({DEPLOYMENT: OURS}, age_s=9000) for _ in range(9)]
        confirm_epoch(world.fleet(), who="person")
        await reconcile(world.fleet(), who="reap", dry_run=False)
        await asyncio.sleep(700)
        for ended in (2, 4, 6):
            await asyncio.gather(*(reconcile(world.fleet(), who=f"reap-{n}", dry_run=False) for n in range(3)))
            assert sum(1 for machine in orphans if machine.order_at is not None) == ended
            await asyncio.sleep(300)

    run_simulated(play())


def test_role_when_revoked_in_mid_run_then_somebody_is_told_within_five_minutes_and_the_end_comes_when_it_is_back():
    async def play():
        world = fair_world()
        world.nodes.total_steps = 100_000
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:5])
        driver = asyncio.ensure_future(until(world, lease_id, Phase.RUN, for_s=1200))
        await asyncio.sleep(100)
        world.cloud.denied = {"list", "get", "terminate", "launch", "interruptions", "foreign"}
        await asyncio.sleep(300)
        assert events(world, lease_id, "cloud.denied")
        heard = [event for event in world.ledger._events[: world.told] if event.what == "cloud.denied"]
        assert heard, "written, and nobody was told"
        await driver
        assert {node.state for node in world.ledger.view(lease_id).nodes} == {NodeState.INITIALIZED}
        assert len(events(world, None, "cloud.denied")) < 5
        outcome = await until(world, lease_id, Phase.RELEASE, for_s=4 * 3600)
        assert isinstance(outcome, Waiting)
        assert all(node.state is not NodeState.GONE for node in world.ledger.view(lease_id).nodes)
        world.cloud.denied = set()
        assert (await let_go(world, lease_id)).lease.state is LeaseState.RELEASED
        assert world.cloud.live() == []

    run_simulated(play())


def test_terminate_when_it_fails_for_hours_then_it_stays_visible_with_its_cost():
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:4])
        world.cloud.refuses_end_until = world.now() + timedelta(hours=5)
        await until(world, lease_id, Phase.RELEASE, for_s=4 * 3600)
        view = world.ledger.view(lease_id)
        text = why(view, events(world, lease_id), world.now())
        assert view.lease.state is LeaseState.DRAINING
        assert "could not be ended" in text
        rate = view.nodes[0].offering.price_usd_per_hour
        assert f"{rate:.2f} USD per hour now" in text
        spent = Decimal(text.split("cost: ")[1].split(" USD so far")[0])
        assert spent > 4 * rate
        assert world.ledger.spending().nodes == 1
        assert events(world, lease_id, "node.end_refused")
        await asyncio.sleep(3600)
        assert (await let_go(world, lease_id)).lease.state is LeaseState.RELEASED

    run_simulated(play())


@pytest.mark.parametrize("off_s", [-3600.0, 3600.0])
def test_clock_of_the_cloud_when_an_hour_off_then_nothing_expires_and_the_cost_is_right(off_s):
    async def play():
        world = fair_world()
        world.cloud.clock_off_s = off_s
        lease_id = admitted(world, nodes=1, max_cost_usd=40.0)
        world.cloud.boot_s = 300.0
        confirm_epoch(world.fleet(), who="person")
        began = world.seconds()
        assert isinstance(await through(world, lease_id), Reached)
        took = world.seconds() - began
        view = world.ledger.view(lease_id)
        assert len(view.nodes) == 1
        machine = next(iter(world.cloud.machines.values()))
        lived_s = (machine.gone_at - machine.made_at).total_seconds()
        told_s = (view.nodes[0].ended_at - view.nodes[0].launched_at).total_seconds()
        assert abs(told_s - lived_s) < 60
        assert told_s <= took + 1

    run_simulated(play())


@pytest.mark.parametrize("off_s", [-3600.0, 3600.0])
def test_clock_of_the_cloud_when_an_hour_off_then_a_young_orphan_has_its_grace(off_s):
    async def play():
        world = fair_world()
        world.cloud.clock_off_s = off_s
        confirm_epoch(world.fleet(), who="person")
        orphan = world.cloud.put_machine({DEPLOYMENT: OURS})
        for _ in range(9):
            await reconcile(world.fleet(), who="reap", dry_run=False)
            await asyncio.sleep(60)
            assert orphan.order_at is None
        await asyncio.sleep(100)
        await reconcile(world.fleet(), who="reap", dry_run=False)
        assert orphan.order_at is not None

    run_simulated(play())


def test_purchase_when_no_reconcile_ran_for_long_then_it_waits_and_says_why_and_what_runs_goes_on():
    async def play():
        world = fair_world(settings_changes={"reconcile_stale_s": 900})
        first, second = admitted(world, 0, nodes=1), admitted(world, 1, nodes=1)
        await reconcile(world.fleet(), who="reap", dry_run=False)
        await through(world, first, TO_RUN[:5])
        await asyncio.sleep(1000)
        outcome = await through(world, second, TO_RUN[:3], for_s=300)
        assert isinstance(outcome, Waiting)
        assert "hostler_fleet_reconcile" in outcome.reason
        assert isinstance(await until(world, first, Phase.RUN), Reached)
        await reconcile(world.fleet(), who="reap", dry_run=False)
        assert isinstance(await through(world, second), Reached)

    run_simulated(play())


def test_calls_when_many_leases_wait_and_poll_then_the_account_stays_under_its_rate_and_all_end_right():
    async def play():
        world = fair_world(calls_per_s=0.5, calls_burst=20)
        ids = [admitted(world, number, nodes=1) for number in range(12)]
        outcomes = await asyncio.gather(*(through(world, lease_id, TO_END, for_s=20000) for lease_id in ids))
        assert all(isinstance(outcome, Reached) for outcome in outcomes), outcomes
        times = sorted((call.at - world.cloud.calls[0].at).total_seconds() for call in world.cloud.calls)
        for index, begin in enumerate(times):
            count = sum(1 for at in times[index:] if at <= begin + 60)
            assert count <= 60 * 0.5 + 20 + 1
        assert all(machine.order_at is not None for machine in world.cloud.machines.values())
        assert len(world.cloud.machines) == len(ids)

    run_simulated(play())


class OddError(CloudError):
    """A new error of the cloud that nobody has drawn yet."""


def test_launch_when_its_error_is_unknown_then_it_is_tried_again_a_bounded_number_of_times_and_then_elsewhere():
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        odd = Fault(error=OddError("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", code="NEW_SPELLING"))
        world.cloud.chaos = lambda call, _s: odd if call == "launch" and len(calls(world, "launch")) < 4 else None
        assert isinstance(await through(world, lease_id, TO_RUN[:3], for_s=20000), Reached)
        zones = [intent.offering.key for intent in world.ledger.view(lease_id).intents]
        assert zones[0] == zones[1] != zones[2]
        assert all(len(set(zones[n : n + 3])) > 1 for n in range(len(zones) - 2)), zones
        assert "NEW_SPELLING" in events(world, lease_id, "intent.unknown")[0].why

    run_simulated(play())


def test_early_preemption_when_a_young_node_is_taken_then_the_next_one_comes_at_once_from_another_zone():
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:5])
        driver = asyncio.ensure_future(until(world, lease_id, Phase.RUN))
        await asyncio.sleep(20)
        (machine,) = world.cloud.live()
        world.cloud.reclaim(machine.provider_id)
        taken = world.seconds()
        assert isinstance(await driver, Reached)
        first, second = world.ledger.view(lease_id).nodes
        assert second.offering.zone != first.offering.zone
        assert second.offering.capacity_type is CapacityType.SPOT
        assert (second.launched_at - world.now()).total_seconds() < 0
        assert (second.launched_at - first.ended_at).total_seconds() < 120
        assert world.ledger.stock_outs() == ()
        assert world.seconds() > taken

    run_simulated(play())


def test_replacements_when_the_limit_of_the_run_is_used_up_then_it_fails_with_words():
    async def play():
        world = fair_world(settings_changes={"run_replacements": 2, "slot_replacements": 5}, nodes_asked=3)
        lease_id = admitted(world, nodes=3)
        world.nodes.dead_boots = {f"i-{number:08x}" for number in range(1, 40)}
        outcome = await through(world, lease_id, TO_RUN, for_s=40000)
        assert isinstance(outcome, Failed)
        assert "the run: 2 replacements used up" in outcome.reason

    run_simulated(play())


def test_partial_gangs_when_two_leases_hold_half_each_and_drivers_change_all_the_time_then_one_gets_all():
    async def play():
        world = fair_world(caps=Caps(nodes=4), nodes_asked=3)
        first, second = admitted(world, 0, nodes=3), admitted(world, 1, nodes=3)
        await through(world, first, TO_RUN[:5])
        # Two nodes of the first are lost while the second waits: together they now ask for more than there is.
        await through(world, second, TO_RUN[:2])
        for node in world.ledger.view(first).nodes[:2]:
            world.cloud.reclaim(node.provider_id)
        done = set()
        for _ in range(400):
            for lease_id, phases in ((first, (Phase.RUN,)), (second, TO_RUN[2:])):
                for phase in phases:
                    # A driver that leaves at once: nothing it remembers is left for the next.
                    outcome = await converge(world.fleet(), lease_id, phase, holder="short", budget_s=0)
                    if not isinstance(outcome, Reached):
                        break
                else:
                    await let_go(world, lease_id)
                    done.add(lease_id)
            if done == {first, second}:
                return
            await asyncio.sleep(30)
        pytest.fail(f"only {len(done)} of 2 ended: {world.ledger.view(first).lease} {world.ledger.view(second).lease}")

    run_simulated(play())


class AwayLedger(MemoryLedger):
    """Refuses every change and every question while it is away, as a full, read-only or older database does."""

    is_away = False
    only = frozenset()

    def __getattribute__(self, name):
        away = object.__getattribute__(self, "__class__").is_away
        only = object.__getattribute__(self, "__class__").only
        if away and not name.startswith("_") and name in (only or {"view", "take_fence", "insert_intent", "write", "now"}):

            def refuse(*_a, **_k):
                raise LedgerUnavailableError("ledger at db:5432/hostler: its disk is full (SQLSTATE 53100)")

            return refuse
        return object.__getattribute__(self, name)


@pytest.fixture
def away():
    AwayLedger.is_away, AwayLedger.only = False, frozenset()
    yield AwayLedger
    AwayLedger.is_away, AwayLedger.only = False, frozenset()


@pytest.mark.parametrize("only", [(), ("insert_intent",), ("take_fence",), ("write", "insert_intent", "take_fence")])
def test_ledger_when_it_cannot_be_written_then_a_clear_error_and_nothing_is_bought(away, only):
    async def play():
        world = fair_world(ledger_type=away)
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:2])
        away.is_away, away.only = True, frozenset(only)
        with pytest.raises(LedgerUnavailableError, match="disk is full"):
            await converge(world.fleet(), lease_id, Phase.LAUNCH, holder="test", budget_s=60)
        assert [call for call in world.cloud.calls if call.name in {"launch", "terminate"}] == []
        away.is_away = False
        assert isinstance(await through(world, lease_id), Reached)

    run_simulated(play())


def test_ledger_when_it_goes_right_after_the_create_then_the_machine_is_found_by_its_tag(away):
    async def play():
        world = fair_world(ledger_type=away)
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:2])
        fleet = world.fleet()

        def go_away(label):
            away.is_away = away.is_away or label == "launch:after"

        fleet = replace(fleet, crash=go_away)
        with pytest.raises(LedgerUnavailableError):
            await converge(fleet, lease_id, Phase.LAUNCH, holder="test", budget_s=60)
        away.is_away = False
        assert len(world.cloud.live()) == 1
        assert isinstance(await through(world, lease_id), Reached)
        assert len(world.cloud.machines) == 1

    run_simulated(play())


def test_watch_when_the_ledger_is_away_for_an_hour_then_it_waits_and_then_says_its_reason(away):
    async def play():
        world = fair_world(ledger_type=away)
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:2])
        away.is_away = True
        task = asyncio.ensure_future(watch(world.fleet(), lease_id, Phase.LAUNCH, min_s=6, max_s=300))
        await asyncio.sleep(3600)
        assert not task.done()
        away.is_away = False
        await asyncio.sleep(60)
        assert "worth trying" in task.result()

    run_simulated(play())


def test_kill_when_it_comes_between_create_and_record_then_the_machine_is_found_by_its_tag_and_kept():
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:2])
        with pytest.raises(SimCrashError):
            await until(world, lease_id, Phase.LAUNCH, fleet=world.fleet(world.process(crash_at="launch:after")))
        assert world.ledger.view(lease_id).nodes == ()
        assert isinstance(await through(world, lease_id), Reached)
        assert len(world.cloud.machines) == 1
        assert events(world, lease_id, "intent.adopted")

    run_simulated(play())


def test_late_kill_when_the_next_attempt_runs_already_then_its_job_goes_on():
    async def play():
        world = fair_world()
        world.nodes.total_steps = 400
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:5])
        await until(world, lease_id, Phase.RUN, for_s=30)
        old = world.ledger.view(lease_id).jobs[-1]
        nodes = world.ledger.view(lease_id).nodes
        world.cloud.reclaim(nodes[0].provider_id)
        driver = asyncio.ensure_future(until(world, lease_id, Phase.RUN))
        await asyncio.sleep(150)
        new = world.ledger.view(lease_id).jobs[-1]
        assert (new.attempt, new.state) == (old.attempt + 1, JobState.RUNNING)
        # A process of the first try wakes up and stops "its" job, under either id: only with its own token.
        for job_id in (old.job_id, new.job_id):
            await world.nodes.stop_job(nodes[1], job_id, old.attempt_token, checkpoint=True)
        assert isinstance(await driver, Reached)
        assert world.ledger.view(lease_id).jobs[-1].job_id == new.job_id
        assert world.nodes.stray_stops == 1

    run_simulated(play())
