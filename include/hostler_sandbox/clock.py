"""The sandbox's clock: real time, faster or slower, and pushed forward on demand. Everything simulated asks it."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta


class SandboxClock:
    """Aware UTC time that runs ``scale`` times as fast as real time. Thread-safe.

    Args:
        scale: above 0; 60 makes a minute of a second.
        monotonic: real seconds; tests hand in their own.
    """

    def __init__(
        self, scale: float = 1.0, *, start: datetime | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._check(scale)
        self._lock = threading.Lock()
        self._monotonic = monotonic
        self._base = start or datetime.now(UTC)
        self._mark_s = monotonic()
        self._scale = scale

    @staticmethod
    def _check(scale: float) -> None:
        if not scale > 0:
            raise ValueError(f"scale: {scale}: must be above 0")

    @property
    def scale(self) -> float:
        """How many sandbox seconds pass in a real one."""
        with self._lock:
            return self._scale

    def now(self) -> datetime:
        """Returns the sandbox's time."""
        with self._lock:
            return self._now()

    def _now(self) -> datetime:
        return self._base + timedelta(seconds=(self._monotonic() - self._mark_s) * self._scale)

    def set_scale(self, scale: float) -> None:
        """Changes the speed from now on. Raises ValueError unless above 0."""
        self._check(scale)
        with self._lock:
            self._base, self._mark_s = self._now(), self._monotonic()
            self._scale = scale

    def advance(self, seconds: float) -> None:
        """Jumps forward. Raises ValueError for a jump back."""
        if seconds < 0:
            raise ValueError(f"advance_s: {seconds}: must be 0 or more")
        with self._lock:
            self._base += timedelta(seconds=seconds)

    def real_s(self, sandbox_s: float) -> float:
        """Returns how many real seconds that many sandbox seconds take at the present speed."""
        return sandbox_s / self.scale
