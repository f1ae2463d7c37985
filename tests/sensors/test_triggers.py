"""The triggers: what is stored of them, when they fire, and what they never do."""

import asyncio
import time
from dataclasses import replace

import pytest
from airflow.sdk._shared.module_loading import import_string

from hostler.ledger.errors import LedgerUnavailableError
from hostler.lifecycle.admit import admit
from hostler.lifecycle.converge import converge
from hostler.model.enums import Phase
from hostler.model.lease import lease_id_for
from hostler.model.request import RunRef
from hostler_sensors import fleet_access
from hostler_sensors.triggers.capacity import CapacityTrigger
from hostler_sensors.triggers.converge import MIN_AFTER_DEFERRAL_S, ConvergeTrigger
from hostler_sensors.triggers.health import HealthTrigger
from hostler_sensors.triggers.run import RunTrigger

RUN = RunRef(dag_id="hostler_node_lifecycle", run_id="r1")
LEASE = lease_id_for(RUN)
CONF = {"recipe": "script", "script": "true"}
TRIGGERS = [
    ConvergeTrigger(lease_id=LEASE, phase="launch", retry_after_s=30.0),
    RunTrigger(lease_dag_id=RUN.dag_id, lease_run_id=RUN.run_id, attempt="1", quiet_s=0.0),
    CapacityTrigger(
        tenant="default", accelerator="H100", accelerators_per_node=8, node_count=2, capacity_types="spot,on-demand"
    ),
    HealthTrigger(lease_id=LEASE, wanted="ready"),
]


async def first(trigger):
    async for event in trigger.run():
        return event.payload
    raise AssertionError("no event")


async def prepare(world):
    admit(world.fleet, RUN, CONF, who="test")
    await converge(world.fleet, LEASE, Phase.VALIDATE, holder="test", budget_s=600)


@pytest.mark.parametrize("trigger", TRIGGERS, ids=lambda trigger: type(trigger).__name__)
def test_trigger_when_stored_then_comes_back_with_scalars_only(trigger):
    path, arguments = trigger.serialize()
    assert path == f"{type(trigger).__module__}.{type(trigger).__name__}"
    assert all(isinstance(value, (str, int, float, bool)) for value in arguments.values())
    assert import_string(path)(**arguments).serialize() == (path, arguments)


async def test_converge_trigger_when_something_is_due_at_once_then_still_quiet_for_six_seconds(world):
    admit(world.fleet, RUN, CONF, who="test")
    before = world.clock()
    told = await first(ConvergeTrigger(lease_id=LEASE, phase="launch", retry_after_s=1.0))
    assert (world.clock() - before).total_seconds() >= MIN_AFTER_DEFERRAL_S - 0.1  # two clocks
    assert told["lease_id"] == LEASE
    assert told["reason"]


async def test_run_trigger_when_a_worker_deferred_then_no_event_before_its_quiet_time(world):
    await prepare(world)
    start = time.monotonic()
    await first(RunTrigger(lease_dag_id=RUN.dag_id, lease_run_id=RUN.run_id, attempt="1", quiet_s=0.4))
    assert time.monotonic() - start >= 0.4


async def test_run_trigger_when_the_gang_is_ready_then_starts_the_job_and_follows_it_to_its_end(world):
    await prepare(world)
    told = await first(RunTrigger(lease_dag_id=RUN.dag_id, lease_run_id=RUN.run_id, attempt="1", quiet_s=0.0))
    assert told == {"lease_id": LEASE, "reason": "the job has ended"}
    assert world.ledger.view(LEASE).lease.reached == "run"
    assert world.nodes.closed == 0, "the triggerer keeps its connections"


async def test_run_trigger_when_a_node_is_lost_then_fires_and_buys_nothing(world):
    await prepare(world)
    world.nodes.job_polls = 100
    launches = sum(call.name == "launch" for call in world.cloud.calls)

    async def take_one_later():
        await world.nodes.job_started.wait()
        world.cloud.reclaim(world.cloud.live()[0].provider_id)

    trigger = RunTrigger(lease_dag_id=RUN.dag_id, lease_run_id=RUN.run_id, attempt="1", quiet_s=0.0)
    _, told = await asyncio.gather(take_one_later(), first(trigger))
    assert "slot" in told["reason"] or "replaced" in told["reason"]
    assert sum(call.name == "launch" for call in world.cloud.calls) == launches
    assert all(call.name != "terminate" for call in world.cloud.calls)


async def test_run_trigger_when_there_is_no_lease_then_a_worker_says_so(world):
    told = await first(RunTrigger(lease_dag_id=RUN.dag_id, lease_run_id="never", attempt="1", quiet_s=0.0))
    assert "admit" in told["reason"]


async def test_run_trigger_when_the_ledger_is_away_then_waits_and_goes_on(world, monkeypatch):
    await prepare(world)
    left = [3]

    class Flaky:
        def __getattr__(self, name):
            return getattr(world.ledger, name)

        def view(self, lease_id):
            left[0] -= 1
            if left[0] > 0:
                raise LedgerUnavailableError("away")
            return world.ledger.view(lease_id)

    monkeypatch.setattr(fleet_access, "build", lambda: replace(world.fleet, ledger=Flaky()))
    told = await first(RunTrigger(lease_dag_id=RUN.dag_id, lease_run_id=RUN.run_id, attempt="1", quiet_s=0.0))
    assert told["reason"] == "the job has ended"
    assert left[0] < 0


async def test_run_trigger_when_killed_by_a_person_then_the_job_is_left_alone_and_the_record_says_so(world):
    await prepare(world)
    trigger = RunTrigger(lease_dag_id=RUN.dag_id, lease_run_id=RUN.run_id, attempt="1", quiet_s=0.0)
    await trigger.on_kill()
    await trigger.on_kill()
    assert world.nodes.stopped == []
    events = [event for event in world.ledger.list_events(LEASE) if event.what == "run.detached"]
    assert events[0].who == "hostler_node_lifecycle/r1/run/1/triggerer"


async def test_shared_fleet_when_asked_by_many_then_built_once(world, monkeypatch):
    built = []
    monkeypatch.setattr(fleet_access, "build", lambda: built.append(1) or world.fleet)
    fleets = await asyncio.gather(*(fleet_access.shared_fleet() for _ in range(20)))
    assert built == [1]
    assert all(fleet is world.fleet for fleet in fleets)
