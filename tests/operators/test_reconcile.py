"""The second net as a task."""

from datetime import timedelta

import pytest
from airflow.sdk.exceptions import AirflowException
from tests.task_context import TaskContext

from hostler.cloud.errors import CloudUnavailableError
from hostler.cloud.tags import DEPLOYMENT, INTENT, LEASE
from hostler.drivers.fake.cloud import Fault
from hostler.lifecycle.reap import confirm_epoch
from hostler_operators.reconcile import ReconcileFleetOperator

ORPHAN = {DEPLOYMENT: "lab", LEASE: "abcdefghij234567abcd", INTENT: "abcdefghij234567abcd-0-1"}


def reconcile(**arguments):
    operator = ReconcileFleetOperator(task_id="reconcile", **arguments)
    return operator.execute(TaskContext(task_id="reconcile", dag_id="hostler_fleet_reconcile"))


@pytest.fixture
def orphan(world):
    confirm_epoch(world.fleet, who="test")
    return world.cloud.put_machine(ORPHAN, age_s=86_400)


def test_reconcile_when_nothing_is_wrong_then_finds_nothing(world):
    assert reconcile() == {"findings": 0, "live_nodes": 0}


def test_reconcile_when_a_machine_of_ours_has_no_lease_then_ended_at_the_second_sight(world, orphan):
    assert reconcile()["findings"] == 1
    assert orphan.order_at is None, "one sight is not enough"
    world.clock.at += timedelta(seconds=world.fleet.settings.orphan_grace_s + 60)
    reconcile()
    assert orphan.order_at is not None


def test_reconcile_when_only_reporting_then_nothing_is_ended(world, orphan):
    assert reconcile(is_dry_run=True)["findings"] == 1
    assert orphan.order_at is None


def test_reconcile_when_a_cloud_cannot_be_looked_at_then_fails_for_a_retry_and_ends_nothing(world, orphan):
    world.cloud.order_fault("list", *[Fault(error=CloudUnavailableError("away")) for _ in range(10)])
    with pytest.raises(AirflowException, match="could not look"):
        reconcile()
    assert orphan.order_at is None
