"""Backups as tasks."""

from dataclasses import replace
from datetime import timedelta

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from tests.lifecycle.keeping_site import KeepingSite
from tests.task_context import TaskContext

from hostler.vault.port import KeyServiceError
from hostler_operators.backups import CheckBackupsOperator, DrillRestoreOperator, RetainBackupsOperator

FLEET = """\
deployment: lab
limits: {usd_per_hour: 1, usd_per_run: 1, nodes: 1}
backup: {uri: s3://b/p, retention: {all_days: 1, daily: 0, weekly: 0, monthly: 0, yearly: 0}}
clouds: {aws: {regions: [us-east-1], image: ami-1}}
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    from hostler_sensors import fleet_access

    made = KeepingSite(tmp_path)
    monkeypatch.setattr(fleet_access, "build", lambda: made.fleet)
    monkeypatch.setattr(fleet_access, "_built", {})
    (tmp_path / "fleet.yaml").write_text(FLEET)
    monkeypatch.setenv("HOSTLER_FLEET", str(tmp_path / "fleet.yaml"))
    return made


def run(operator, dag_id, **params):
    return operator.execute(TaskContext(task_id=operator.task_id, dag_id=dag_id, params=params))


def check(**params):
    return run(CheckBackupsOperator(task_id="check"), "hostler_backup", **params)


def test_check_when_all_is_well_then_counts(site):
    site.run("a")
    site.run("b", is_sealed=False)
    assert check() == {"good": 1, "sealed": 1, "left": 0}
    assert check(check_gib=1e-9) == {"good": 1, "sealed": 0, "left": 1}


def test_check_when_one_is_damaged_then_the_task_fails_by_name(site):
    lease_id = site.run("a")
    site.flip(lease_id)
    with pytest.raises(AirflowFailException, match=rf"{lease_id}.*step-10"):
        check()


def test_check_when_the_key_service_is_away_then_a_retry(site):
    site.run("a")

    class Away:
        key_id = "away"

        def unwrap(self, wrapped, context):
            raise KeyServiceError("KMS is away")

    site.fleet = replace(site.fleet, keys=Away())
    with pytest.raises(AirflowException, match="could not be read") as caught:
        check()
    assert not isinstance(caught.value, AirflowFailException)


def test_retain_when_the_rules_of_fleet_yaml_do_not_keep_it_then_it_goes_unless_dry(site):
    old, _new = site.run("old", days_ago=9), site.run("new", days_ago=2)
    retain = RetainBackupsOperator(task_id="retain")
    assert run(retain, "hostler_backup", dry_run=True)["left"] == [old]
    assert run(retain, "hostler_backup") == {"deleted": [old], "left": [], "report_only": None}


def test_retain_when_the_newest_cannot_be_proved_then_a_retry_and_nothing_goes(site):
    site.run("old", days_ago=9)
    site.flip(site.run("new", days_ago=2))
    before = dict(site.store.content)
    with pytest.raises(AirflowException, match="nothing was deleted"):
        run(RetainBackupsOperator(task_id="retain"), "hostler_backup")
    assert site.store.content == before


def test_drill_when_a_backup_restores_then_numbers_and_the_same_one_at_a_retry(site, tmp_path):
    for name in "abcd":
        site.run(name, recipe="script", script="x")
    drill = DrillRestoreOperator(task_id="drill")
    first = run(drill, "hostler_restore_drill", scratch=str(tmp_path))
    assert first["rto_s"] > 0
    site.world.clock.at += timedelta(hours=1)
    assert run(drill, "hostler_restore_drill")["lease_id"] == first["lease_id"]


def test_drill_when_it_does_not_restore_then_the_task_fails_and_without_backups_it_does_not(site):
    drill = DrillRestoreOperator(task_id="drill")
    assert run(drill, "hostler_restore_drill") == {"lease_id": None}
    lease_id = site.run("a")
    site.flip(lease_id)
    with pytest.raises(AirflowFailException, match="step-10"):
        run(drill, "hostler_restore_drill", lease=lease_id)
