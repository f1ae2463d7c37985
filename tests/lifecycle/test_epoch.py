"""Empty, restored or cloned ledgers, and a second controller: they only report until a person confirms one of them."""

import asyncio
import copy
import json

import pytest
from tests.sim.stage import TO_RUN, admitted, events, fair_world, run_simulated, through
from tests.sim.world import DEPLOYMENT as OURS

from hostler.cloud.errors import CloudUnavailableError
from hostler.cloud.tags import DEPLOYMENT
from hostler.drivers.fake.cloud import Fault
from hostler.lifecycle.epoch import epoch_key, standing
from hostler.lifecycle.reap import confirm_epoch, reconcile
from hostler.lifecycle.release import begin_release
from hostler.model.enums import LeaseState
from hostler.stores.memory import MemoryLedger

KEY = epoch_key(OURS)


async def reap(world, **options):
    return await reconcile(world.fleet(), who="reap", **{"dry_run": False, **options})


def clone(world, name):
    """The ledger as a copy of its rows would be, in another place when the name differs."""
    copied = MemoryLedger(world.now, name)
    for field, value in vars(world.ledger).items():
        if field not in {"_lock", "clock", "name"}:
            setattr(copied, field, copy.deepcopy(value))
    return copied


def test_epoch_when_the_first_reconcile_sees_nothing_unknown_then_the_ledger_confirms_itself_and_leaves_its_mark():
    async def play():
        world = fair_world()
        assert (await reap(world)).report_only is None
        first = json.loads(world.store.objects[KEY])
        assert first["who"] == "reap"
        await asyncio.sleep(300)
        assert (await reap(world)).report_only is None
        assert json.loads(world.store.objects[KEY])["mark"] != first["mark"]

    run_simulated(play())


@pytest.mark.parametrize("name", ["memory", "elsewhere"])
def test_epoch_when_the_ledger_is_a_clone_then_it_only_reports_and_ends_no_lease_of_the_first(name):
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:3])
        await reap(world)
        original, cloned = world.ledger, clone(world, name)
        if name == "memory":  # a copy of the very files: told apart once the first has acted again
            await asyncio.sleep(300)
            await reap(world)
        world.ledger = cloned
        begin_release(world.fleet(), lease_id, who="x", reason="the clone's own idea")
        await asyncio.sleep(5000)
        report = await reap(world)
        assert "a person must confirm" in report.report_only
        assert world.cloud.live()
        world.ledger = original
        assert (await reap(world)).report_only is None

    run_simulated(play())


def test_epoch_when_the_ledger_was_restored_from_an_older_backup_then_a_machine_it_forgot_is_left_alone_until_confirmed():
    async def play():
        world = fair_world()
        await reap(world)
        older = clone(world, "memory")
        await asyncio.sleep(300)
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:3])
        await reap(world)
        world.ledger = older
        world.checkers = []  # what lives and is not in this ledger is the point here
        for _ in range(4):
            assert "acted last" in (await reap(world)).report_only
            await asyncio.sleep(700)
        assert world.cloud.live()
        confirm_epoch(world.fleet(), who="person")
        for _ in range(3):
            assert (await reap(world)).report_only is None
            await asyncio.sleep(700)
        assert world.cloud.live() == []

    run_simulated(play())


def test_epoch_when_a_second_controller_begins_with_an_empty_ledger_then_it_only_reports_and_the_first_goes_on():
    async def play():
        world = fair_world()
        await reap(world)
        first, second = world.ledger, MemoryLedger(world.now, "second")
        world.ledger = second
        assert "second controller" in (await reap(world)).report_only
        world.ledger = first
        assert (await reap(world)).report_only is None
        confirm_epoch(world.fleet(), who="person")
        world.ledger = second
        confirm_epoch(world.fleet(), who="person")
        assert (await reap(world)).report_only is None
        world.ledger = first
        assert "acted last" in (await reap(world)).report_only

    run_simulated(play())


