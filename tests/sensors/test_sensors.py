"""The sensors: they look first, defer only when waiting can help, and say why."""

import asyncio
from dataclasses import replace

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from tests.task_context import TaskContext

from hostler.lifecycle.admit import admit
from hostler.lifecycle.converge import converge
from hostler.lifecycle.release import begin_release
from hostler.model.enums import CapacityType, Phase, Verdict
from hostler.model.health import HealthReport
from hostler.model.lease import lease_id_for
from hostler.model.request import RunRef
from hostler_sensors import fleet_access
from hostler_sensors.capacity import CapacityAvailableSensor
from hostler_sensors.nodes import NodeHealthySensor, NodeReadySensor
from hostler_sensors.triggers.capacity import CapacityTrigger
from hostler_sensors.triggers.health import HealthTrigger

RUN = RunRef(dag_id="hostler_node_lifecycle", run_id="r1")
LEASE = lease_id_for(RUN)
CONF = {"recipe": "script", "script": "true"}
CONTEXT = TaskContext(task_id="wait")


def capacity(**changes):
    return CapacityAvailableSensor(task_id="wait", **{"accelerator": "H100", "node_count": 2, **changes})


def deferral(sensor):
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute(CONTEXT)
    return deferred.value


def drive(world, until, conf=CONF):
    admit(world.fleet, RUN, conf, who="test")
    return asyncio.run(converge(world.fleet, LEASE, until, holder="test", budget_s=600))


def test_capacity_when_worth_trying_then_says_what_would_be_bought_and_buys_nothing(world):
    assert "fake.8xh100" in capacity().execute(CONTEXT)
    assert all(call.name == "offerings" for call in world.cloud.calls)


def test_capacity_when_every_zone_was_out_of_stock_then_defers_with_its_own_arguments(world):
    zones = world.cloud.zones["fake-north"]
    world.cloud.stock.update({(zone, "fake.8xh100", kind): 0 for zone in zones for kind in CapacityType})
    admit(world.fleet, RUN, CONF, who="test")
    asyncio.run(converge(world.fleet, LEASE, Phase.LAUNCH, holder="test", budget_s=0))
    sensor = capacity()
    deferred = deferral(sensor)
    assert isinstance(deferred.trigger, CapacityTrigger)
    assert deferred.trigger.serialize()[1]["capacity_types"] == "spot,on-demand"
    assert deferred.timeout is not None


def test_capacity_when_airflow_starts_it_then_it_waits_in_the_triggerer_from_the_start_with_the_same_arguments():
    sensor = capacity(regions=("us-east-1",), timeout=600)
    given = sensor.start_trigger_args
    assert sensor.start_from_trigger
    assert given.trigger_cls == "hostler_sensors.triggers.capacity.CapacityTrigger"
    assert CapacityTrigger(**given.trigger_kwargs).serialize()[1] == given.trigger_kwargs
    assert given.trigger_kwargs["regions"] == "us-east-1"
    assert given.trigger_kwargs["quiet_s"] == 0, "no worker has deferred: apache/airflow#72716 has no chance"
    assert given.next_method == "go_on"
    assert given.timeout.total_seconds() == 600
    assert set(sensor.template_fields) <= set(given.trigger_kwargs), "templates are rendered by their names"


def test_capacity_when_spending_is_stopped_then_defers(world):
    world.ledger.set_spending_stopped(stopped=True, events=[])
    deferral(capacity())


def test_capacity_when_a_cap_would_be_passed_then_defers(world):
    deferral(capacity(node_count=21))


def test_capacity_when_nothing_on_offer_fits_then_defers(world):
    deferral(capacity(max_price_usd_per_hour=0.01))


def test_ready_when_nodes_are_set_up_then_ends(world):
    drive(world, Phase.SETUP)
    assert NodeReadySensor(task_id="wait", lease_id=LEASE).execute(CONTEXT) is None


def test_ready_when_nothing_is_launched_yet_then_defers(world):
    admit(world.fleet, RUN, CONF, who="test")
    deferred = deferral(NodeReadySensor(task_id="wait", lease_id=LEASE))
    assert isinstance(deferred.trigger, HealthTrigger)
    assert deferred.trigger.wanted == "ready"


def test_healthy_when_a_fresh_probe_is_good_then_ends(world):
    drive(world, Phase.VALIDATE)
    assert NodeHealthySensor(task_id="wait", lease_id=LEASE).execute(CONTEXT) is None


def test_healthy_when_the_old_verdict_was_good_and_the_new_probe_is_bad_then_fails(world):
    drive(world, Phase.VALIDATE)
    world.nodes.verdict = Verdict.FAILED
    with pytest.raises(AirflowFailException, match="failed"):
        NodeHealthySensor(task_id="wait", lease_id=LEASE, max_age_s=-1).execute(CONTEXT)


def doubtful(world):
    seams = replace(
        world.fleet.seams, judge=lambda _document, **_what: HealthReport(verdict=Verdict.FAILED, is_confirmed=False)
    )
    return replace(world.fleet, seams=seams)


def test_healthy_when_one_look_alone_is_bad_then_defers_and_what_the_trigger_has_proven_is_confirmed(world, monkeypatch):
    drive(world, Phase.VALIDATE)
    monkeypatch.setattr(fleet_access, "build", lambda: doubtful(world))
    sensor = NodeHealthySensor(task_id="wait", lease_id=LEASE, max_age_s=-1)
    deferral(sensor)
    with pytest.raises(TaskDeferred):
        sensor.go_on(CONTEXT, {"lease_id": LEASE, "reason": "x", "is_proven": False})
    with pytest.raises(AirflowFailException, match="failed"):
        sensor.go_on(CONTEXT, {"lease_id": LEASE, "reason": "x", "is_proven": True})


def test_healthy_when_the_trigger_had_proof_and_the_node_is_well_again_then_ends(world):
    drive(world, Phase.VALIDATE)
    sensor = NodeHealthySensor(task_id="wait", lease_id=LEASE, max_age_s=-1)
    assert sensor.go_on(CONTEXT, {"lease_id": LEASE, "reason": "x", "is_proven": True}) is None


def test_healthy_when_a_node_is_silent_then_unknown_is_not_healthy_and_not_failed(world):
    drive(world, Phase.VALIDATE)
    world.nodes.silent = {node.node_name for node in world.ledger.view(LEASE).nodes}
    deferral(NodeHealthySensor(task_id="wait", lease_id=LEASE, max_age_s=-1))


@pytest.mark.parametrize("kind", [NodeReadySensor, NodeHealthySensor])
def test_nodes_when_the_lease_is_over_then_fails_at_once(world, kind):
    drive(world, Phase.VALIDATE)
    begin_release(world.fleet, LEASE, who="ada", reason="enough")
    with pytest.raises(AirflowFailException, match="enough"):
        kind(task_id="wait", lease_id=LEASE).execute(CONTEXT)
