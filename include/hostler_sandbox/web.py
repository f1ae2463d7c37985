"""A threaded HTTP server on loopback for a WSGI app."""

import logging
import threading
from types import TracebackType
from typing import Any, Final, Self

from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import ThreadedWSGIServer

_LOOPBACK: Final = "127.0.0.1"
_BACKLOG: Final = 512
logging.getLogger("werkzeug").setLevel(logging.ERROR)


class _QuietHandler(MotoRequestHandler):  # type: ignore[misc]  # moto is not typed
    """Keeps connections open, writes no access log, and takes a connection cut on purpose calmly."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_request(self, *_args: Any) -> None:
        """Writes nothing: the journal has it."""

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - werkzeug's name
        """Writes nothing: what matters is in the journal or was raised."""


class _Server(ThreadedWSGIServer):
    request_queue_size = _BACKLOG
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections that break are the callers' own affair, or a fault asked for."""


class WebServer:
    """Serves an app from entering to leaving its ``with`` block.

    Args:
        port: 0 chooses a free one.
    """

    def __init__(self, app: Any, *, port: int = 0, name: str) -> None:
        self._server = _Server(_LOOPBACK, port, app, handler=_QuietHandler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name=name, daemon=True
        )

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{_LOOPBACK}:{self._server.server_port}"

    def __enter__(self) -> Self:
        """Begins to serve."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops; open connections end with the process."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
