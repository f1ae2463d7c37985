"""An event loop whose clock jumps: when nothing is ready, time moves to the next timer. Deterministic; no real waiting."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop_clock):
        super().__init__()
        self.loop_clock = loop_clock

    def select(self, timeout=None):
        if timeout is None:
            raise RuntimeError("the simulation hangs: no task is ready and no timer is set")
        self.loop_clock[0] += max(0.0, timeout)
        return []


class SimLoop(asyncio.SelectorEventLoop):
    """``time()`` is simulated seconds since the start."""

    def __init__(self):
        self._sim_clock = [0.0]
        super().__init__(_JumpingSelector(self._sim_clock))

    def time(self):
        return self._sim_clock[0]


def run_simulated(main: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine to its end on simulated time."""
    with asyncio.Runner(loop_factory=SimLoop) as runner:
        return runner.run(main)
