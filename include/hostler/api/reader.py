"""Reads the ledger for all who look: in few threads of its own, and once for everybody who asks at about the same time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from anyio import CapacityLimiter, to_thread

from hostler.api.links import AirflowLinks
from hostler.api.rows import Row, lease_row, node_rows
from hostler.config.schema import FleetFile
from hostler.ledger.port import Ledger, Spending
from hostler.lifecycle.board import Board
from hostler.model.enums import LeaseState
from hostler.model.lease import Event, LeaseView

THREADS: Final = 2
"""Threads that read the ledger; they hold as many database connections at most."""

MAX_AGE_S: Final = 4.0
"""A read of 2,000 nodes is half a second of work: once in this time, however many look. The page asks every 5 s."""

ENDED_LEASES: Final = 200
"""Released leases that are shown when they are asked for, the newest."""

EVENTS: Final = 200
_OPEN: Final = tuple(state for state in LeaseState if state is not LeaseState.RELEASED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One read of the ledger.

    Attributes:
        read_at: the ledger's time. fleet: the fleet file of that moment.
        leases, nodes: rows, oldest lease first.
        spending: of the deployment. tenants: of each tenant that has a lease here. is_stopped: ``hostler stop-spending``.
    """

    read_at: datetime
    fleet: FleetFile
    leases: tuple[Row, ...]
    nodes: tuple[Row, ...]
    spending: Spending
    tenants: Mapping[str, Spending]
    is_stopped: bool


class FleetReader:
    """Belongs to one event loop at a time.

    Args:
        ledger, fleet: give the ledger and the fleet file; called in a thread, for each read. links: to Airflow's UI.
        max_age_s: how old a read may be that is shared.
    """

    def __init__(
        self,
        *,
        ledger: Callable[[], Ledger],
        fleet: Callable[[], FleetFile],
        links: AirflowLinks,
        max_age_s: float = MAX_AGE_S,
    ) -> None:
        self._ledger = ledger
        self._fleet = fleet
        self._links = links
        self._max_age_s = max_age_s
        self._board = Board()
        self._threads = CapacityLimiter(THREADS)

    async def snapshot(self, *, with_ended: bool = False) -> Snapshot:
        """Returns a read that is at most ``max_age_s`` old. Raises LedgerError, FleetFileError."""
        read = partial(to_thread.run_sync, partial(self._read, with_ended=with_ended), limiter=self._threads)
        return await self._board.ask(with_ended, read, max_age_s=self._max_age_s)

    async def story(self, lease_id: str) -> tuple[LeaseView, tuple[Event, ...], datetime]:
        """Returns one lease, its last events (oldest first) and the ledger's time. Raises LeaseNotFoundError, LedgerError."""
        read = partial(to_thread.run_sync, self._read_story, lease_id, limiter=self._threads)
        return await self._board.ask(lease_id, read, max_age_s=self._max_age_s)

    def _read(self, *, with_ended: bool) -> Snapshot:
        ledger, fleet = self._ledger(), self._fleet()
        views = list(ledger.list_views(*_OPEN))
        if with_ended:
            views = [*ledger.list_views(LeaseState.RELEASED, newest=ENDED_LEASES), *views]
        now = ledger.now()
        tenants = sorted({view.lease.request.tenant for view in views})
        return Snapshot(
            read_at=now,
            fleet=fleet,
            leases=tuple(lease_row(view, now, self._links) for view in views),
            nodes=tuple(row for view in views for row in node_rows(view, now, self._links, with_gone=with_ended)),
            spending=ledger.spending(),
            tenants={tenant: ledger.spending(tenant) for tenant in tenants},
            is_stopped=ledger.is_spending_stopped(),
        )

    def _read_story(self, lease_id: str) -> tuple[LeaseView, tuple[Event, ...], datetime]:
        ledger = self._ledger()
        view = ledger.view(lease_id)
        events = ledger.list_events(lease_id, limit=10_000)
        return view, tuple(event for event in events if event.what != "fence.taken")[-EVENTS:], ledger.now()
