"""Idle nodes as a task."""

from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException
from tests.task_context import TaskContext

from hostler.lifecycle.policies import GuardVerdict
from hostler.lifecycle.scale_down import ScaleFinding, ScaleReport
from hostler_operators import scale_down

FINDING = ScaleFinding(lease_id="abc", tenant="vision", action="ended", reason="idle", node_count=2)


@pytest.fixture
def outcome(world, monkeypatch):
    """What the run says; ``asked`` of it is what the run was asked."""
    held = {"report": ScaleReport(findings=(FINDING,), report_only=None, guard=GuardVerdict(report="/docs/index.html"))}

    async def stand_in(_fleet, **options):
        held["asked"] = options
        return held["report"]

    monkeypatch.setattr(scale_down, "scale_down", stand_in)
    monkeypatch.setattr(scale_down, "suite_guard_of", lambda _fleet: "guard")
    return held


def run(**params):
    context = TaskContext(task_id="scale_down", dag_id="hostler_scale_down", params=params)
    return scale_down.ScaleDownOperator(task_id="scale_down"), context


def test_scale_down_when_leases_end_then_counted_with_the_address_of_the_data_docs(outcome):
    operator, context = run()
    assert operator.execute(context) == {"ended": 1, "checks": "/docs/index.html"}
    assert outcome["asked"]["dry_run"] is False
    assert outcome["asked"]["guard"] == "guard"


def test_scale_down_when_dry_run_is_asked_then_passed_on(outcome):
    operator, context = run(dry_run=True)
    operator.execute(context)
    assert outcome["asked"]["dry_run"] is True


def test_scale_down_when_checks_fail_then_fails_for_good_and_the_data_docs_are_linked(outcome):
    outcome["report"] = ScaleReport(
        findings=(), report_only=None, guard=GuardVerdict(problems=("fresh: 3 rows",), report="/docs/index.html")
    )
    operator, context = run()
    with pytest.raises(AirflowFailException, match="nothing was ended: fresh: 3 rows"):
        operator.execute(context)
    assert context.pushed["checks"]["checks"] == "/docs/index.html"


def test_module_when_read_then_great_expectations_is_nowhere_at_its_top():
    root = Path(__file__).parents[2]
    for path in [*root.glob("operators/**/*.py"), *root.glob("include/hostler/**/*.py"), *root.glob("dags/*.py")]:
        tops = [line for line in path.read_text().splitlines() if line.startswith(("import ", "from "))]
        assert not any("great_expectations" in line for line in tops), path
