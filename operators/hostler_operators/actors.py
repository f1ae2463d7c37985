"""Who acted in Airflow: puts marks, clears, pauses and deletions by people into the ledger's event log.

A listener hears of marks, but not who made them, and of clears not at all; so a small middleware of the API server notes the
user of each write, for the listener, and tells of the rest itself. Who started a run is told by ``admit``. Nothing here can
fail or hold up a request or a task.
"""

import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from typing import Any, Final

import structlog
from airflow.listeners import hookimpl

from hostler_operators.event_writer import Act, write_later

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]

log = structlog.get_logger(__name__)

_MANUAL: Final = "manually set"
_MAX_BODY_BYTES: Final = 64 * 1024
_DAG: Final = re.compile(r"^/api/v2/dags/(?P<dag>[^/]+)(?P<rest>/.*)?$")
_RUN: Final = re.compile(r"^/dagRuns/(?P<run>[^/]+)(?P<rest>/.*)?$")

_user: ContextVar[str] = ContextVar("hostler_user", default="")


class ActorListener:
    """Hears of runs and tasks that a person marked; those that end by themselves are told by the lifecycle's own events."""

    @hookimpl
    def on_dag_run_failed(self, dag_run: Any, msg: str) -> None:
        """A run ended failed; by hand or by itself."""
        self._run_marked(dag_run, msg, "failed")

    @hookimpl
    def on_dag_run_success(self, dag_run: Any, msg: str) -> None:
        """A run ended in success; by hand or by itself."""
        self._run_marked(dag_run, msg, "success")

    @hookimpl
    def on_task_instance_failed(self, task_instance: Any, error: Any) -> None:
        """A task ended failed; by hand or by itself."""
        if _MANUAL in str(error):
            self._task_marked(task_instance, "failed")

    @hookimpl
    def on_task_instance_success(self, previous_state: Any, task_instance: Any) -> None:
        """A task ended in success; in the API server only by hand, which alone knows a user."""
        if previous_state is None and _user.get():
            self._task_marked(task_instance, "success")

    def _run_marked(self, dag_run: Any, message: str, state: str) -> None:
        if _MANUAL in (message or ""):
            write_later(_act("run.marked", dag_run.dag_id, dag_run.run_id, f"the run was marked {state}"))

    def _task_marked(self, instance: Any, state: str) -> None:
        why = f"task {instance.task_id} was marked {state}"
        write_later(_act("task.marked", instance.dag_id, instance.run_id, why))


class ActorMiddleware:
    """Notes who sends each write to a Dag, and tells of clears, pauses and deletions that went well. Plain ASGI."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on, unchanged."""
        match = _DAG.match(scope.get("path", "")) if scope["type"] == "http" else None
        if match is None or scope["method"] not in {"POST", "PATCH", "DELETE"}:
            await self._app(scope, receive, send)
            return
        body = bytearray()
        status = 0

        async def watched_receive() -> Scope:
            message = await receive()
            if len(body) < _MAX_BODY_BYTES:
                body.extend(message.get("body", b""))
            return message

        async def watched_send(message: Scope) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        user = await _user_of(scope)
        token = _user.set(user)
        try:
            await self._app(scope, watched_receive, watched_send)
            if 200 <= status < 300 and (act := told(scope["method"], match, bytes(body))):  # noqa: PLR2004 - HTTP "done"
                write_later(act)
        finally:
            _user.reset(token)


def told(method: str, match: "re.Match[str]", body: bytes) -> Act | None:
    """Returns what a request that went well did, for those that no listener hears of; None for all others."""
    dag_id, rest = match["dag"], match["rest"] or ""
    given = _json(body)
    run = _RUN.match(rest)
    if method == "POST" and rest == "/clearTaskInstances" and given.get("dry_run") is False and given.get("dag_run_id"):
        names = given.get("task_ids") or ["all"]
        return _act("task.cleared", dag_id, given["dag_run_id"], f"tasks were cleared: {', '.join(map(str, names))[:200]}")
    if method == "POST" and run and run["rest"] == "/clear" and given.get("dry_run") is False:
        return _act("run.cleared", dag_id, run["run"], "the run was cleared")
    if method == "DELETE" and run and not run["rest"]:
        return _act("run.deleted", dag_id, run["run"], "the run was deleted from Airflow")
    if method == "PATCH" and not rest and isinstance(given.get("is_paused"), bool):
        return _act("dag.paused" if given["is_paused"] else "dag.unpaused", dag_id, None, f"Dag {dag_id}")
    return None


def _act(what: str, dag_id: str, run_id: str | None, why: str) -> Act:
    return Act(who=f"airflow/{_user.get() or 'unknown'}", what=f"airflow.{what}", why=why, dag_id=dag_id, run_id=run_id)


def _json(body: bytes) -> dict[str, Any]:
    try:
        given = json.loads(body) if body else {}
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}


async def _user_of(scope: Scope) -> str:
    """Returns the name of the user whose valid token came with the request; empty for none. Never raises."""
    from airflow.api_fastapi.app import get_auth_manager
    from starlette.requests import Request

    request = Request(scope)
    kind, _, bearer = request.headers.get("authorization", "").partition(" ")
    token = bearer if kind.lower() == "bearer" else request.cookies.get("_token", "")
    if not token:
        return ""
    try:
        user = await get_auth_manager().get_user_from_token(token)
    except Exception as error:  # noqa: BLE001 - an invalid token is the API's to refuse, and nothing here may fail a request
        log.debug("no user for the event log", error=type(error).__name__)
        return ""
    return str(user.get_name())