def test_epoch_when_a_region_cannot_be_listed_then_an_unconfirmed_ledger_is_not_free_to_act():
    async def play():
        world = fair_world()
        world.cloud.order_fault("list", Fault(error=CloudUnavailableError("503")))
        report = await reap(world)
        assert "not everything could be listed" in report.report_only
        assert KEY not in world.store.objects
        assert (await reap(world)).report_only is None

    run_simulated(play())


def test_epoch_when_the_backup_store_is_away_then_a_known_ledger_goes_on_and_an_unknown_one_does_not():
    async def play():
        world = fair_world()
        world.store.is_away = True
        assert "backup store cannot be asked" in (await reap(world)).report_only
        world.store.is_away = False
        await reap(world)
        world.store.is_away = True
        report = await reap(world)
        assert report.report_only is None
        assert any("epoch object" in error for error in report.errors)
        world.ledger = clone(world, "elsewhere")
        assert "copy in another place" in (await reap(world)).report_only

    run_simulated(play())


@pytest.mark.parametrize("garbage", [b"", b"[]", b"{", b'{"mark": 3}', b"[" * 100_000, b"\xff\xfe"])
def test_epoch_when_the_object_is_garbage_then_nothing_is_free_to_act_and_a_person_mends_it(garbage):
    async def play():
        world = fair_world()
        await reap(world)
        world.store.objects[KEY] = garbage
        assert "a person must confirm" in (await reap(world)).report_only
        confirm_epoch(world.fleet(), who="person")
        assert (await reap(world)).report_only is None

    run_simulated(play())


def test_epoch_when_two_reconciles_of_one_ledger_run_at_once_then_both_are_free_to_act():
    async def play():
        world = fair_world(lags=2.0)
        for _ in range(20):
            reports = await asyncio.gather(reap(world), reap(world))
            assert [report.report_only for report in reports] == [None, None]
            assert standing(world.fleet()).is_known

    run_simulated(play())


def test_epoch_when_only_reported_for_an_hour_then_nothing_is_bought_either():
    async def play():
        world = fair_world()
        await reap(world)
        world.ledger = clone(world, "elsewhere")
        await asyncio.sleep(3700)
        await reap(world)
        lease_id = admitted(world, nodes=1)
        outcome = await through(world, lease_id, TO_RUN[:3], for_s=600)
        assert "no reconcile was free to act" in outcome.reason
        assert world.cloud.machines == {}
        assert world.ledger.view(lease_id).lease.state is LeaseState.GRANTED
        confirm_epoch(world.fleet(), who="person")
        await reap(world)
        await through(world, lease_id, TO_RUN[:3])
        assert len(world.cloud.live()) == 1
        assert not events(world, None, "reap.ending")

    run_simulated(play())


def test_reap_when_a_machine_of_another_deployment_looks_like_ours_then_it_is_never_touched():
    async def play():
        world = fair_world()
        confirm_epoch(world.fleet(), who="person")
        marks = (
            {DEPLOYMENT: f" {OURS}"},
            {DEPLOYMENT: f"{OURS}-2"},
            {DEPLOYMENT.upper(): OURS},
            {DEPLOYMENT: OURS, "aws:autoscaling:groupName": "x"},
            {DEPLOYMENT: OURS, "aws:eks:cluster-name": "x"},
            {DEPLOYMENT: OURS, "kubernetes.io/cluster/x": "owned"},
            {DEPLOYMENT: OURS, "KubernetesCluster": "x"},
            {DEPLOYMENT: OURS, "ray-cluster-name": "x"},
        )
        others = [world.cloud.put_machine(tags, name="hostler-abc-0-1", age_s=90000) for tags in marks]
        for _ in range(4):
            await reap(world)
            await asyncio.sleep(900)
        assert [machine.order_at for machine in others] == [None] * len(others)

    run_simulated(play())
