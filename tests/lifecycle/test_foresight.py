from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fake_world import make_world

from hostler.lifecycle.admit import admit
from hostler.lifecycle.foresight import AT_RISK, forecast, usual_start_s, warn_of_deadlines
from hostler.lifecycle.release import begin_release
from hostler.model.enums import JobState
from hostler.model.lease import Event, Job
from hostler.model.request import RunRef

CONF = {"recipe": "script", "script": "true", "nodes": 1}


@pytest.fixture
def world():
    return make_world()


def admitted(world, *, deadline_in_s=None, run_id="r1"):
    at = None if deadline_in_s is None else (world.fleet.ledger.now() + timedelta(seconds=deadline_in_s)).isoformat()
    return admit(world.fleet, RunRef(dag_id="d", run_id=run_id), {**CONF, "deadline": at}, who="x")


def job(world, **changes):
    begun = world.fleet.ledger.now()
    fields = {"job_id": "j", "lease_id": "l", "attempt": 1, "attempt_token": "t", "node_names": ("n",), "started_at": begun}
    return Job(**fields, **{"state": JobState.RUNNING, **changes})


def with_job(world, lease, **changes):
    return replace(world.fleet.ledger.view(lease.lease_id), jobs=(job(world, **changes),))


def test_forecast_when_the_pace_is_known_then_the_rest_takes_as_long_a_step(world):
    view = with_job(world, admitted(world), step=200, resumed_from_step=100, metrics=(("steps_total", 500.0),))
    now = world.fleet.ledger.now() + timedelta(seconds=50)
    seen = forecast(view, now, usual_start_s=100)
    assert seen.ends_at == now + timedelta(seconds=150)
    assert "step 200 of 500" in seen.why


@pytest.mark.parametrize(
    "changes",
    [
        {"step": 200},
        {"step": 105, "resumed_from_step": 100, "metrics": (("steps_total", 500.0),)},
        {"step": 500, "metrics": (("steps_total", 500.0),)},
        {"step": 90, "metrics": (("steps_total", 500.0),), "state": JobState.SUCCEEDED},
    ],
)
def test_forecast_when_the_record_does_not_speak_for_one_then_none(world, changes):
    assert forecast(with_job(world, admitted(world), **changes), world.fleet.ledger.now(), usual_start_s=100) is None


def test_forecast_when_no_job_runs_yet_then_not_before_one_can_have_started(world):
    now = world.fleet.ledger.now()
    view = world.fleet.ledger.view(admitted(world).lease_id)
    assert forecast(view, now, usual_start_s=100).ends_at == now + timedelta(seconds=100)


def test_warning_when_the_deadline_cannot_be_met_then_written_once_with_its_evidence(world):
    lease = admitted(world, deadline_in_s=60)
    assert [warn_of_deadlines(world.fleet.ledger, who="reconcile") for _ in range(2)] == [1, 0]
    told = [event for event in world.fleet.ledger.list_events(lease.lease_id) if event.what == AT_RISK]
    assert len(told) == 1
    assert "120 s after its deadline" in told[0].why
    assert {name for name, _ in told[0].evidence} == {"ends_at", "deadline_at"}


def test_warning_when_there_is_time_or_no_deadline_or_it_is_over_then_none(world):
    admitted(world, deadline_in_s=3600)
    admitted(world, run_id="r2")
    let_go = admitted(world, deadline_in_s=60, run_id="r3")
    begin_release(world.fleet, let_go.lease_id, who="x", reason="over")
    assert warn_of_deadlines(world.fleet.ledger, who="reconcile") == 0


def test_usual_start_when_leases_have_started_jobs_then_their_median(world):
    at = world.fleet.ledger.now()

    def pair(lease, seconds):
        begun = Event(lease_id=lease, who="x", what="lease.granted", why="", at=at)
        return [begun, replace(begun, what="job.running", at=at + timedelta(seconds=seconds))]

    events = [event for lease, seconds in (("a", 50), ("b", 70), ("c", 900)) for event in pair(lease, seconds)]
    assert usual_start_s(events) == 70
    assert usual_start_s(events[:2]) == 180, "one start says nothing"
