"""Where synchronous calls (ledger, cloud SDKs, backup store) run: a bounded pool of threads beside the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Protocol, TypeVar

T = TypeVar("T")

MAX_THREADS = 32
"""Cloud and ledger calls at once in one process: below botocore's and the ledger pool's limits, enough for a gang of 500."""


class Offload(Protocol):
    """Runs one synchronous call and awaits its answer. The simulator's runs it in place."""

    async def __call__(self, work: Callable[[], T]) -> T:
        """Returns what ``work`` returns, raises what it raises."""
        ...


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=MAX_THREADS, thread_name_prefix="hostler")


async def in_thread(work: Callable[[], T]) -> T:
    """Runs ``work`` in the module's pool. A cancelled caller leaves the call running: its effect is found by looking up."""
    return await asyncio.get_running_loop().run_in_executor(_pool(), work)
