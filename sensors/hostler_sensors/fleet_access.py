"""The one place where Airflow's side gets a Fleet: built once a process, from ``HOSTLER_FLEET`` and Airflow's connections.

In the triggerer it lives as long as the process, with its SSH connections and its database pool. A worker's task is a process
of its own: it builds one and closes its connections at the end.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hostler.ledger.errors import LedgerUnavailableError
from hostler.lifecycle.fleet import Fleet

Result = TypeVar("Result")

log = logging.getLogger(__name__)

LEDGER_PAUSE_S = 15.0
"""Pause before the next look while the ledger cannot be reached."""

_lock = threading.Lock()
_built: dict[int, Fleet] = {}


def build() -> Fleet:
    """Builds a new Fleet. Raises FleetFileError, LedgerUnavailableError."""
    # Imported here: wiring pulls in the database and the drivers, which neither the scheduler nor the Dag processor needs.
    from hostler.connections.airflow_sessions import AirflowSessions, secret
    from hostler.wiring.build import build_fleet

    # A line for each channel of each poll would drown the task's log.
    logging.getLogger("asyncssh").setLevel(logging.WARNING)
    return build_fleet(sessions=AirflowSessions(), secret=secret)


def fleet() -> Fleet:
    """Returns this process's Fleet; blocks while it is built, so call it in a thread where a loop runs."""
    with _lock:
        pid = os.getpid()  # a fork must not share its parent's sockets
        if pid not in _built:
            _built[pid] = build()
        return _built[pid]


async def shared_fleet() -> Fleet:
    """Returns this process's Fleet without blocking the loop; for triggers."""
    return await asyncio.to_thread(fleet)


async def patient_fleet() -> Fleet:
    """As ``shared_fleet``, for triggers: waits while the ledger is away, since the task's retries are better kept."""
    while True:
        try:
            return await shared_fleet()
        except LedgerUnavailableError as error:
            log.warning("the ledger is away, next look in %.0f s: %s", LEDGER_PAUSE_S, error)
            await asyncio.sleep(LEDGER_PAUSE_S)


def work(act: Callable[[Fleet], Awaitable[Result]]) -> Result:
    """Runs ``act`` to its end in a loop of its own, then closes connections to nodes; for workers."""

    async def whole() -> Result:
        here = await shared_fleet()
        try:
            return await act(here)
        finally:
            await here.nodes.close()

    return asyncio.run(whole())
