"""The REST client against a server on loopback that answers as told."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hostler_sandbox.airflow_client import AirflowApiError, AirflowClient, wait_until


class Server(ThreadingHTTPServer):
    """``answers``: (method, path) -> (status, body); ``seen``: what came in."""

    daemon_threads = True

    def __init__(self):
        self.answers, self.seen = {("POST", "/auth/token"): (201, {"access_token": "t1"})}, []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    def do(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.server.seen.append((self.command, self.path, body, self.headers.get("Authorization")))
        status, answer = self.server.answers.get((self.command, self.path), (404, {"detail": "no such thing"}))
        data = json.dumps(answer).encode() if answer is not None else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do  # noqa: N815 - the names that http.server calls

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def server():
    running = Server()
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture
def client(server):
    return AirflowClient(f"http://127.0.0.1:{server.server_address[1]}/", "ada", "made-up-password")


def test_trigger_when_accepted_then_sends_conf_id_and_token(server, client):
    server.answers["POST", "/api/v2/dags/d/dagRuns"] = (200, {"dag_run_id": "r1"})
    assert client.trigger("d", {"a": 1}, "r1") == "r1"
    assert server.seen[-1] == (
        "POST",
        "/api/v2/dags/d/dagRuns",
        {"logical_date": None, "conf": {"a": 1}, "dag_run_id": "r1"},
        "Bearer t1",
    )


def test_calls_when_repeated_then_logged_in_once_and_anew_after_a_401(server, client):
    server.answers["GET", "/api/v2/monitor/health"] = (200, {})
    client.health()
    client.health()
    assert sum(path == "/auth/token" for _, path, _, _ in server.seen) == 1
    server.answers["GET", "/api/v2/monitor/health"] = (401, {})
    with pytest.raises(AirflowApiError):
        client.health()
    server.answers["GET", "/api/v2/monitor/health"] = (200, {})
    client.health()
    assert sum(path == "/auth/token" for _, path, _, _ in server.seen) == 2


def test_call_when_refused_then_status_and_the_servers_words(server, client):
    server.answers["POST", "/api/v2/dags/d/dagRuns"] = (400, {"detail": "Invalid input for param nodes"})
    with pytest.raises(AirflowApiError, match="param nodes") as error:
        client.trigger("d", {})
    assert error.value.status == 400


def test_call_when_nobody_answers_then_status_0_and_no_password_in_the_text():
    with pytest.raises(AirflowApiError, match="no answer") as error:
        AirflowClient("http://127.0.0.1:9", "ada", "made-up-password").health()
    assert error.value.status == 0
    assert "made-up-password" not in str(error.value)


def test_run_id_when_it_has_odd_characters_then_quoted(server, client):
    server.answers["GET", "/api/v2/dags/d/dagRuns/a%3Ab%2Bc"] = (200, {"state": "success"})
    assert client.wait_for_run("d", "a:b+c", 5) == "success"


def test_wait_until_when_it_never_comes_then_says_what_was_waited_for():
    with pytest.raises(TimeoutError, match="the moon"):
        wait_until(lambda: None, "the moon", 0.05, every_s=0.01)
