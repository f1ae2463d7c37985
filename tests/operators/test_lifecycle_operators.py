"""Each step by itself, over the real lifecycle and a fleet in memory."""

import asyncio
from dataclasses import replace

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferred
from tests.task_context import TaskContext

from hostler.model.enums import CapacityType, JobState, LeaseState, Verdict
from hostler.model.lease import lease_id_for
from hostler.model.request import RunRef
from hostler_operators.admit import AdmitRequestOperator
from hostler_operators.run import RunWorkloadOperator
from hostler_operators.steps import (
    AcquireCapacityOperator,
    LaunchNodesOperator,
    PlanPlacementOperator,
    SetupNodesOperator,
    ValidateNodesOperator,
)
from hostler_operators.teardowns import BackupLeaseOperator, ReleaseLeaseOperator, WriteReceiptOperator
from hostler_sensors import fleet_access
from hostler_sensors.triggers.converge import ConvergeTrigger
from hostler_sensors.triggers.run import RunTrigger

LEASE = lease_id_for(RunRef(dag_id="hostler_node_lifecycle", run_id="r1"))
STEPS = [
    AdmitRequestOperator(task_id="admit"),
    PlanPlacementOperator(task_id="plan"),
    AcquireCapacityOperator(task_id="acquire"),
    LaunchNodesOperator(task_id="launch"),
    SetupNodesOperator(task_id="setup"),
    ValidateNodesOperator(task_id="validate"),
]
CONF = {"recipe": "script", "script": "true"}


def live_count(world):
    return len(world.cloud.live())


def finish(operator, context, deferred):
    """What Airflow does with a deferral: run the trigger to its event, then resume."""
    for _ in range(20):
        event = asyncio.run(first_event(deferred.value.trigger))
        with_event = {"event": event.payload}
        try:
            return getattr(operator, deferred.value.method_name)(context, **with_event)
        except TaskDeferred as again:
            deferred = type("Again", (), {"value": again})
    raise AssertionError("deferred twenty times")


async def first_event(trigger):
    trigger.quiet_s = 0.0
    async for event in trigger.run():
        return event
    raise AssertionError("the trigger ended without an event")


def do(operator, **context):
    given = TaskContext(task_id=operator.task_id, **context)
    try:
        return operator.execute(given)
    except TaskDeferred as deferral:
        return finish(operator, given, type("First", (), {"value": deferral}))


@pytest.fixture
def prepared(world):
    for step in STEPS:
        do(step, conf=CONF)
    return world


def test_steps_when_all_is_well_then_the_gang_lives(prepared):
    assert live_count(prepared) == 2
    assert prepared.ledger.view(LEASE).lease.reached == "validate"


def test_admit_when_repeated_then_the_same_lease(world):
    first = do(STEPS[0], conf=CONF)
    again = do(STEPS[0], conf=CONF, try_number=2)
    assert first == again == {"lease_id": LEASE}


@pytest.mark.parametrize(
    ("conf", "field"),
    [
        ({"accelerator": "H1000"}, "accelerator"),
        ({"nodes": 0}, "nodes"),
        ({"max_cost_usd": -1}, "max_cost_usd"),
        ({"surprise": 1}, "surprise"),
        ({"deadline": "2020-01-01T00:00:00Z"}, "deadline"),
        ({"recipe": "missing"}, "recipe"),
        ({"tenant": "stranger"}, "tenant"),
        ({"secrets": ["missing"]}, "secrets"),
        ({"script": "x" * 300_000}, "conf"),
    ],
)
def test_admit_when_a_field_is_wrong_then_refused_by_name_and_nothing_bought(world, conf, field):
    with pytest.raises(AirflowFailException, match=field):
        do(STEPS[0], conf=conf)
    assert world.ledger.list_leases() == ()
    assert world.cloud.calls == []


def test_launch_when_out_of_stock_then_defers_to_the_converge_trigger(world):
    for step in STEPS[:3]:
        do(step, conf=CONF)
    zones = world.cloud.zones["fake-north"]
    world.cloud.stock.update({(zone, "fake.8xh100", kind): 0 for zone in zones for kind in CapacityType})
    with pytest.raises(TaskDeferred) as deferral:
        STEPS[3].execute(TaskContext(task_id="launch"))
    trigger = deferral.value.trigger
    assert isinstance(trigger, ConvergeTrigger)
    assert trigger.serialize()[1]["lease_id"] == LEASE
    assert live_count(world) == 0


def test_launch_when_repeated_by_another_try_then_buys_nothing_more(prepared):
    do(STEPS[3], try_number=2)
    assert live_count(prepared) == 2


def test_validate_when_every_node_is_bad_then_fails_for_good(world):
    world.nodes.verdict = Verdict.FAILED
    for step in STEPS[:-1]:
        do(step, conf=CONF)
    with pytest.raises(AirflowFailException, match="validate"):
        do(STEPS[-1])
    assert world.ledger.view(LEASE).lease.failure


def test_run_when_the_job_ends_well_then_returns_its_numbers(prepared):
    told = do(RunWorkloadOperator(task_id="run"))
    assert told["lease_id"] == LEASE
    assert told["accuracy"] == pytest.approx(0.97)


def test_run_when_the_job_fails_then_fails_for_good(prepared):
    prepared.nodes.job_end = JobState.FAILED
    with pytest.raises(AirflowFailException, match="script failed"):
        do(RunWorkloadOperator(task_id="run"))


