"""From fleet.yaml's ``notify`` block to the webhook."""

import logging
import os

from hostler.config.schema import FleetFile
from hostler.exporters.webhook import NotifyError, notify
from hostler.ledger.errors import LedgerError
from hostler.ledger.port import Ledger
from hostler.wiring.settings import read_fleet_file

_log = logging.getLogger(__name__)


def tell_quietly(ledger: Ledger, fleet_file: FleetFile) -> None:
    """As ``tell_people``, in the midst of other work: what goes wrong is logged, and the next call tells again."""
    try:
        tell_people(ledger, fleet_file)
    except (NotifyError, LedgerError) as error:
        _log.warning("nobody could be told: %s", error)


def tell_people(ledger: Ledger, fleet_file: FleetFile | None = None) -> int:
    """Posts what needs a person since the last call, where fleet.yaml names a receiver.

    Returns:
        How many events were told; 0 when there is nothing new or no receiver.

    Raises:
        NotifyError: nothing was lost; the next call tells again.
    """
    fleet = fleet_file or read_fleet_file()
    settings = fleet.notify
    if settings.webhook_url is None:
        return 0
    secret = None
    if settings.secret is not None:
        secret = os.environ.get(settings.secret)
        if not secret:
            raise NotifyError(f"notify.secret: environment variable {settings.secret} is not set")
    return notify(ledger, deployment=fleet.deployment, url=str(settings.webhook_url), secret=secret)
