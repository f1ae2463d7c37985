"""What the guarded housekeeping tasks share: the guard of this deployment, and telling people. Nothing heavy is imported here."""

import asyncio
from typing import Any

from hostler.config.fleet_file import FleetFileError
from hostler.exporters.webhook import NotifyError
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.policies import Guard


def suite_guard_of(fleet: Fleet) -> Guard:
    """Returns the guard that fleet.yaml configures. Raises FleetFileError. Great Expectations is loaded when it first judges."""
    # Imported here: wiring pulls in the database, which a Dag's parsing must not.
    from hostler.wiring.guards import suite_guard
    from hostler.wiring.settings import read_fleet_file

    return suite_guard(read_fleet_file(), fleet.ledger.now)


async def tell(fleet: Fleet, log: Any) -> None:
    """Tells people what needs one; a receiver that is away fails no task."""
    from hostler.wiring.notices import tell_people

    try:
        await asyncio.to_thread(tell_people, fleet.ledger)
    except (NotifyError, FleetFileError) as error:
        log.warning("nobody could be told: %s", error)
