"""The survey of what runs already, from fleet.yaml: works from the first day, also without a ledger."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal

from hostler.catalog.offerings import load_catalog
from hostler.cloud.driver import Machine
from hostler.cloud.registry import load_driver
from hostler.cloud.session import SessionSource
from hostler.config.schema import FleetFile
from hostler.ledger.errors import LedgerError
from hostler.lifecycle.survey import Survey, SurveyRules, survey
from hostler.model.enums import CapacityType
from hostler.stores.postgres import PostgresLedger
from hostler.wiring.prices import catalog_paths
from hostler.wiring.settings import ledger_url

_Key = tuple[str, str, str, str]


def survey_fleet(fleet: FleetFile, sessions: SessionSource) -> Survey:
    """Looks at every machine of every region; see ``lifecycle.survey``. A ledger that is away is an error in the survey."""
    drivers = {
        name: load_driver(name)(deployment=fleet.deployment, settings=settings, sessions=sessions)
        for name, settings in fleet.clouds.items()
    }
    rules = SurveyRules(
        deployment=fleet.deployment,
        mode=fleet.mode,
        orphan_grace_s=fleet.timing.orphan_grace_s,
        destroyed_per_tick=fleet.limits.destroyed_per_tick,
    )
    prices = Prices(fleet)
    with _ledger(fleet) as (ledger, problem):
        found = survey(drivers, ledger, rules, prices, datetime.now(UTC))
    errors = (*found.errors, *((problem,) if problem else ()))
    return Survey(at=found.at, machines=found.machines, errors=errors)


class Prices:
    """Price of a machine from the price lists: in its zone, or the dearest of its region. Loads them at the first question."""

    def __init__(self, fleet: FleetFile) -> None:
        self._fleet = fleet
        self._zonal: dict[tuple[_Key, str], Decimal] | None = None
        self._regional: dict[_Key, Decimal] = {}

    def __call__(self, machine: Machine) -> Decimal | None:
        """Returns USD an hour; None when no list has it."""
        if self._zonal is None:
            self._zonal = self._load()
        # A reserved machine is paid at the on-demand scale, used or not.
        kind = CapacityType.ON_DEMAND if machine.capacity_type is CapacityType.RESERVED else machine.capacity_type
        key = (machine.cloud, machine.region, machine.instance_type, kind.value)
        return self._zonal.get((key, machine.zone), self._regional.get(key))

    def _load(self) -> dict[tuple[_Key, str], Decimal]:
        zonal: dict[tuple[_Key, str], Decimal] = {}
        for item in load_catalog(list(catalog_paths(self._fleet)), keep_going=True).offerings:
            if item.price_usd_per_hour is None:
                continue
            key = (item.cloud, item.region, item.instance_type, item.capacity_type.value)
            self._regional[key] = max(self._regional.get(key, Decimal(0)), item.price_usd_per_hour)
            zonal[key, item.zone] = item.price_usd_per_hour
        return zonal


@contextmanager
def _ledger(fleet: FleetFile) -> Iterator[tuple[PostgresLedger | None, str | None]]:
    """Gives the ledger, or None and why there is none. Nothing is started and nothing is migrated."""
    try:
        ledger = PostgresLedger(ledger_url(fleet))
    except LedgerError as error:
        yield None, f"ledger: {error}"
        return
    try:
        yield ledger, None
    finally:
        ledger.close()
