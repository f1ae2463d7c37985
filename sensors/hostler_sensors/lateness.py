"""What Airflow's deadline alert calls, in the triggerer: a lifecycle run has lasted longer than it was expected to."""

import asyncio
import logging
from typing import Any

from hostler.lifecycle.fleet import Fleet
from hostler.model.enums import LeaseState
from hostler.model.lease import Event, lease_id_for
from hostler.model.request import RunRef
from hostler_sensors.fleet_access import shared_fleet

_log = logging.getLogger(__name__)
_ENDED = frozenset({LeaseState.RELEASED, LeaseState.EXPIRED, LeaseState.LOST})


async def tell_late(context: dict[str, Any]) -> str:
    """Writes ``run.late`` to the lease's record and rings the bell of fleet.yaml; returns what was said.

    Args:
        context: what Airflow gives a deadline's callback; ``dag_run`` names the run.
    """
    run = context["dag_run"]
    ref = RunRef(dag_id=str(run["dag_id"]), run_id=str(run["dag_run_id"]))
    fleet = await shared_fleet()
    return await asyncio.to_thread(_tell, fleet, ref)


def _tell(fleet: Fleet, ref: RunRef) -> str:
    # Imported here: wiring pulls in the database.
    from hostler.config.fleet_file import FleetFileError
    from hostler.exporters.webhook import NotifyError
    from hostler.ledger.errors import LeaseNotFoundError
    from hostler.wiring.notices import tell_people

    try:
        view = fleet.ledger.view(lease_id_for(ref))
    except LeaseNotFoundError:
        return f"run {ref.run_id} has no lease"
    if view.lease.state in _ENDED:
        return f"run {ref.run_id} is late, and nothing of it costs any more"
    lease = view.lease
    why = f"run {ref.run_id} goes on longer than expected; the lease is {lease.state}: {lease.wait_reason or 'at work'}"
    event = Event(lease_id=lease.lease_id, who="airflow/deadline", what="run.late", why=why, at=fleet.ledger.now())
    fleet.ledger.append_events([event])
    try:
        tell_people(fleet.ledger, secret=fleet.secret)
    except (NotifyError, FleetFileError) as error:
        _log.warning("nobody could be told: %s", error)
    return why
