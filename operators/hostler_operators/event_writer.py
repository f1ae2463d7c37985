"""Writes events of Airflow's side into the ledger, from one thread beside the caller: late, or never, but in nobody's way."""

import queue
import threading
from dataclasses import dataclass
from functools import cache

import structlog

from hostler.ledger.errors import LeaseNotFoundError
from hostler.ledger.port import Ledger
from hostler.model.lease import Event, lease_id_for
from hostler.model.request import RunRef

log = structlog.get_logger(__name__)

MAX_WAITING = 1000
"""Acts kept while the ledger is away; later ones are dropped, with a line in the log."""

LIFE_PREFIX = "hostler_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What a person did to a run (``run_id`` None: to the Dag)."""

    who: str
    what: str
    why: str
    dag_id: str
    run_id: str | None


_acts: "queue.Queue[Act]" = queue.Queue(MAX_WAITING)


def write_later(act: Act) -> None:
    """Queues the act; never raises and never waits."""
    _start()
    try:
        _acts.put_nowait(act)
    except queue.Full:
        log.warning("an act is not in the event log: too many are waiting", what=act.what, who=act.who)


def write(ledger: Ledger, act: Act) -> bool:
    """Writes the act as an event of its run's lease. Returns False for runs without a lease: they are not ours.

    Raises:
        LedgerError: not written.
    """
    lease_id = None
    if act.run_id is not None:
        lease_id = lease_id_for(RunRef(dag_id=act.dag_id, run_id=act.run_id))
        try:
            ledger.view(lease_id)
        except LeaseNotFoundError:
            return False
    elif not act.dag_id.startswith(LIFE_PREFIX):
        return False
    event = Event(lease_id=lease_id, who=act.who, what=act.what, why=act.why, at=ledger.now())
    ledger.append_events([event])
    return True


@cache
def _start() -> None:
    threading.Thread(target=_run, name="hostler-events", daemon=True).start()


def _run() -> None:
    while True:
        act = _acts.get()
        try:
            write(_ledger(), act)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not end the thread; the log says it
            log.warning("an act is not in the event log", what=act.what, who=act.who, error=type(error).__name__)
        finally:
            _acts.task_done()


@cache
def _ledger() -> Ledger:
    from hostler.stores.postgres import PostgresLedger
    from hostler.wiring.settings import ledger_url, read_fleet_file

    ledger: Ledger = PostgresLedger(ledger_url(read_fleet_file()))
    return ledger
