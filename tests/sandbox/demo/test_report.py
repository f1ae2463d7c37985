import json
from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest
from tests import samples

from hostler.model.enums import JobState, NodeState
from hostler.model.lease import LeaseView
from hostler_sandbox.demo.report import faults_of, make_report

ASKED = {
    *("seed", "refusals", "nodes_launched", "nodes_lost", "live_nodes", "accuracy", "weights_sha256", "resumed_steps"),
    *("backup_verified", "ledger_cost_usd", "journal_cost_usd"),
}

RIGHT = {
    "job_state": JobState.SUCCEEDED,
    "accuracy": 0.97,
    "weights_sha256": "a",
    "undisturbed_weights_sha256": "a",
    "nodes_lost": 1,
    "redone_steps": 12,
    "checkpoint_interval_steps": 60,
    "live_nodes": 0,
    "nodes_launched": 3,
    "backup_verified": True,
    "receipt_complete": True,
    "ledger_cost_usd": 1.0,
    "journal_cost_usd": 1.01,
}


def view() -> SimpleNamespace:
    node = SimpleNamespace(offering=SimpleNamespace(price_usd_per_hour=Decimal(20)))
    return SimpleNamespace(nodes=[node], lease=SimpleNamespace(request=SimpleNamespace(node_count=2)))


def test_report_when_all_is_right_then_no_fault():
    assert faults_of(RIGHT, view()) == []


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("job_state", JobState.FAILED, "failed"),
        ("accuracy", 0.94, "accuracy"),
        ("accuracy", None, "accuracy"),
        ("weights_sha256", "b", "undisturbed"),
        ("nodes_lost", 0, "no node was lost"),
        ("redone_steps", 61, "redone"),
        ("live_nodes", 1, "left in the cloud"),
        ("nodes_launched", 2, "not replaced"),
        ("backup_verified", False, "backup"),
        ("receipt_complete", False, "receipt"),
        ("ledger_cost_usd", 0.99, "journal"),
        ("ledger_cost_usd", 1.2, "journal"),
    ],
)
def test_report_when_one_thing_is_wrong_then_it_is_named(field, value, words):
    faults = faults_of({**RIGHT, field: value}, view())
    assert len(faults) == 1
    assert words in faults[0]


def test_report_when_made_then_it_has_every_figure_from_journal_and_ledger_and_is_json():
    lease = samples.lease()
    nodes = tuple(
        samples.node(samples.intent(lease, slot), NodeState.GONE, ended_at=samples.AT + timedelta(hours=1)) for slot in (0, 1)
    )
    job = samples.job(lease, state=JobState.SUCCEEDED, metrics=(("accuracy", 0.97),), weights_sha256="ab" * 32)
    view = LeaseView(lease=lease, nodes=nodes, jobs=(job,), backups=(samples.backup(lease, is_verified=True),))
    figures = {"refusals": 4, "nodes_launched": 2, "nodes_lost": 0, "live_nodes": 0, "cost_usd": "20.001"}
    report = make_report(7, figures, view, restored_objects=3, undisturbed_sha256="ab" * 32)
    assert json.loads(json.dumps(report)) == report
    assert set(report) >= ASKED | set(RIGHT)
    told = (
        report["seed"],
        report["refusals"],
        report["ledger_cost_usd"],
        report["journal_cost_usd"],
        report["backup_verified"],
    )
    assert told == (7, 4, 20.0, 20.001, True)
    unsure = make_report(7, figures, view, restored_objects=0, undisturbed_sha256="")
    assert not unsure["backup_verified"]
