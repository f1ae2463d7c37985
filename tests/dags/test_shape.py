"""The lifecycle's shape: the only one of six that never leaked and never lied when it was run live."""

from copy import copy
from itertools import pairwise

import pytest
from airflow.sdk.exceptions import ParamValidationError

from hostler.model.request_schema import REQUEST_FIELDS

CHAIN = ["admit", "plan", "acquire", "launch", "setup", "validate", "run", "backup", "release", "receipt"]
TEARDOWNS = ["backup", "release", "receipt"]


@pytest.fixture
def lifecycle(bag):
    return bag.dags["hostler_node_lifecycle"]


def test_lifecycle_when_drawn_then_one_chain(lifecycle):
    assert sorted(lifecycle.task_ids) == sorted(CHAIN)
    for before, after in pairwise(CHAIN):
        assert after in lifecycle.get_task(before).downstream_task_ids


def test_lifecycle_when_it_fails_then_admit_is_the_setup_of_every_teardown(lifecycle):
    assert [task.task_id for task in lifecycle.tasks if task.is_teardown] == TEARDOWNS
    assert [task.task_id for task in lifecycle.tasks if task.is_setup] == ["admit"]
    for name in TEARDOWNS:
        assert "admit" in lifecycle.get_task(name).upstream_task_ids


def test_lifecycle_when_it_ends_then_only_the_receipt_decides(lifecycle):
    deciding = [task.task_id for task in lifecycle.tasks if task.is_teardown and task.on_failure_fail_dagrun]
    assert deciding == ["receipt"]


def test_lifecycle_when_it_waits_then_only_run_starts_from_its_trigger(lifecycle):
    assert [task.task_id for task in lifecycle.tasks if task.start_from_trigger] == ["run"]


def test_lifecycle_when_asked_then_its_params_are_the_requests_fields(lifecycle):
    assert list(lifecycle.params) == list(REQUEST_FIELDS)
    assert lifecycle.params.validate() == {name: field["default"] for name, field in REQUEST_FIELDS.items()}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("accelerator", "H1000"),
        ("nodes", 0),
        ("nodes", "2"),
        ("nodes", True),
        ("max_cost_usd", 0),
        ("max_price_usd_per_hour", -1),
        ("capacity_types", []),
        ("capacity_types", ["stolen"]),
        ("tenant", ""),
        ("keep_s", -1),
        ("code_uri", "http://example.invalid/x"),
        ("deadline", "tomorrow"),
    ],
)
def test_params_when_wrong_then_refused(lifecycle, name, value):
    param = copy(lifecycle.params.get_param(name))
    with pytest.raises(ParamValidationError):
        param.resolve(value)


def test_reconcile_when_deployed_then_it_runs_without_anybody(bag):
    reconcile = bag.dags["hostler_fleet_reconcile"]
    assert reconcile.is_paused_upon_creation is False
    assert reconcile.max_active_runs == 1
    assert reconcile.schedule == "*/5 * * * *"


def test_scheduled_run_when_deployed_then_it_spends_nothing_by_itself(bag):
    assert bag.dags["hostler_scheduled_run"].is_paused_upon_creation is True
    assert list(bag.dags["hostler_scheduled_run"].params) == list(REQUEST_FIELDS)


def test_scheduled_run_when_rendered_then_its_request_keeps_numbers_lists_and_nothing(bag):
    start = bag.dags["hostler_scheduled_run"].get_task("start")
    params = {name: field["default"] for name, field in REQUEST_FIELDS.items()}
    context = {"params": params, "run_id": "scheduled__2026-12-01T00:00:00+00:00"}
    env = bag.dags["hostler_scheduled_run"].get_template_env()
    assert start.render_template(start.conf, context, env) == params
    assert start.render_template(start.trigger_run_id, context, env).endswith(context["run_id"])


def test_price_refresh_when_deployed_then_daily_and_jumps_are_not_accepted_unseen(bag):
    dag = bag.dags["hostler_price_refresh"]
    assert dag.schedule == "17 4 * * *"
    assert dag.is_paused_upon_creation is False
    assert dag.params.validate() == {"accept_jumps": False}


@pytest.mark.parametrize(
    ("dag_id", "schedule"),
    [
        ("hostler_scale_down", "*/15 * * * *"),
        ("hostler_cost_sweep", "41 5 * * *"),
        ("hostler_log_rotation", "23 * * * *"),
    ],
)
def test_housekeeping_when_deployed_then_one_at_a_time_without_anybody(bag, dag_id, schedule):
    dag = bag.dags[dag_id]
    assert (dag.schedule, dag.max_active_runs, dag.is_paused_upon_creation) == (schedule, 1, False)
    assert len(dag.tasks) == 1
