"""Orphans, late machines, and what is left alone (bug reports B14 and B15)."""

import asyncio

from tests.sim.stage import (
    TO_RUN,
    Failed,
    Reached,
    admitted,
    events,
    fair_world,
    let_go,
    only_live,
    run_simulated,
    through,
)
from tests.sim.world import DEPLOYMENT as OURS

from hostler.cloud.errors import (
    AlreadyExistsError,
    CloudConfigError,
)
from hostler.cloud.tags import DEPLOYMENT
from hostler.drivers.fake.cloud import Fault
from hostler.lifecycle.converge import converge
from hostler.lifecycle.reap import confirm_epoch, reconcile
from hostler.lifecycle.reap_leases import UNATTENDED_AFTER_S
from hostler.model.enums import LeaseState, NodeState, Phase


def test_b14_when_orphans_are_swept_then_only_our_own_untracked_machine_goes_and_only_after_grace():
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        await through(world, lease_id, TO_RUN[:3])
        tracked = only_live(world)
        orphan = world.cloud.put_machine({DEPLOYMENT: OURS, "Name": "hostler-x"})
        others = [
            world.cloud.put_machine({DEPLOYMENT: "another"}),
            world.cloud.put_machine({"Name": "hostler-look-alike"}, name="hostler-look-alike"),
            world.cloud.put_machine({DEPLOYMENT: OURS.upper()}),
            world.cloud.put_machine({DEPLOYMENT: OURS, "karpenter.sh/nodepool": "x"}),
        ]
        confirm_epoch(world.fleet(), who="person")
        first = await reconcile(world.fleet(), who="reap", dry_run=False)
        assert orphan.order_at is None
        assert "first time" in next(f.reason for f in first.findings if f.subject == orphan.provider_id)
        assert {f.subject for f in first.findings if f.kind == "foreign"} == {m.provider_id for m in others}
        await asyncio.sleep(601)
        dry = await reconcile(world.fleet(), who="reap", dry_run=True)
        assert orphan.order_at is None
        assert dry.report_only == "dry run"
        await asyncio.gather(*(reconcile(world.fleet(), who=f"reap-{n}", dry_run=False) for n in range(2)))
        assert orphan.order_at is not None
        assert tracked.order_at is None
        assert [m.order_at for m in others] == [None] * 4
        assert events(world, None, "reap.ending")

    run_simulated(play())


def test_b14_when_the_ledger_is_new_and_knows_no_machine_it_sees_then_it_only_reports_until_confirmed():
    async def play():
        world = fair_world()
        orphan = world.cloud.put_machine({DEPLOYMENT: OURS}, age_s=9000)
        for _ in range(3):
            report = await reconcile(world.fleet(), who="reap", dry_run=False)
            await asyncio.sleep(700)
        assert "a person must confirm" in report.report_only
        assert orphan.order_at is None
        confirm_epoch(world.fleet(), who="person")
        for _ in range(2):
            await reconcile(world.fleet(), who="reap", dry_run=False)
            await asyncio.sleep(700)
        assert orphan.order_at is not None

    run_simulated(play())


def test_b14_when_many_orphans_are_there_then_the_blast_radius_holds_a_tick():
    async def play():
        world = fair_world(settings_changes={"destroyed_per_tick": 2})
        orphans = [world.cloud.put_machine({DEPLOYMENT: OURS}, age_s=9000) for _ in range(5)]
        confirm_epoch(world.fleet(), who="person")
        ended = []
        for _ in range(5):
            await reconcile(world.fleet(), who="reap", dry_run=False)
            ended.append(sum(1 for m in orphans if m.order_at is not None))
            await asyncio.sleep(300)
        assert ended == [0, 0, 2, 4, 5]

    run_simulated(play())


def test_b15_when_a_refused_create_comes_up_anyway_then_it_is_adopted_or_ended_and_never_left():
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        refusal = Fault(error=CloudConfigError("Failed"), when="late", late_s=30)
        world.cloud.order_fault("launch", refusal)
        assert isinstance(await through(world, lease_id, TO_RUN), Failed)
        await asyncio.sleep(40)
        view = await let_go(world, lease_id)
        assert [node.state for node in view.nodes] == [NodeState.GONE]
        assert world.cloud.live() == []

    run_simulated(play())


def test_b15_when_it_comes_up_after_another_node_has_the_slot_then_the_late_one_is_given_back():
    async def play():
        world = fair_world()
        lease_id = admitted(world, nodes=1)
        world.cloud.order_fault("launch", Fault(error=AlreadyExistsError("odd"), when="late", late_s=200))
        assert isinstance(await through(world, lease_id), Reached)
        view = world.ledger.view(lease_id)
        assert {node.state for node in view.nodes} == {NodeState.GONE}
        await asyncio.sleep(900)
        for _ in range(4):
            await reconcile(world.fleet(), who="reap", dry_run=False)
            await asyncio.sleep(700)
        assert world.cloud.live() == []

    run_simulated(play())


def test_when_the_run_ends_while_admit_runs_and_no_teardown_ever_comes_then_reconcile_ends_the_lease():
    """A run marked failed in the midst of admit: all teardowns end upstream_failed, and the lease is left ``requested``."""

    async def play():
        world = fair_world()
        lease_id = admitted(world)
        grace_s = UNATTENDED_AFTER_S + world.settings().unattended_grace_s
        for _ in range(9):  # idle time counts only while reconciles look
            early = await reconcile(world.fleet(), who="reap", dry_run=False)
            assert early.findings == ()
            await asyncio.sleep((grace_s - 1) / 9)
        early = await reconcile(world.fleet(), who="reap", dry_run=False)
        assert early.findings == ()
        assert world.ledger.view(lease_id).lease.state is LeaseState.REQUESTED
        await asyncio.sleep(2)
        dry = await reconcile(world.fleet(), who="reap", dry_run=True)
        assert [(found.kind, found.action) for found in dry.findings] == [("lease", "none")]
        await reconcile(world.fleet(), who="reap", dry_run=False)
        view = world.ledger.view(lease_id)
        assert view.lease.state is LeaseState.RELEASED
        assert view.intents == ()
        assert not [call for call in world.cloud.calls if call.name == "launch"]
        assert "nobody has driven it" in events(world, lease_id, "lease.draining")[0].why
        outcome = await converge(world.fleet(), lease_id, Phase.RECEIPT, holder="person", budget_s=0)
        assert isinstance(outcome, Failed)
        assert world.ledger.view(lease_id).receipt.cost_usd == 0
        again = await reconcile(world.fleet(), who="reap", dry_run=False)
        assert again.findings == ()

    run_simulated(play())
