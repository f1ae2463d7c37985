"""Who acted in Airflow: what the middleware and the listener make of requests, and that they are in nobody's way."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from hostler.ledger.errors import LedgerUnavailableError
from hostler.lifecycle.admit import admit
from hostler.model.request import RunRef
from hostler_operators import actors, event_writer
from hostler_operators.actors import ActorListener, ActorMiddleware
from hostler_operators.event_writer import Act, write

DAG = "hostler_node_lifecycle"
BASE = f"/api/v2/dags/{DAG}"


@pytest.fixture
def acts(monkeypatch):
    found = []
    monkeypatch.setattr(actors, "write_later", found.append)
    return found


@pytest.fixture
def user(monkeypatch):
    async def known(scope):
        return "ada"

    monkeypatch.setattr(actors, "_user_of", known)


async def send(method, path, body=b"{}", status=200, inner=None):
    """Sends one request through the middleware to an app that answers ``status``; returns what the client sees."""
    sent = []

    async def app(scope, receive, answer):
        while (await receive()).get("more_body"):
            pass
        if inner:
            await asyncio.to_thread(inner)
        await answer({"type": "http.response.start", "status": status})
        await answer({"type": "http.response.body", "body": b"ok"})

    async def receive():
        return {"type": "http.request", "body": body}

    async def collect(message):
        sent.append(message)

    await ActorMiddleware(app)({"type": "http", "method": method, "path": path, "headers": []}, receive, collect)
    return sent


@pytest.mark.parametrize(
    ("request_line", "body", "told"),
    [
        (f"POST {BASE}/clearTaskInstances", {"dry_run": False, "dag_run_id": "r1"}, ("airflow.task.cleared", "r1")),
        (f"POST {BASE}/dagRuns/r1/clear", {"dry_run": False}, ("airflow.run.cleared", "r1")),
        (f"DELETE {BASE}/dagRuns/r1", {}, ("airflow.run.deleted", "r1")),
        (f"PATCH {BASE}", {"is_paused": True}, ("airflow.dag.paused", None)),
        (f"PATCH {BASE}", {"is_paused": False}, ("airflow.dag.unpaused", None)),
    ],
)
async def test_middleware_when_a_write_went_well_then_told_with_the_user(acts, user, request_line, body, told):
    sent = await send(*request_line.split(), json.dumps(body).encode())
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert [(act.who, act.what, act.run_id) for act in acts] == [("airflow/ada", *told)]


@pytest.mark.parametrize(
    ("request_line", "body", "status"),
    [
        (f"POST {BASE}/clearTaskInstances", {"dry_run": False, "dag_run_id": "r1"}, 403),
        (f"POST {BASE}/clearTaskInstances", {"dry_run": True, "dag_run_id": "r1"}, 200),
        (f"GET {BASE}/dagRuns/r1", {}, 200),
        (f"POST {BASE}/dagRuns", {"dag_run_id": "r1", "conf": {}}, 200),
        ("POST /api/v2/pools", {"name": "x"}, 200),
        (f"PATCH {BASE}", {"is_paused": "yes"}, 200),
        (f"PATCH {BASE}", [1], 200),
    ],
)
async def test_middleware_when_nothing_was_done_then_nothing_is_told(acts, user, request_line, body, status):
    await send(*request_line.split(), json.dumps(body).encode(), status)
    assert acts == []


async def test_middleware_when_the_body_is_no_json_then_the_request_passes(acts, user):
    assert (await send("PATCH", BASE, b"\xff\xfe"))[0]["status"] == 200
    assert acts == []


async def test_listener_when_a_run_is_marked_within_a_request_then_knows_the_user(acts, user):
    run = SimpleNamespace(dag_id=DAG, run_id="r1")

    def mark():
        ActorListener().on_dag_run_failed(run, "Dag Run's state was manually set to `failed`.")

    await send("PATCH", f"{BASE}/dagRuns/r1", b'{"state": "failed"}', inner=mark)
    assert [(act.who, act.what) for act in acts] == [("airflow/ada", "airflow.run.marked")]


def test_listener_when_a_run_ends_by_itself_then_silent(acts):
    run = SimpleNamespace(dag_id=DAG, run_id="r1")
    task = SimpleNamespace(dag_id=DAG, run_id="r1", task_id="run")
    listener = ActorListener()
    listener.on_dag_run_failed(run, "task_failure")
    listener.on_dag_run_success(run, "success")
    listener.on_task_instance_failed(task, RuntimeError("boom"))
    listener.on_task_instance_success("running", task)
    assert acts == []


def test_write_when_the_run_has_a_lease_then_an_event_of_it(world):
    lease = admit(world.fleet, RunRef(dag_id=DAG, run_id="r1"), {}, who="test")
    act = Act(who="airflow/ada", what="airflow.run.marked", why="failed", dag_id=DAG, run_id="r1")
    assert write(world.ledger, act)
    assert world.ledger.list_events(lease.lease_id)[-1].who == "airflow/ada"


def test_write_when_the_run_is_no_run_of_ours_then_no_event(world):
    assert not write(world.ledger, Act(who="a", what="b", why="c", dag_id="other", run_id="r1"))
    assert not write(world.ledger, Act(who="a", what="b", why="c", dag_id="other", run_id=None))
    assert world.ledger.list_events(None) == ()


def test_write_later_when_the_ledger_is_away_then_neither_raises_nor_waits(monkeypatch):
    tried = []

    def away():
        tried.append(1)
        raise LedgerUnavailableError("away")

    monkeypatch.setattr(event_writer, "_ledger", away)
    for _ in range(event_writer.MAX_WAITING + 10):
        event_writer.write_later(Act(who="a", what="b", why="c", dag_id=DAG, run_id="r1"))
    event_writer._acts.join()
    assert tried
