"""Loopback addresses for machines: 127.1.x.y, each given to one machine at a time, the longest unused first."""

import threading
from collections import deque
from itertools import product
from typing import Final

_RESERVED: Final = "127.1.0.1"
"""The node runtime's own: its metadata service for all nodes."""


class Addresses:
    """About 64,000 addresses. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free = deque(f"127.1.{x}.{y}" for x, y in product(range(255), range(1, 255)))
        self._free.remove(_RESERVED)

    def take(self) -> str:
        """Returns an address that nobody holds. Raises RuntimeError when all are held."""
        with self._lock:
            if not self._free:
                raise RuntimeError("no loopback address is free")
            return self._free.popleft()

    def give_back(self, address: str) -> None:
        """Puts an address at the end of the queue; its holder is gone."""
        with self._lock:
            self._free.append(address)