def test_run_when_a_node_is_taken_then_replaced_by_a_worker_and_the_job_goes_on(prepared):
    prepared.nodes.job_polls = 6
    operator = RunWorkloadOperator(task_id="run")
    with pytest.raises(TaskDeferred):
        operator.go_on(TaskContext(task_id="run"))
    prepared.cloud.reclaim(prepared.cloud.live()[0].provider_id)
    told = do(operator, try_number=2)
    assert told["attempt"] == 2
    assert live_count(prepared) == 2


def test_run_when_the_lease_is_released_then_says_so_and_buys_nothing(prepared):
    do(ReleaseLeaseOperator(task_id="release", is_own=True))
    bought = [call for call in prepared.cloud.calls if call.name == "launch"]
    with pytest.raises(AirflowFailException, match="released"):
        do(RunWorkloadOperator(task_id="run"), try_number=2)
    assert [call for call in prepared.cloud.calls if call.name == "launch"] == bought


def test_teardowns_when_all_is_well_then_gone_and_a_complete_receipt(prepared):
    do(RunWorkloadOperator(task_id="run"))
    assert do(BackupLeaseOperator(task_id="backup"))["manifest_uri"].endswith("manifest.json")
    do(ReleaseLeaseOperator(task_id="release", is_own=True))
    told = do(WriteReceiptOperator(task_id="receipt"))
    assert live_count(prepared) == 0
    assert told["nodes_launched"] == 2
    assert told["cost_usd"] > 0


def test_receipt_when_the_job_never_ran_then_fails_with_what_is_missing(prepared):
    do(BackupLeaseOperator(task_id="backup"))
    do(ReleaseLeaseOperator(task_id="release", is_own=True))
    with pytest.raises(AirflowFailException, match="job"):
        do(WriteReceiptOperator(task_id="receipt"))
    assert prepared.ledger.view(LEASE).receipt is not None
    assert live_count(prepared) == 0


def test_release_when_the_cloud_refuses_then_raises_for_a_retry_and_never_defers(prepared):
    prepared.cloud.refuses_end_until = prepared.clock().replace(hour=23)
    with pytest.raises(AirflowException, match="not done yet") as error:
        ReleaseLeaseOperator(task_id="release", is_own=True).execute(TaskContext(task_id="release"))
    assert not isinstance(error.value, AirflowFailException)
    assert prepared.ledger.view(LEASE).lease.state is LeaseState.DRAINING


@pytest.mark.parametrize(("lease_ref", "run_ref"), [("", ""), (LEASE, "r1")])
def test_release_when_not_exactly_one_name_then_refused(world, lease_ref, run_ref):
    operator = ReleaseLeaseOperator(task_id="release", lease_ref=lease_ref, run_ref=run_ref)
    with pytest.raises(AirflowFailException, match="exactly one"):
        operator.execute(TaskContext(task_id="release", dag_id="hostler_node_release"))


@pytest.mark.parametrize(("lease_ref", "run_ref"), [(LEASE, ""), ("", "r1")])
def test_release_when_named_from_another_dag_then_ended_in_the_persons_name(prepared, lease_ref, run_ref):
    do(ReleaseLeaseOperator(task_id="release", lease_ref=lease_ref, run_ref=run_ref), dag_id="hostler_node_release")
    assert live_count(prepared) == 0
    assert any(event.who == "airflow/ada" for event in prepared.ledger.list_events(LEASE))


def test_run_operator_when_serialized_then_enters_by_its_trigger():
    operator = RunWorkloadOperator(task_id="run")
    arguments = operator.start_trigger_args
    assert operator.start_from_trigger
    assert set(arguments.trigger_kwargs) >= set(operator.template_fields)
    assert RunTrigger(**arguments.trigger_kwargs).serialize()[0] == arguments.trigger_cls


def test_worker_when_a_step_ends_then_connections_to_nodes_are_closed(prepared):
    assert prepared.nodes.closed == len(STEPS) - 1


def test_run_when_a_secret_is_gone_by_then_fails_for_good_and_names_it(prepared, world, monkeypatch):
    def gone(name):
        raise KeyError(f"secret {name!r}: gone")

    conf = {**CONF, "secrets": ["known"]}
    for step in STEPS:
        do(step, conf=conf, run_id="r2")
    monkeypatch.setattr(fleet_access, "build", lambda: replace(world.fleet, secret=gone))
    monkeypatch.setattr(fleet_access, "_built", {})
    with pytest.raises(AirflowFailException, match="'known'"):
        do(RunWorkloadOperator(task_id="run"), run_id="r2")


@pytest.mark.parametrize(
    ("executor", "address", "is_refused"),
    [
        ("LocalExecutor", "sqlite:////tmp/airflow.db", True),
        ("LocalExecutor", "postgresql+psycopg://airflow@db/airflow", False),
        ("LocalExecutor,CeleryExecutor", "sqlite:////tmp/airflow.db", True),
        ("CeleryExecutor", "sqlite:////tmp/airflow.db", False),  # a remote worker does not see the address: this is the default
    ],
)
def test_admit_when_airflow_runs_on_sqlite_then_refused_by_name(world, monkeypatch, executor, address, is_refused):
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", executor)
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", address)
    operator = AdmitRequestOperator(task_id="admit")
    if not is_refused:
        assert do(operator, conf=CONF)["lease_id"] == LEASE
        return
    with pytest.raises(AirflowFailException, match=r"SQLite.*PostgreSQL"):
        do(operator, conf=CONF)
    assert world.cloud.live() == []
