"""The demo is right only if everything is: each figure of its report that is wrong makes it fail, by name."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from tests import samples

from hostler.model.enums import JobState, NodeState
from hostler.model.lease import LeaseView
from hostler_sandbox.demo.report import faults_of, make_report

ASKED = {
    "seed",
    "refusals",
    "nodes_launched",
    "nodes_lost",
    "live_nodes",
    "accuracy",
    "weights_sha256",
    "resumed_steps",
    "backup_verified",
    "ledger_cost_usd",
    "journal_cost_usd",
}


@pytest.fixture
def view():
    lease = samples.lease()
    intents = tuple(samples.intent(lease, slot) for slot in (0, 1))
    ended_at = samples.AT + timedelta(hours=1)
    nodes = tuple(samples.node(one, NodeState.GONE, ended_at=ended_at) for one in intents)
    job = samples.job(lease, state=JobState.SUCCEEDED, metrics=(("accuracy", 0.97),), weights_sha256="ab" * 32)
    backup = samples.backup(lease, is_verified=True)
    receipt = samples.receipt(lease)
    return LeaseView(lease=lease, intents=intents, nodes=nodes, jobs=(job,), backups=(backup,), receipt=receipt)


@pytest.fixture
def figures(view):
    cost = sum(node.offering.price_usd_per_hour for node in view.nodes)
    return {"refusals": 4, "nodes_launched": 2, "nodes_lost": 0, "live_nodes": 0, "cost_usd": str(cost)}


def test_report_when_all_is_right_then_no_fault_and_every_figure_is_told(view, figures):
    report = make_report(7, figures, view, 3)
    assert faults_of(report, view) == []
    assert set(report) >= ASKED
    assert json.loads(json.dumps(report)) == report
    assert report["seed"] == 7
    assert report["refusals"] == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"live_nodes": 1}, "1 nodes are left in the cloud"),
        ({"nodes_launched": 1}, "only 1 nodes were launched"),
        ({"cost_usd": "41"}, "the cloud's journal 41.0"),
        ({"cost_usd": "0"}, "the cloud's journal 0.0"),
    ],
)
def test_report_when_the_clouds_journal_tells_otherwise_then_the_fault_is_named(view, figures, change, words):
    wrong = faults_of(make_report(7, {**figures, **change}, view, 3), view)
    assert len(wrong) == 1
    assert words in wrong[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metrics": (("accuracy", 0.949),)}, "accuracy 0.949 is below 0.95"),
        ({"metrics": ()}, "accuracy None"),
        ({"weights_sha256": None}, "no hash"),
        ({"state": JobState.FAILED}, "the job ended as failed"),
    ],
)
def test_report_when_the_job_is_not_good_then_the_fault_is_named(view, figures, change, words):
    changed = replace(view, jobs=(replace(view.jobs[0], **change),))
    assert words in "; ".join(faults_of(make_report(7, figures, changed, 3), changed))


def test_report_when_the_backup_was_not_restored_or_the_receipt_is_not_whole_then_it_is_a_fault(view, figures):
    assert faults_of(make_report(7, figures, view, 0), view) == ["the backup is not verified"]
    unsure = replace(view, receipt=replace(view.receipt, is_complete=False))
    assert faults_of(make_report(7, figures, unsure, 3), unsure) == ["the receipt is not complete"]
    bare = replace(view, jobs=(), backups=(), receipt=None)
    assert len(faults_of(make_report(7, figures, bare, 3), bare)) == 5
