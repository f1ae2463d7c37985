"""A wire front before a cloud's server: passes calls on, counts them, and plays the faults that it is told to."""

import http.client
import threading
from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import parse_qs, urlsplit

TIMEOUT_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault for one call.

    Attributes:
        kind: ``refuse`` answers an error in the call's stead; ``lose`` passes the call on and cuts the line before the answer;
            ``garble`` passes it on and answers with a page of HTML; ``cut`` cuts the line before the call has its effect.
    """

    kind: Literal["refuse", "lose", "garble", "cut"]
    code: str = ""
    text: str = ""
    status: int = 400
    retry_after: str | None = None

    def body(self) -> bytes:
        error = f"<Error><Code>{self.code}</Code><Message>{self.text}</Message></Error>"
        return f"<Response><Errors>{error}</Errors><RequestID>0</RequestID></Response>".encode()


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # the default of 5 turns callers away when a test sends sixteen threads at once
    daemon_threads = True


class Front:
    """Speaks EC2's query protocol as far as faults need it. ``counts``: calls by action, faulty ones too."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.behind = (parts.hostname or "127.0.0.1", parts.port or 80)
        self.counts: Counter[str] = Counter()
        self.always: dict[str, Fault] = {}
        self._faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"front": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self.behind_lock = threading.Lock()
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def order(self, action: str, *faults: Fault) -> None:
        """Each fault meets one call of the action, in order."""
        with self._lock:
            self._faults[action].extend(faults)

    def next_fault(self, action: str) -> Fault | None:
        with self._lock:
            self.counts[action] += 1
            return self._faults[action].popleft() if self._faults[action] else self.always.get(action)

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()
            self.always.clear()
            self.counts.clear()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=10)


class _Handler(BaseHTTPRequestHandler):
    front: Front
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        target = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
        action = target or parse_qs(body.decode(errors="replace")).get("Action", [""])[0]
        fault = self.front.next_fault(action)
        if fault is not None and fault.kind == "refuse":
            return self._answer(fault.status, "text/xml", fault.body(), fault.retry_after)
        if fault is not None and fault.kind == "cut":
            return self._hang_up()
        status, kind, answer = self._pass_on(body)
        if fault is None:
            return self._answer(status, kind, answer)
        if fault.kind == "lose":
            return self._hang_up()
        return self._answer(500, "text/html", b"<html><body>Internal Server Error</body></html>")

    def _pass_on(self, body: bytes) -> tuple[int, str, bytes]:
        """One call at a time: moto's state is not made for threads."""
        line = http.client.HTTPConnection(*self.front.behind, timeout=TIMEOUT_S)
        try:
            with self.front.behind_lock:
                return self._ask(line, body)
        finally:
            line.close()

    def _ask(self, line: http.client.HTTPConnection, body: bytes) -> tuple[int, str, bytes]:
        line.request("POST", self.path, body, dict(self.headers))
        answer = line.getresponse()
        return answer.status, answer.headers.get("Content-Type", "text/xml"), answer.read()

    def _answer(self, status: int, kind: str, body: bytes, retry_after: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if retry_after is not None:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(body)

    def _hang_up(self) -> None:
        self.close_connection = True

    def log_message(self, *_args: object) -> None:
        """Says nothing."""
