"""A proxy to PostgreSQL that cuts one connection at its first COMMIT."""

import contextlib
import socket
import threading


class CuttingProxy:
    """Listens on a free loopback port.

    Attributes:
        port: where to connect. cut_after: True passes the COMMIT on and drops the answer, False drops the COMMIT itself.
        is_closed_after: True refuses every connection after the cut.
        has_cut: set when it is done.
    """

    def __init__(self, target_port: int, *, cut_after: bool, is_closed_after: bool = False) -> None:
        self.target_port, self.cut_after, self.is_closed_after = target_port, cut_after, is_closed_after
        self.has_cut = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = [self._listener]
        self._start(self._accept)

    def close(self) -> None:
        """Ends all connections and threads."""
        for opened in self._sockets:
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
            opened.close()
        for thread in self._threads:
            thread.join(timeout=10)

    def _start(self, target, *args) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.has_cut.is_set() and self.is_closed_after:
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self.target_port))
                self._sockets += [client, server]
                self._start(self._upstream, client, server)
                self._start(self._downstream, server, client)

    def _upstream(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if b"COMMIT" in data and not self.has_cut.is_set():
                    self.has_cut.set()
                    client.shutdown(socket.SHUT_RDWR)
                    if self.cut_after:
                        server.sendall(data)
                    server.shutdown(socket.SHUT_WR)
                    return
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _downstream(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)
