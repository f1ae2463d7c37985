"""Runs that live their whole life on a live Airflow, however they are started and whatever happens to them in between."""

import pytest
from tests.live.theatre import LIFECYCLE, whats

from hostler.model.enums import JobState, LeaseState

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("live"), pytest.mark.sandbox, pytest.mark.timeout(1500)]

TEARDOWNS = ("backup", "release", "receipt")
ALL_WELL = dict.fromkeys(
    ("admit", "plan", "acquire", "launch", "setup", "validate", "run", "backup", "release", "receipt"), "success"
)


def is_let_go(seen):
    """Nothing lives, the ledger knows it, and the teardowns did run."""
    return seen["live"] == [] and seen["view"].lease.state is LeaseState.RELEASED


def test_run_when_posted_with_a_token_then_lives_to_its_receipt(played):
    seen = played("whole_life")
    assert seen["state"] == "success"
    assert seen["tasks"] == ALL_WELL
    assert is_let_go(seen)
    assert seen["view"].receipt.is_complete
    assert seen["view"].backups[-1].is_verified


def test_run_when_deferred_then_a_real_triggerer_holds_it(played):
    task = played("whole_life")["deferred"]
    assert task["state"] == "deferred"
    assert task["trigger"]["classpath"] == "hostler_sensors.triggers.run.RunTrigger"
    assert task["triggerer_job"]["id"] > 0
    assert task["triggerer_job"]["job_type"] == "TriggererJob"


def test_run_when_posted_again_with_its_id_then_409_and_nothing_is_bought_twice(played):
    seen = played("whole_life")
    assert seen["repeated"] == [409, 409]
    assert len(seen["machines"]) == 1


def test_run_when_deleted_in_mid_run_then_409_and_it_goes_on(played):
    seen = played("whole_life")
    assert seen["deleted"] == 409
    assert seen["state"] == "success"


def test_run_when_cleared_after_its_end_then_fails_with_words_and_buys_nothing(played):
    cleared = played("whole_life")["cleared"]
    assert cleared["state"] == "failed"
    assert cleared["bought"] == 0
    assert cleared["live"] == []
    assert "Trigger a new run" in cleared["log"]


@pytest.mark.parametrize("name", ["run_marked_failed", "task_marked_failed", "run_marked_success"])
def test_run_when_marked_in_mid_run_then_stopped_backed_up_let_go_and_failed(played, name):
    seen = played(name)
    assert seen["state"] == "failed", "a run that did not do its work is never green, not even when marked so"
    assert seen["tasks"]["backup"] == seen["tasks"]["release"] == "success"
    assert seen["tasks"]["receipt"] == "failed"
    assert is_let_go(seen)
    assert seen["view"].jobs[-1].state is JobState.STOPPED
    assert seen["view"].backups[-1].is_verified


def test_run_task_when_cleared_in_mid_run_then_reattached_and_never_started_twice(played):
    seen = played("cleared_and_paused")
    assert {"admit", "run", *TEARDOWNS} <= set(seen["cleared"])
    assert seen["state"] == "success"
    assert len(seen["view"].jobs) == 1, "the old try's end must not touch the job of the new one"
    assert len(seen["machines"]) == 1
    assert is_let_go(seen)


def test_run_when_its_dag_is_paused_and_unpaused_then_goes_on_to_success(played):
    seen = played("cleared_and_paused")
    assert seen["while_paused"] is None
    assert seen["state"] == "success"


def test_launch_when_no_zone_has_stock_then_waits_without_a_worker_and_can_be_ended(played):
    seen = played("launch_marked_failed")
    assert seen["deferred"]["trigger"]["classpath"] == "hostler_sensors.triggers.converge.ConvergeTrigger"
    assert seen["deferred"]["triggerer_job"]["id"] > 0
    assert seen["wait"]
    assert seen["state"] == "failed"
    assert is_let_go(seen)
    assert seen["tasks"]["run"] in {"skipped", "upstream_failed"}


def test_run_when_its_node_is_taken_then_replaced_and_the_job_goes_on(played):
    seen = played("node_taken")
    assert seen["state"] == "success"
    assert len(seen["machines"]) == 2
    assert len(seen["view"].jobs) == 2
    assert is_let_go(seen)


def test_run_when_its_lease_is_released_by_the_dag_for_it_then_let_go_and_failed(played):
    seen = played("released_by_dag")
    assert seen["release"] == "success"
    assert seen["state"] == "failed"
    assert seen["view"].lease.release_reason == "needed elsewhere"
    assert is_let_go(seen)


def test_schedule_when_its_tick_comes_then_a_run_starts_by_itself_with_the_params_as_request(played):
    seen = played("scheduled")
    assert (seen["request"].accelerator, seen["request"].node_count) == ("H100", 2)
    assert "lease.admitted" in whats(seen["events"])
    assert is_let_go(seen)


def test_form_when_read_and_filled_in_then_every_field_has_its_schema_and_all_of_them_are_taken(played):
    seen = played("whole_life")
    assert seen["params"]["accelerator"]["schema"]["enum"]
    assert all(param["description"] for param in seen["params"].values())
    assert seen["state"] == "success"


def test_cloud_when_all_is_played_then_nothing_lives(played, stage):
    for name in played.names:
        played(name)
    assert [machine for machine in stage.look("machines")["machines"] if machine["is_live"]] == []
    assert stage.client().get(f"/dags/{LIFECYCLE}")["is_paused"] is False
