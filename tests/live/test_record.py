"""What is left in the record: who acted, and no secret anywhere."""

import json
from pathlib import Path

import pytest
from tests.live.theatre import LIFECYCLE, SECRET, Theatre

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("live"), pytest.mark.sandbox, pytest.mark.timeout(1500)]


@pytest.mark.parametrize(
    ("name", "what", "who"),
    [
        ("whole_life", "lease.admitted", "airflow/ops"),
        ("run_marked_failed", "airflow.run.marked", "airflow/ops"),
        ("run_marked_success", "airflow.run.marked", "airflow/admin"),
        ("task_marked_failed", "airflow.task.marked", "airflow/ops"),
        ("cleared_and_paused", "airflow.task.cleared", "airflow/ops"),
        ("released_by_dag", "lease.draining", "airflow/ops"),
    ],
)
def test_events_when_a_person_acts_in_airflow_then_they_say_who(played, name, what, who):
    assert (what, who) in {(event.what, event.who) for event in played(name)["events"]}


def test_events_when_the_dag_is_paused_then_they_say_who(played, stage):
    played("cleared_and_paused")
    found = {(event.what, event.who) for event in Theatre(stage).ledger.list_events(None, limit=100_000)}
    assert {("airflow.dag.paused", "airflow/ops"), ("airflow.dag.unpaused", "airflow/ops")} <= found


def test_events_when_the_step_itself_drives_then_its_try_is_named(played):
    holders = {event.who for event in played("whole_life")["events"] if event.what == "fence.taken"}
    assert f"{LIFECYCLE}/live-whole/launch/1" in holders
    assert f"{LIFECYCLE}/live-whole/run/1/triggerer" in holders


def test_events_when_a_run_lasts_longer_than_expected_then_they_say_so(played):
    assert ("run.late", "airflow/deadline") in {(event.what, event.who) for event in played("whole_life")["events"]}


def test_secret_when_a_job_was_given_one_then_it_is_nowhere_else(played, stage):
    assert played("whole_life")["state"] == "success", "the script checks that it has the secret"
    theatre = Theatre(stage)
    client = theatre.client()
    shown = [json.dumps([str(event) for event in theatre.ledger.list_events(None, limit=100_000)])]
    shown += [str(theatre.view("live-whole"))]
    shown += [json.dumps(client.xcoms(LIFECYCLE, "live-whole", task)) for task in client.tasks(LIFECYCLE, "live-whole")]
    assert all(SECRET not in text for text in shown)
    logs = [path for path in stage.folder.rglob("*.log") if path.is_file()]
    assert len(logs) > 20
    assert [path for path in logs if SECRET.encode() in path.read_bytes()] == []


def test_secret_when_processes_are_listed_then_it_is_on_no_command_line(played):
    played("whole_life")
    shown = []
    for entry in Path("/proc").iterdir():
        try:
            shown.append((entry / "cmdline").read_bytes() if entry.name.isdigit() else b"")
        except OSError:
            continue
    assert all(SECRET.encode() not in line for line in shown)


def test_xcom_when_a_run_is_over_then_ids_and_a_few_numbers_only(played):
    xcoms = played("whole_life")["xcoms"]
    assert xcoms["receipt"]["return_value"]["nodes_launched"] == 1
    assert max(len(json.dumps(values)) for values in xcoms.values()) < 500


def test_links_when_a_run_is_over_then_they_lead_to_lease_nodes_and_backup(played):
    seen = played("whole_life")
    assert "/tasks/receipt" in seen["links"]["admit"]["Lease"]
    assert seen["view"].lease.lease_id in seen["links"]["launch"]["Nodes"]
    assert "/tasks/backup/xcom" in seen["links"]["backup"]["Backup"]


def test_reconcile_when_deployed_then_it_has_run_by_itself_and_well(played, stage):
    for name in played.names:
        played(name)
    runs = stage.client().get("/dags/hostler_fleet_reconcile/dagRuns", limit=100)["dag_runs"]
    assert len([run for run in runs if run["state"] == "success"]) >= 1
    assert [run for run in runs if run["state"] == "failed"] == []
