"""The links: made from ids, without any call, also by Airflow's API server from a serialized Dag."""

import pytest
from airflow.models.taskinstancekey import TaskInstanceKey
from airflow.serialization.serialized_objects import DagSerialization
from tests.airflow_home import ROOT

from hostler.model.lease import lease_id_for
from hostler.model.request import RunRef
from hostler_operators.links import LINKS, task_page

KEY = TaskInstanceKey(
    dag_id="hostler_node_lifecycle", run_id="manual__2026-12-01T00:00:00+00:00", task_id="launch", try_number=1
)
LEASE = lease_id_for(RunRef(dag_id=KEY.dag_id, run_id=KEY.run_id))


@pytest.fixture(scope="module")
def bag():
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(dag_folder=str(ROOT / "dags"))


@pytest.fixture(scope="module")
def serialized(bag):
    dag = bag.dags["hostler_node_lifecycle"]
    return DagSerialization.from_dict(DagSerialization.to_dict(dag))


@pytest.mark.parametrize(
    ("task_id", "name", "part"),
    [
        ("admit", "Lease", "/tasks/receipt"),
        ("run", "Lease", "/tasks/receipt"),
        ("launch", "Nodes", LEASE),
        ("backup", "Backup", "/tasks/backup/xcom"),
        ("receipt", "Backup", "/tasks/backup/xcom"),
    ],
)
def test_links_when_asked_by_the_api_server_then_registered_and_made(serialized, task_id, name, part):
    task = serialized.get_task(task_id)
    assert name in task.extra_links
    link = task.operator_extra_link_dict[name].get_link(task, ti_key=KEY._replace(task_id=task_id))
    assert part in link


def test_task_page_when_the_run_id_has_odd_characters_then_quoted():
    page = task_page(KEY, "receipt")
    assert page.startswith("http://127.0.0.1:1/dags/hostler_node_lifecycle/runs/")
    assert page.endswith("/tasks/receipt")
    assert "+" not in page


def test_links_when_registered_then_every_name_is_unlike_the_others():
    assert sorted(link.name for link in LINKS) == ["Backup", "Checks", "Lease", "Nodes", "Price reports"]
    assert all(link.operators for link in LINKS)


@pytest.mark.parametrize(
    ("dag_id", "task_id", "name"),
    [
        ("hostler_price_refresh", "refresh", "Price reports"),
        ("hostler_scale_down", "scale_down", "Checks"),
        ("hostler_cost_sweep", "sweep", "Checks"),
    ],
)
def test_link_to_reports_when_asked_by_the_api_server_then_to_what_was_pushed(bag, dag_id, task_id, name):
    task = DagSerialization.from_dict(DagSerialization.to_dict(bag.dags[dag_id])).get_task(task_id)
    link = task.operator_extra_link_dict[name].get_link(task, ti_key=KEY._replace(task_id=task_id))
    assert link.endswith(f"/tasks/{task_id}/xcom")
