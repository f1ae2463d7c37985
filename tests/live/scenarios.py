"""What is played on the stage, all at once. Each returns what it saw; the tests judge it."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.live.theatre import EVERY_S, LIFECYCLE, PATIENCE_S, SECRET_NAME, Theatre, hold, script

from hostler_sandbox.airflow_client import AirflowApiError, wait_until

LONG: Final = "sleep 600"


def whole_life(theatre: Theatre) -> dict[str, Any]:
    """A run to its end, started as the UI's form does it: the Params are read, filled in, and all of them posted.

    By somebody who may only operate; with a secret; posted again with the same id; deleted in mid-run; cleared after its end.
    """
    run_id = "live-whole"
    client = theatre.client("ops")
    params = client.get(f"/dags/{LIFECYCLE}/details")["params"]
    wanted = script('test -n "$LIVE_TEST_TOKEN" && sleep 20', secrets=[SECRET_NAME])
    filled = {name: param["value"] for name, param in params.items()} | wanted
    theatre.start(filled, run_id, user="ops")
    repeated = status_of(lambda: theatre.start(filled, run_id))
    theatre.wait_for_job(run_id)
    task = theatre.wait_for_triggerer(run_id, "run")
    deleted = status_of(lambda: theatre.client().call("DELETE", f"/dags/{LIFECYCLE}/dagRuns/{run_id}"))
    seen = theatre.end(run_id)
    shown = {name: client.get(f"/dags/{LIFECYCLE}/dagRuns/{run_id}/taskInstances/{name}/links") for name in seen["tasks"]}
    return {
        **seen,
        "params": params,
        "deferred": task,
        "repeated": [repeated, status_of(lambda: theatre.start(filled, run_id))],
        "deleted": deleted,
        "machines": theatre.machines(run_id),
        "links": {name: answer["extra_links"] for name, answer in shown.items()},
        "xcoms": {name: client.xcoms(LIFECYCLE, run_id, name) for name in seen["tasks"]},
        "cleared": _clear_after_the_end(theatre, run_id),
    }


def _clear_after_the_end(theatre: Theatre, run_id: str) -> dict[str, Any]:
    """The whole run is cleared: its lease is over."""
    before = len(theatre.machines(run_id))
    theatre.client().clear(LIFECYCLE, run_id)
    client = theatre.client()
    wait_until(lambda: client.run(LIFECYCLE, run_id)["state"] != "success", "the clear", PATIENCE_S, EVERY_S)
    seen = theatre.end(run_id)
    return {**seen, "bought": len(theatre.machines(run_id)) - before, "log": theatre.log(run_id, "plan")}


def run_marked_failed(theatre: Theatre) -> dict[str, Any]:
    run_id = "live-run-failed"
    theatre.start(script(LONG), run_id)
    theatre.wait_for_job(run_id)
    theatre.client("ops").mark_run(LIFECYCLE, run_id, "failed")
    return theatre.end(run_id)


def task_marked_failed(theatre: Theatre) -> dict[str, Any]:
    run_id = "live-task-failed"
    theatre.start(script(LONG), run_id)
    theatre.wait_for_job(run_id)
    theatre.client("ops").mark_task(LIFECYCLE, run_id, "run", "failed")
    return theatre.end(run_id)


def run_marked_success(theatre: Theatre) -> dict[str, Any]:
    run_id = "live-run-success"
    theatre.start(script(LONG), run_id)
    theatre.wait_for_job(run_id)
    theatre.client().mark_run(LIFECYCLE, run_id, "success")
    return theatre.end(run_id)


def cleared_and_paused(theatre: Theatre) -> dict[str, Any]:
    """`run` is cleared while the job works; then the Dag is paused until the job is done, and a while longer.

    Paused, nothing of the Dag goes on, and nothing of it is lost. It holds up the other scenarios, too.
    """
    run_id = "live-cleared"
    client = theatre.client("ops")
    theatre.start(script("sleep 60"), run_id)
    theatre.wait_for_job(run_id)
    cleared = client.clear(LIFECYCLE, run_id, "run")
    theatre.wait_for_driver(run_id, "run/2/triggerer")
    client.set_paused(LIFECYCLE, paused=True)
    try:
        theatre.wait_for_event(run_id, "job.succeeded")
        hold(8, lambda: client.run(LIFECYCLE, run_id)["state"] == "running", "a paused Dag's run does not end")
        while_paused = client.tasks(LIFECYCLE, run_id)["backup"]["state"]
    finally:
        client.set_paused(LIFECYCLE, paused=False)
    return {
        **theatre.end(run_id),
        "cleared": cleared,
        "machines": theatre.machines(run_id),
        "while_paused": while_paused,
    }


def launch_marked_failed(theatre: Theatre) -> dict[str, Any]:
    """No zone has stock: launch waits in the triggerer, and the run is ended there."""
    run_id = "live-no-stock"
    for zone in "abc":
        pool = {"zone": f"us-east-1{zone}", "instance_type": "g6e.xlarge", "capacity_type": "on-demand"}
        theatre.stage.control("stock", **pool, count=0)
    theatre.start(script(LONG, accelerator="L40S"), run_id)
    theatre.wait_for_event(run_id, "lease.waiting")
    deferred = theatre.wait_for_triggerer(run_id, "launch")
    wait = theatre.view(run_id).lease.wait_reason
    theatre.client().mark_run(LIFECYCLE, run_id, "failed")
    return {**theatre.end(run_id), "deferred": deferred, "wait": wait}


def node_taken(theatre: Theatre) -> dict[str, Any]:
    """The cloud takes the node in mid-run."""
    run_id = "live-node-taken"
    theatre.start(script("sleep 20", accelerator="T4"), run_id)
    theatre.wait_for_job(run_id)
    theatre.stage.control("reclaim", machine_id=theatre.live(run_id)[0])
    return {**theatre.end(run_id), "machines": theatre.machines(run_id)}


def released_by_dag(theatre: Theatre) -> dict[str, Any]:
    """Somebody releases the lease of a running run by its run id, with the Dag made for it."""
    run_id = "live-released"
    theatre.start(script(LONG), run_id)
    theatre.wait_for_job(run_id)
    conf = {"dag_run_id": run_id, "reason": "needed elsewhere"}
    release = theatre.client("ops").trigger("hostler_node_release", conf)
    state = theatre.client().wait_for_run("hostler_node_release", release, PATIENCE_S)
    return {**theatre.end(run_id), "release": state}


def scheduled(theatre: Theatre) -> dict[str, Any]:
    """The schedule starts a run by itself; its request is the Params of the scheduled Dag."""
    client = theatre.client()
    client.set_paused("hostler_scheduled_run", paused=False)
    try:

        def started() -> str | None:
            runs = client.get(f"/dags/{LIFECYCLE}/dagRuns", limit=100)["dag_runs"]
            return next((run["dag_run_id"] for run in runs if run["dag_run_id"].startswith("hostler_scheduled_run__")), None)

        run_id = wait_until(started, "a scheduled run", PATIENCE_S, EVERY_S)
    finally:
        client.set_paused("hostler_scheduled_run", paused=True)
    theatre.wait_for_event(run_id, "lease.planned")  # admit has ended: its teardowns are sure to run
    request = theatre.view(run_id).lease.request
    # Its defaults are a training run on sixteen GPUs; the whole life is played elsewhere.
    client.mark_run(LIFECYCLE, run_id, "failed")
    return {**theatre.end(run_id), "request": request, "run_type": client.run(LIFECYCLE, run_id)["run_type"]}


def refused(theatre: Theatre) -> dict[str, Any]:
    """What no schema can see is refused by admit."""
    wrong: Mapping[str, dict[str, Any]] = {
        "surprise": {"surprise": 1},
        "deadline": {"deadline": "2020-01-01T00:00:00+00:00"},
        "recipe": {"recipe": "no-such-recipe", "script": None},
        "regions": {"regions": ["mars-north-1"]},
        "secrets": {"secrets": ["no-such-secret"]},
    }
    run_ids = {field: theatre.start(script("true", **conf), f"live-refused-{field}") for field, conf in wrong.items()}
    seen = {}
    for field, run_id in run_ids.items():
        state = theatre.client().wait_for_run(LIFECYCLE, run_id, PATIENCE_S)
        tasks = {name: task["state"] for name, task in theatre.client().tasks(LIFECYCLE, run_id).items()}
        seen[field] = {
            "state": state,
            "tasks": tasks,
            "log": theatre.log(run_id, "admit"),
            "events": theatre.events(run_id),
            "machines": theatre.machines(run_id),
        }
    return seen


def status_of(call: Callable[[], Any]) -> int:
    """Returns the HTTP status that a call is refused with; 200 when it is not."""
    try:
        call()
    except AirflowApiError as error:
        return error.status
    return 200


SCENARIOS: Final[Mapping[str, Callable[[Theatre], dict[str, Any]]]] = {
    scenario.__name__: scenario
    for scenario in (
        whole_life,
        run_marked_failed,
        task_marked_failed,
        run_marked_success,
        cleared_and_paused,
        launch_marked_failed,
        node_taken,
        released_by_dag,
        scheduled,
        refused,
    )
}

CORE: Final = ("whole_life", "run_marked_failed", "cleared_and_paused", "scheduled", "refused")
"""Those that every test run plays: the three ways in, and each kind of interference by a person. The others cost as much again."""
