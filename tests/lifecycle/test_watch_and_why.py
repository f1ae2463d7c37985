"""What a trigger is told, and what a person is told."""

import asyncio

from tests.sim.stage import TO_RUN, Phase, admitted, fair_world, let_go, run_simulated, through, until

from hostler.lifecycle.converge import converge
from hostler.lifecycle.explain import why
from hostler.lifecycle.release import begin_release
from hostler.lifecycle.watch import watch
from hostler.model.enums import CapacityType


async def _in_run(world):
    lease_id = admitted(world)
    await through(world, lease_id, TO_RUN[:5])
    await converge(world.fleet(), lease_id, Phase.RUN, holder="x", budget_s=0)
    return lease_id


def _told(world, lease_id, phase, *, min_s=1.0, max_s=300.0):
    return watch(world.fleet(), lease_id, phase, min_s=min_s, max_s=max_s)


def test_watch_when_the_job_ends_then_it_says_so_soon():
    async def play():
        world = fair_world()
        lease_id = await _in_run(world)
        began = world.seconds()
        reason = await _told(world, lease_id, Phase.RUN)
        assert "succeeded" in reason
        assert 110 <= world.seconds() - began <= 140

    run_simulated(play())


def test_watch_when_nothing_happens_then_it_ends_at_its_longest_and_writes_nothing():
    async def play():
        world = fair_world()
        world.nodes.total_steps = 10**6
        lease_id = await _in_run(world)
        before, began = len(world.ledger.list_events(None, limit=10**6)), world.seconds()
        assert await _told(world, lease_id, Phase.RUN, max_s=200.0) == "time for another look"
        assert abs(world.seconds() - began - 200) < 1
        assert len(world.ledger.list_events(None, limit=10**6)) == before

    run_simulated(play())


def test_watch_when_a_reason_is_there_at_once_then_it_still_waits_its_shortest():
    async def play():
        world = fair_world()
        lease_id = admitted(world)
        begin_release(world.fleet(), lease_id, who="x", reason="over")
        began = world.seconds()
        assert "draining" in await _told(world, lease_id, Phase.LAUNCH, min_s=6.0)
        assert world.seconds() - began == 6.0

    run_simulated(play())


def test_watch_when_a_node_is_taken_or_silent_then_it_says_which():
    async def play():
        for act in ("reclaim", "freeze"):
            world = fair_world()
            world.nodes.total_steps = 10**6
            lease_id = await _in_run(world)
            victim = world.ledger.view(lease_id).nodes[1]
            if act == "reclaim":
                world.cloud.reclaim(victim.provider_id)
            else:
                world.nodes.frozen[victim.provider_id] = world.seconds()
            assert victim.node_name in await _told(world, lease_id, Phase.RUN)

    run_simulated(play())


def test_watch_when_a_limit_bites_then_it_says_so_in_time():
    async def play():
        world = fair_world()
        world.nodes.total_steps = 10**6
        lease_id = admitted(world, max_cost_usd=6.0)
        await through(world, lease_id, TO_RUN[:5])
        await converge(world.fleet(), lease_id, Phase.RUN, holder="x", budget_s=0)
        assert "max_cost_usd" in await _told(world, lease_id, Phase.RUN, max_s=3000.0)

    run_simulated(play())


def test_watch_when_stock_comes_back_then_it_names_what_is_worth_trying():
    async def play():
        world = fair_world()
        for zone in world.cloud.zones["fake-north"]:
            for kind in CapacityType:
                world.cloud.stock[zone, "fake.8xh100", kind] = 0
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:2])
        await until(world, lease_id, Phase.LAUNCH, for_s=0)
        assert "worth trying: fake/fake-north" in await _told(world, lease_id, Phase.LAUNCH)

    run_simulated(play())


def test_watch_when_setup_and_boot_go_on_then_it_wakes_for_each():
    async def play():
        world = fair_world()
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:2])
        told = []
        for phase in (Phase.LAUNCH, Phase.SETUP):
            while True:
                outcome = await converge(world.fleet(), lease_id, phase, holder="x", budget_s=0)
                if type(outcome).__name__ == "Reached":
                    break
                told.append(await _told(world, lease_id, phase, max_s=120.0))
        assert any("answers" in reason for reason in told)
        assert any("setup is over" in reason for reason in told)
        assert world.seconds() < 150

    run_simulated(play())


def test_why_when_a_lease_lives_and_ends_then_each_stage_is_said_in_words():
    async def play():
        world = fair_world()
        lease_id = await _in_run(world)
        view, events = world.ledger.view(lease_id), world.ledger.list_events(lease_id)
        text = why(view, events, world.now())
        assert "is active; done so far: validate" in text
        assert "job attempt 1 is running" in text
        assert "48.00 USD per hour now" in text
        begin_release(world.fleet(), lease_id, who="anna", reason="not needed any more")
        assert "not needed any more" in why(world.ledger.view(lease_id), [])
        text = why(await let_go(world, lease_id), world.ledger.list_events(lease_id))
        assert "everything is gone by the cloud's word" in text
        assert "0.00 USD per hour now" in text

    run_simulated(play())


def test_why_when_it_waits_or_leaks_then_that_is_said():
    async def play():
        world = fair_world()
        world.cloud.stock = {
            (zone, "fake.8xh100", kind): 0 for zone in world.cloud.zones["fake-north"] for kind in CapacityType
        }
        lease_id = admitted(world)
        await through(world, lease_id, TO_RUN[:2])
        await until(world, lease_id, Phase.LAUNCH, for_s=0)
        await asyncio.sleep(5)
        text = why(world.ledger.view(lease_id), world.ledger.list_events(lease_id), world.now())
        assert "waiting since 5 s for: no stock in 6 of 6 offerings" in text
        assert "6 purchases refused" in text or "12 purchases refused" in text

    run_simulated(play())


def test_secrets_when_a_whole_life_is_lived_then_none_is_in_events_or_rows():
    async def play():
        world = fair_world()
        lease_id = admitted(world, secrets=["wandb-key"])
        await through(world, lease_id, TO_RUN)
        view = await let_go(world, lease_id)
        assert world.nodes.orders[0].secrets == {"WANDB_KEY": "value of wandb-key"}
        shown = repr(world.ledger.list_events(None, limit=10**6)) + repr(view) + repr(world.nodes.orders)
        assert "value of wandb-key" not in shown
        events = repr(world.ledger.list_events(None, limit=10**6))
        for secret in ("private", view.jobs[0].attempt_token, view.intents[0].client_token, view.lease.wrapped_data_key):
            assert secret not in events

    run_simulated(play())


def test_watch_when_nodes_are_kept_and_one_is_lost_then_nothing_calls_for_a_purchase():
    async def play():
        world = fair_world()
        lease_id = admitted(world, keep_s=3600)
        await through(world, lease_id, TO_RUN[:5])
        await until(world, lease_id, Phase.RUN, for_s=400)
        world.cloud.reclaim(world.ledger.view(lease_id).nodes[0].provider_id)
        await asyncio.sleep(60)
        assert world.ledger.view(lease_id).lease.keep_until is not None
        await converge(world.fleet(), lease_id, Phase.BACKUP, holder="x", budget_s=0)
        began = world.seconds()
        assert await _told(world, lease_id, Phase.RUN, max_s=250.0) == "time for another look"
        assert world.seconds() - began > 240

    run_simulated(play())
