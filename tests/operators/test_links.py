"""The links: made from ids, without any call."""

import pytest
from airflow.models.taskinstancekey import TaskInstanceKey

from hostler.model.lease import lease_id_for
from hostler.model.request import RunRef
from hostler_operators.links import LINKS, NodesLink, backup_page, task_page

KEY = TaskInstanceKey(
    dag_id="hostler_node_lifecycle", run_id="manual__2026-12-01T00:00:00+00:00", task_id="launch", try_number=1
)


def test_nodes_link_when_made_then_holds_the_leases_tag():
    lease_id = lease_id_for(RunRef(dag_id=KEY.dag_id, run_id=KEY.run_id))
    assert lease_id in NodesLink().get_link(None, ti_key=KEY)


def test_task_page_when_the_run_id_has_odd_characters_then_quoted():
    page = task_page(KEY, "receipt")
    assert page.startswith("http://127.0.0.1:1/dags/hostler_node_lifecycle/runs/")
    assert page.endswith("/tasks/receipt")
    assert "+" not in page


@pytest.mark.parametrize(
    ("uri", "page"),
    [
        (None, ""),
        ("file:///backups/x/manifest.json", "file:///backups/x/manifest.json"),
        ("s3://bucket/a/m.json", "https://s3.console.aws.amazon.com/s3/object/bucket?prefix=a/m.json"),
    ],
)
def test_backup_page_when_asked_then_an_address_one_can_open(uri, page):
    assert backup_page(uri) == page


def test_links_when_registered_then_every_name_is_unlike_the_others():
    assert sorted(link.name for link in LINKS) == ["Backup", "Lease", "Nodes"]
    assert all(link.operators for link in LINKS)
