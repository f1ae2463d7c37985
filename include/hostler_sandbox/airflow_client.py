"""A small client of Airflow's REST API, on the standard library alone."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

_TIMEOUT_S = 60.0
TERMINAL = frozenset({"success", "failed"})
Answer = TypeVar("Answer")


class AirflowApiError(Exception):
    """The API said no, or gave no answer.

    Attributes:
        status: HTTP status; 0 when there was no answer. detail: the API's words.
    """

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"HTTP {status}: {detail}" if status else detail)
        self.status = status
        self.detail = detail


class AirflowClient:
    """Logs in once, with a JSON web token, and again when the token has run out."""

    def __init__(self, url: str, user: str, password: str) -> None:
        self._url = url.rstrip("/")
        self._credentials = {"username": user, "password": password}
        self._token: str | None = None

    def health(self) -> dict[str, Any]:
        """Returns the health document. Logs in first, which only our own server lets us do."""
        return self.get("/monitor/health")

    def get(self, path: str, **query: str | int) -> dict[str, Any]:
        """Returns the answer to GET ``/api/v2<path>``. Raises AirflowApiError."""
        return self.call("GET", f"{path}?{urlencode(query)}" if query else path)

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Sends one request to ``/api/v2<path>`` and returns its JSON answer, empty for none. Raises AirflowApiError."""
        if self._token is None:
            self._token = self._send("POST", "/auth/token", self._credentials, None)["access_token"]
        try:
            return self._send(method, f"/api/v2{path}", body, self._token)
        except AirflowApiError as error:
            if error.status == 401:  # noqa: PLR2004 - Unauthorized: the token has run out
                self._token = None
            raise

    def trigger(self, dag_id: str, conf: Mapping[str, Any] | None, run_id: str | None = None) -> str:
        """Starts a Dag run and returns its id. Raises AirflowApiError (400 names the field; 409: this run id exists)."""
        body: dict[str, Any] = {"logical_date": None, "conf": conf}
        if run_id is not None:
            body["dag_run_id"] = run_id
        run: str = self.call("POST", f"/dags/{dag_id}/dagRuns", body)["dag_run_id"]
        return run

    def run(self, dag_id: str, run_id: str) -> dict[str, Any]:
        """Returns the Dag run."""
        return self.get(_run_path(dag_id, run_id))

    def tasks(self, dag_id: str, run_id: str) -> dict[str, dict[str, Any]]:
        """Returns the task instances of a run by task id."""
        answer = self.get(f"{_run_path(dag_id, run_id)}/taskInstances", limit=100)
        return {item["task_id"]: item for item in answer["task_instances"]}

    def mark_run(self, dag_id: str, run_id: str, state: str) -> None:
        """Sets a run to ``failed`` or ``success``."""
        self.call("PATCH", _run_path(dag_id, run_id), {"state": state})

    def mark_task(self, dag_id: str, run_id: str, task_id: str, state: str) -> None:
        """Sets a task to ``failed`` or ``success``."""
        self.call("PATCH", f"{_run_path(dag_id, run_id)}/taskInstances/{task_id}", {"new_state": state})

    def clear(self, dag_id: str, run_id: str, *task_ids: str) -> list[str]:
        """Clears tasks of a run, all when none is named; returns the ids that were cleared."""
        body: dict[str, Any] = {"dry_run": False, "dag_run_id": run_id, "only_failed": False, "reset_dag_runs": True}
        if task_ids:
            body["task_ids"] = list(task_ids)
        answer = self.call("POST", f"/dags/{dag_id}/clearTaskInstances", body)
        return [item["task_id"] for item in answer["task_instances"]]

    def set_paused(self, dag_id: str, *, paused: bool) -> None:
        """Pauses or unpauses a Dag."""
        self.call("PATCH", f"/dags/{dag_id}", {"is_paused": paused})

    def xcoms(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        """Returns what a task put into XCom, by key."""
        base = f"{_run_path(dag_id, run_id)}/taskInstances/{task_id}/xcomEntries"
        keys = [item["key"] for item in self.get(base, limit=100)["xcom_entries"]]
        return {key: self.get(f"{base}/{quote(key, safe='')}")["value"] for key in keys}

    def log_text(self, dag_id: str, run_id: str, task_id: str, try_number: int) -> str:
        """Returns the log of one try, as the API shows it."""
        return json.dumps(self.get(f"{_run_path(dag_id, run_id)}/taskInstances/{task_id}/logs/{try_number}"))

    def wait_for_run(self, dag_id: str, run_id: str, timeout_s: float) -> str:
        """Returns the run's state once it has ended. Raises TimeoutError."""

        def ended() -> str | None:
            state: str = self.run(dag_id, run_id)["state"]
            return state if state in TERMINAL else None

        return wait_until(ended, f"{dag_id} {run_id} to end", timeout_s, every_s=2.0)

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, token: str | None) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self._url}{path}", data=data, headers=headers, method=method)  # noqa: S310 - the scheme is ours
        try:
            with urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - see above
                text = answer.read()
        except HTTPError as error:
            with error:
                raise AirflowApiError(error.code, error.read().decode(errors="replace")) from None
        except (URLError, OSError) as error:
            raise AirflowApiError(0, f"no answer from {self._url}: {error}") from error
        answer_body: dict[str, Any] = json.loads(text) if text else {}
        return answer_body


def wait_until(check: Callable[[], Answer | None], what: str, timeout_s: float, every_s: float = 0.5) -> Answer:
    """Asks ``check`` until it answers something true, and returns that. Raises TimeoutError naming ``what``.

    A busy API server that gives no answer at all is asked again, too.
    """
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        try:
            answer = check()
        except AirflowApiError as error:
            if error.status:
                raise
            answer = None
        if answer:
            return answer
        time.sleep(every_s)
    raise TimeoutError(f"waited {timeout_s:.0f} s for {what}")


def _run_path(dag_id: str, run_id: str) -> str:
    return f"/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}"
