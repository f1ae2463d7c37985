from decimal import Decimal
from types import SimpleNamespace

import pytest

from hostler.model.enums import JobState
from hostler_sandbox.demo.report import faults_of

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
