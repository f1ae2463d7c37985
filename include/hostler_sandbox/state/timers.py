"""Things that happen later, by the sandbox's clock, and work that may take long, in threads of its own."""

import heapq
import itertools
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Final

from hostler_sandbox.clock import SandboxClock

_LOG = logging.getLogger(__name__)
_LONGEST_WAIT_S: Final = 0.25
"""The clock may be pushed forward at any time; so never sleep longer."""


class Timers:
    """Runs due work in one thread, in order of time. ``run_due`` does the same in the caller's, so that an answer never lags.

    Args:
        workers: threads for ``work``.
    """

    def __init__(self, clock: SandboxClock, workers: int = 8) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._heap: list[tuple[datetime, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._is_closed = False
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="sandbox-work")
        self._thread = threading.Thread(target=self._run, name="sandbox-timers", daemon=True)
        self._thread.start()

    def later(self, delay_s: float, task: Callable[[], None]) -> None:
        """Runs a short task that many sandbox seconds from now."""
        due_at = self._clock.now() + timedelta(seconds=max(0.0, delay_s))
        with self._lock:
            heapq.heappush(self._heap, (due_at, next(self._numbers), task))
        self._wake.set()

    def work(self, task: Callable[[], None]) -> None:
        """Runs a task that may take long, in another thread; its failure is logged. Dropped after ``close``."""
        if not self._is_closed:
            self._pool.submit(self._guarded, task)

    def run_due(self) -> None:
        """Runs what is due, in the calling thread."""
        while task := self._next_due():
            self._guarded(task)

    def close(self) -> None:
        """Stops; work under way is waited for."""
        self._is_closed = True
        self._wake.set()
        self._thread.join(5)
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _next_due(self) -> Callable[[], None] | None:
        now = self._clock.now()
        with self._lock:
            if self._heap and self._heap[0][0] <= now:
                return heapq.heappop(self._heap)[2]
        return None

    def _wait_s(self) -> float:
        with self._lock:
            due_at = self._heap[0][0] if self._heap else None
        if due_at is None:
            return _LONGEST_WAIT_S
        return min(_LONGEST_WAIT_S, max(0.0, self._clock.real_s((due_at - self._clock.now()).total_seconds())))

    def _run(self) -> None:
        while not self._is_closed:
            self.run_due()
            self._wake.wait(self._wait_s())
            self._wake.clear()

    @staticmethod
    def _guarded(task: Callable[[], None]) -> None:
        try:
            task()
        except Exception:  # noqa: BLE001 - one failure must not stop the clock; it is logged
            _LOG.exception("simulated work failed")
