"""What the processes of the race tests run; a module of its own, since those processes import it."""

import os
import stat
from pathlib import Path
from typing import Any

import psycopg  # noqa: F401 - loaded before a process gives up the right to read it
from tests import samples
from tests.samples import NO_CAPS

from hostler.ledger.errors import LedgerError
from hostler.ledger.port import Ledger
from hostler.model.lease import Fence
from hostler.stores.embedded import EmbeddedPostgres
from hostler.stores.postgres import PostgresLedger


def fill_slot(url: str, fence: Fence, gate: Any, answers: Any) -> None:
    """Tries to write the first intent of slot 0 when all are ready, and tells how it went."""
    ledger = PostgresLedger(url)
    ledger.now()
    gate.wait(timeout=120)
    answers.put(_fill(ledger, fence))
    ledger.close()


def fork_and_fill(url: str, fence: Fence, answers: Any) -> None:
    """Forks with an open ledger; the child uses it while the parent does, and then the parent fills the slot."""
    ledger = PostgresLedger(url)
    ledger.view(fence.lease_id)
    child = os.fork()
    for _ in range(50):
        ledger.view(fence.lease_id)
    if child == 0:
        ledger.close()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    answers.put((_fill(ledger, fence), status))
    ledger.close()


def _fill(ledger: Ledger, fence: Fence) -> str:
    lease = ledger.view(fence.lease_id).lease
    try:
        ledger.insert_intent(samples.intent(lease, fence=fence.token), fence, NO_CAPS, [])
    except LedgerError as error:
        return type(error).__name__
    return "stored"


def start_server(folder: str, answers: Any) -> None:
    """Starts the embedded server and tells its address and process id."""
    server = EmbeddedPostgres(folder, is_durable=False)
    server.start()
    answers.put((server.url(), server.pid))


def serve_as_nobody(folder: str, answers: Any) -> None:
    """Runs a server as a normal user; tells the password's mode, and whether it ran and runs."""
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    server = EmbeddedPostgres(folder, is_durable=False)
    server.start()
    mode = stat.S_IMODE((server.folder / "password").stat().st_mode)
    assert server.pid is not None
    did_run = Path(f"/proc/{server.pid}").stat().st_uid == os.getuid()
    server.remove()
    answers.put((mode, did_run, server.is_running()))
