"""Mode observe, from the first day: every looking command and the reconcile Dag on a new ledger, and no call that changes anything."""

import json
import os
import re

import pytest
import yaml
from tests import airflow_home
from tests.clouds import aws
from tests.drivers.aws import sandbox_account

from hostler.cloud.tags import DEPLOYMENT, INTENT, LEASE

READS = re.compile(r"^(Describe|Get|List|Head|Simulate)")


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    with sandbox_account.account(tmp_path_factory.mktemp("account")) as made:
        yield made


@pytest.fixture
def observed(sandbox, fleet_file, monkeypatch):
    """An account with an orphan of ours, somebody's machine, an autoscaled one and a stopped one; a fleet file in mode observe."""
    aws.use_endpoint(monkeypatch, sandbox.aws_endpoint)
    monkeypatch.setattr("hostler.drivers.aws.doctor.doors.local_address", lambda _cidr: None)
    for name in [name for name in os.environ if name.startswith("AIRFLOW__")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AIRFLOW_HOME", "/nonexistent")
    document = yaml.safe_load(fleet_file.read_text())
    document |= {"mode": "observe", "backup": {"uri": sandbox_account.BUCKET}}
    document["clouds"]["aws"] |= sandbox_account.settings_of(sandbox)
    fleet_file.write_text(yaml.safe_dump(document))
    image = sandbox.info["fixtures"]["images"]["us-east-1/gpu"]
    made = {
        "orphan": put(
            image, "g6.xlarge", {DEPLOYMENT: "acme", LEASE: "abcdefghij234567abcd", INTENT: "abcdefghij234567abcd-0-1"}
        ),
        "person": put(image, "p5.48xlarge", {"Name": "notebook", "Team": "vision"}),
        "scaled": put(image, "g5.xlarge", {"karpenter.sh/nodepool": "gpu"}),
        "stopped": put(image, "g5.xlarge", {}),
    }
    aws.owner().stop_instances(InstanceIds=[made["stopped"]])
    sandbox.clock.advance(86_400)
    assert sandbox.until_quiet()
    yield made
    aws.end_all(aws.owner())


def put(image, instance_type, tags):
    labels = [{"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}]
    asked = {"ImageId": image, "InstanceType": instance_type, "MinCount": 1, "MaxCount": 1}
    return aws.owner().run_instances(**asked, **({"TagSpecifications": labels} if tags else {}))["Instances"][0]["InstanceId"]


COMMANDS = (
    ("status",),
    ("nodes",),
    ("reap",),
    ("reap", "--confirm"),
    ("adopt", "--dry-run"),
    ("reap",),
    ("doctor", "aws"),
    ("offers", "--accelerator", "L4"),
)


def test_observe_when_every_looking_command_and_the_dag_ran_then_the_journal_has_reads_only(
    sandbox, observed, hostler, monkeypatch
):
    began = sandbox_account.last(sandbox)
    for command in COMMANDS:
        status, _, wrong = hostler(*command)
        assert status in {0, 1}, (command, wrong)
    reconcile_as_the_dag_does(monkeypatch)
    calls = sandbox_account.wire(sandbox, began)
    assert len(calls) > 20
    assert [call for call in calls if not READS.match(call[1])] == []
    assert observed["orphan"] in [one.machine_id for one in sandbox.estate.machines.values() if one.state.value == "running"]


def reconcile_as_the_dag_does(monkeypatch):
    airflow_home.prepare()
    from tests.task_context import TaskContext

    from hostler.wiring.build import build_fleet, secret_of_environment
    from hostler.wiring.sdk_sessions import SdkSessions
    from hostler_operators.reconcile import ReconcileFleetOperator
    from hostler_sensors import fleet_access

    monkeypatch.setattr(fleet_access, "build", lambda: build_fleet(sessions=SdkSessions(), secret=secret_of_environment))
    monkeypatch.setattr(fleet_access, "_built", {})
    operator = ReconcileFleetOperator(task_id="reconcile")
    said = operator.execute(TaskContext(task_id="reconcile", dag_id="hostler_fleet_reconcile"))
    assert said["live_nodes"] == 1
    fleet_access.fleet().ledger.close()


def test_adopt_when_machines_run_then_each_has_its_cost_its_owner_and_what_would_be_done(observed, hostler):
    status, said, _ = hostler("adopt", "--dry-run", "--json")
    assert status == 0
    found = {item["provider_id"]: item for item in json.loads(said)["machines"]}
    orphan, person, scaled, stopped = (found[observed[name]] for name in ("orphan", "person", "scaled", "stopped"))
    assert (orphan["whose"], orphan["usd_per_month"]) == ("orphan", "587.50")
    assert orphan["policy"].startswith("nothing in mode observe; in mode enforce ended by reap after two looks")
    assert (person["whose"], person["owners"], person["usd_per_month"]) == ("foreign", ["Team=vision"], "40179.20")
    assert "without the tag of this deployment" in person["policy"]
    assert "claimed by karpenter.sh/nodepool" in scaled["policy"]
    assert (stopped["state"], stopped["usd_per_month"]) == ("stopped", "0")
    assert all(item["load"].startswith("unknown: ") and item["health"].startswith("unknown: ") for item in found.values())


def test_adopt_when_the_ledger_is_away_then_machines_are_shown_all_the_same_and_nothing_is_called_an_orphan(
    observed, hostler, monkeypatch
):
    monkeypatch.setenv("TEST_LEDGER_URL", "postgresql://nobody:hidden-word@127.0.0.1:9/none")
    status, said, wrong = hostler("adopt", "--dry-run", "--json")
    assert status == 1
    assert {item["whose"] for item in json.loads(said)["machines"]} == {"unclear", "foreign"}
    assert "hidden-word" not in said + wrong


def test_adopt_when_not_a_dry_run_then_refused_in_one_line(hostler):
    assert hostler("adopt") == (2, "", "hostler: adopt shows machines and takes none over: give --dry-run\n")


def test_doctor_when_ledger_and_store_are_asked_then_both_have_a_line_and_json_is_one_document(observed, hostler):
    status, said, _ = hostler("doctor", "aws", "--json")
    checks = {item["name"]: item for item in json.loads(said)["checks"]}
    assert status == 1, "no rule lets SSH in"
    assert checks["ledger"]["status"] == "ok"
    assert "mode observe writes nothing" in checks["store"]["text"]
    assert json.loads(said)["remarks"] == ["Airflow is not set up on this machine: its settings were not looked at"]


def test_doctor_when_the_cloud_is_not_in_fleet_yaml_then_one_line_names_those_that_are(hostler):
    assert hostler("doctor", "gcp") == (2, "", "hostler: cloud 'gcp': fleet.yaml has aws\n")


def test_doctor_when_the_mode_is_enforce_then_a_probe_goes_through_the_store_and_nothing_is_left(
    hostler, fleet_file, sandbox, monkeypatch
):
    from hostler.wiring.doctor_store import check_store
    from hostler.wiring.sdk_sessions import SdkSessions
    from hostler.wiring.settings import read_fleet_file

    aws.use_endpoint(monkeypatch, sandbox.aws_endpoint)
    document = yaml.safe_load(fleet_file.read_text())
    for uri in (document["backup"]["uri"], sandbox_account.BUCKET):
        fleet_file.write_text(yaml.safe_dump({**document, "backup": {"uri": uri}}))
        (check,) = check_store(read_fleet_file(), SdkSessions())
        assert (check.status, check.text) == ("ok", f"{uri}: a probe was written, read back and deleted")
    assert aws.owner("s3").list_objects_v2(Bucket="hostler-backups", Prefix="acme/").get("KeyCount") == 0
    fleet_file.write_text(yaml.safe_dump({**document, "backup": {"uri": "s3://no-such-bucket/x"}}))
    (check,) = check_store(read_fleet_file(), SdkSessions())
    assert check.status in {"fail", "unknown"}
