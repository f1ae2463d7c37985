"""The cost sweep and the log rotation as tasks."""

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from tests.task_context import TaskContext

from hostler.cloud.errors import CloudUnavailableError
from hostler.cloud.inventory import ThingKind
from hostler.cloud.tags import DEPLOYMENT
from hostler.drivers.fake.cloud import Fault
from hostler.lifecycle.policies import GuardVerdict
from hostler.vault.local import LocalKeys
from hostler.vault.stores import FileStore
from hostler_operators import sweep
from hostler_operators.rotation import RotateLogsOperator

FLEET = """\
deployment: lab
limits: {{usd_per_hour: 1, usd_per_run: 1, nodes: 1}}
backup: {{uri: "file:///backup"}}
clouds: {{aws: {{regions: [us-east-1], image: ami-1}}}}
log_rotation: {{paths: ["{folder}/*.log"], folder: "{folder}/state", settle_s: 0, most_age_s: 60, host: here}}
"""


@pytest.fixture
def folder(world, monkeypatch, tmp_path):
    (tmp_path / "fleet.yaml").write_text(FLEET.format(folder=tmp_path))
    monkeypatch.setenv("HOSTLER_FLEET", str(tmp_path / "fleet.yaml"))
    return tmp_path


@pytest.fixture
def guard(monkeypatch):
    held = {"verdict": GuardVerdict(report="/docs/index.html")}
    monkeypatch.setattr(sweep, "suite_guard_of", lambda _fleet: lambda _batch: held["verdict"])
    return held


def run_sweep(**params):
    context = TaskContext(task_id="sweep", dag_id="hostler_cost_sweep", params=params)
    return sweep.SweepCostsOperator(task_id="sweep"), context


def test_sweep_when_all_is_listed_then_costs_by_owner_and_what_is_unexplained(world, folder, guard):
    world.cloud.put_thing(ThingKind.VOLUME, {DEPLOYMENT: "lab"}, size_gib=100)
    world.cloud.put_thing(ThingKind.VOLUME, {}, size_gib=50)
    operator, context = run_sweep()
    told = operator.execute(context)
    assert told["orphan_usd_per_month"] == told["unexplained_usd_per_month"] == "8.00"
    assert told["foreign_usd_per_month"] == "4.00"
    assert (told["ours_usd_per_month"], told["report"]) == ("0.00", 1)
    assert context.pushed["checks"]["checks"] == "/docs/index.html"


def test_sweep_when_checks_fail_then_fails_for_good_and_when_a_region_is_away_for_a_retry(world, folder, guard):
    world.cloud.put_thing(ThingKind.VOLUME, {DEPLOYMENT: "lab"}, size_gib=100)
    guard["verdict"] = GuardVerdict(problems=("fresh: lists",))
    operator, context = run_sweep()
    with pytest.raises(AirflowFailException, match="nothing was ended: fresh"):
        operator.execute(context)
    world.cloud.order_fault("inventory", Fault(error=CloudUnavailableError("away")))
    with pytest.raises(AirflowException, match="could not list everything") as caught:
        operator.execute(context)
    assert not isinstance(caught.value, AirflowFailException)


def test_rotation_when_files_are_due_then_shipped_and_counted_and_when_the_store_is_away_for_a_retry(
    world, folder, monkeypatch
):
    from dataclasses import replace

    from hostler_sensors import fleet_access

    store = FileStore("file:///x", folder / "store")
    fleet = replace(world.fleet, store=store, keys=LocalKeys(folder / "keys"))
    monkeypatch.setattr(fleet_access, "build", lambda: fleet)
    (folder / "app.log").write_bytes(b"x" * 65 * 1024 * 1024)
    context = TaskContext(task_id="rotate", dag_id="hostler_log_rotation")
    told = RotateLogsOperator(task_id="rotate").execute(context)
    assert told == {"nodes_shipped": 0, "cut": 1, "shipped": 1}
    assert [path.name for path in folder.glob("app.log*")] == []
    (folder / "app.log").write_bytes(b"x" * 65 * 1024 * 1024)
    monkeypatch.setattr(store, "put", lambda *_args, **_more: 1 / 0)
    with pytest.raises(AirflowException, match="what was not stays"):
        RotateLogsOperator(task_id="rotate").execute(context)
    assert len(list(folder.glob("app.log.*"))) == 1
