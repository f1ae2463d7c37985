import http.server
import json
import threading
import time

import pytest
from tests.recipes.agent.bench import TRAIN, until


def test_expiry_when_nobody_renews_and_no_job_works_then_powers_off(agent):
    agent.configure()
    agent.ask("renew", expires_in_s=0.5)
    assert until(agent.shutdowns) == ["-h now"]


def test_expiry_when_renewed_then_does_not_fire(agent):
    agent.configure()
    agent.ask("renew", expires_in_s=5)
    end = time.monotonic() + 8
    agent.ask("renew", expires_in_s=3600)
    while time.monotonic() < end:  # past the first limit
        agent.ask("version")
    assert agent.shutdowns() == []


def test_expiry_when_job_works_within_its_lease_then_waits_for_its_end(agent):
    agent.configure(backup=agent.backup())
    agent.start_python("j1", TRAIN, expires_in_s=3600)
    agent.ask("renew", expires_in_s=0)
    until(lambda: agent.written("j1", "report").get("step", 0) > 150)
    assert agent.shutdowns() == []
    agent.ask("stop", job_id="j1", attempt_token="t1", checkpoint=True)
    assert until(agent.shutdowns) == ["-h now"]
    assert agent.shipped_steps()


def test_expiry_when_lease_ends_then_job_is_saved_and_node_powers_off(agent):
    agent.configure(backup=agent.backup())
    agent.start_python("j1", TRAIN, expires_in_s=2)
    assert until(agent.shutdowns) == ["-h now"]
    assert len(agent.shipped_steps()) == 1


def test_expiry_when_job_has_ended_and_nobody_says_a_word_then_powers_off(agent):
    agent.configure(abandoned_after_s=2)
    agent.ask("renew", expires_in_s=3600)
    agent.start("j1", "sleep 3")
    until(agent.shutdowns)
    assert agent.written("j1", "state")["state"] == "succeeded"


def test_expiry_when_node_is_spoken_to_then_is_not_abandoned(agent):
    agent.configure(abandoned_after_s=5)
    agent.start("j1", "true")
    end = time.monotonic() + 8
    while time.monotonic() < end:
        agent.status("j1")
    assert agent.shutdowns() == []


def test_expiry_when_shutdown_is_refused_then_tries_again(agent):
    (agent.folder / "tools" / "shutdown").write_text('#!/bin/sh\necho no >>"$HOSTLER_HOME/shutdown.calls"\nexit 1\n')
    agent.configure()
    agent.ask("renew", expires_in_s=0)
    until(agent.shutdowns)
    noted = agent.home / "agent/expired.json"
    until(lambda: noted.exists() and json.loads(noted.read_text())["error"] == "shutdown: exit code 1")


def test_expiry_when_first_set_then_later_configure_leaves_it(agent):
    agent.configure(first_expires_in_s=100)
    before = (agent.home / "agent/expiry.json").read_text()
    agent.configure(first_expires_in_s=1)
    assert (agent.home / "agent/expiry.json").read_text() == before


def test_expiry_when_from_another_boot_then_runs_its_full_time_again(agent):
    agent.configure()
    agent.ask("renew", expires_in_s=3600)
    path = agent.home / "agent/expiry.json"
    document = json.loads(path.read_text())
    document["set"] = {"boot_id": "an earlier one", "monotonic_s": -1e9}
    path.write_text(json.dumps(document))
    until(lambda: json.loads(path.read_text())["set"]["boot_id"] != "an earlier one")
    assert agent.shutdowns() == []


@pytest.mark.parametrize("value", [-1, "soon", None, True, float("inf")])
def test_renew_when_time_is_bad_then_is_refused(agent, value):
    assert "expires_in_s" in agent.refused("renew", expires_in_s=value)


class Metadata(http.server.BaseHTTPRequestHandler):
    notice: str | None = None
    asked: list[tuple[str, str | None]] = []  # noqa: RUF012 - one server, one list

    def do_PUT(self):
        self._answer(200, "token-1")

    def do_GET(self):
        self.asked.append((self.path, self.headers.get("X-aws-ec2-metadata-token")))
        if self.headers.get("X-aws-ec2-metadata-token") != "token-1":
            self._answer(401, "")
        elif self.path == "/latest/meta-data/spot/instance-action" and self.notice:
            self._answer(200, self.notice)
        else:
            self._answer(404, "")

    def _answer(self, code: int, text: str) -> None:
        self.send_response(code)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def metadata(agent):
    Metadata.notice, Metadata.asked = None, []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    agent.environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"
    yield Metadata
    server.shutdown()
    server.server_close()
    thread.join()


def test_notice_when_it_comes_then_checkpoint_is_made_shipped_and_told(agent, metadata):
    agent.configure(backup=agent.backup())
    agent.start_python("j1", TRAIN)
    until(lambda: agent.written("j1", "report").get("step", 0) > 2)
    assert agent.status("j1")["notice"] is None
    metadata.notice = json.dumps({"action": "terminate", "time": "2030-01-01T00:02:00Z"})
    until(agent.shipped_steps)
    told = agent.status("j1")
    assert told["notice"] == "the cloud takes this node: terminate at 2030-01-01T00:02:00Z"
    assert told["state"] == "running"
    assert told["shipped_step"] > 2
    assert all(token == "token-1" for _, token in metadata.asked)


def test_notice_when_answer_is_garbage_then_is_none(agent, metadata):
    agent.configure()
    metadata.notice = "<html>no</html>"
    until(lambda: len(metadata.asked) >= 1)
    agent.start("j1", "true")
    assert agent.until_state("j1", "succeeded")["notice"] is None
