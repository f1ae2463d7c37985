import json
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from hostler.exporters.webhook import NotifyError, notify, signature
from hostler.model.lease import Event
from hostler.stores.memory import MemoryLedger

NOW = datetime(2026, 12, 1, tzinfo=UTC)


class Receiver:
    """A real HTTP receiver on loopback that keeps what it gets."""

    def __init__(self):
        self.status = 200
        self.posts = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.posts.append((dict(self.headers), body))
                self.send_response(receiver.status)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def receiver():
    it = Receiver()
    yield it
    it.close()


@pytest.fixture
def ledger():
    return MemoryLedger(lambda: NOW)


def event(what):
    return Event(lease_id=None, who="cli/someone", what=what, why="because", at=NOW, evidence=(("node", "n-0"),))


def test_notify_when_events_need_a_person_then_only_those_are_posted_once_and_signed(ledger, receiver):
    ledger.append_events([event("node.gone"), event("node.end_refused"), event("lease.failed")])
    assert notify(ledger, deployment="acme", url=receiver.url, secret="word") == 2
    assert notify(ledger, deployment="acme", url=receiver.url, secret="word") == 0
    ((headers, body),) = receiver.posts
    assert headers["X-Hostler-Signature"] == signature(body, "word")
    assert [row["what"] for row in json.loads(body)["events"]] == ["node.end_refused", "lease.failed"]


def test_notify_when_the_receiver_refuses_then_the_same_events_are_told_the_next_time(ledger, receiver):
    ledger.append_events([event("lease.failed")])
    receiver.status = 500
    with pytest.raises(NotifyError, match=r"notify\.webhook_url"):
        notify(ledger, deployment="acme", url=receiver.url, secret=None)
    receiver.status = 200
    assert notify(ledger, deployment="acme", url=receiver.url, secret=None) == 1


def test_notify_when_nothing_needs_a_person_then_nobody_is_called(ledger):
    ledger.append_events([event("node.gone")])
    assert notify(ledger, deployment="acme", url="http://127.0.0.1:1/closed", secret=None) == 0


def test_notify_when_the_address_is_a_file_then_it_is_refused(ledger):
    ledger.append_events([event("lease.failed")])
    with pytest.raises(NotifyError, match="allowed are http"):
        notify(ledger, deployment="acme", url="file:///etc/passwd", secret=None)
