"""All checks of a deployment: what the driver says of its account, then ledger, keys, store, reach and Airflow."""

from dataclasses import dataclass
from typing import Any

from hostler.cloud.doctor import Check, Examination, SupportsDoctor, SupportsPolicy, fail, ok, warn
from hostler.cloud.driver import CloudDriver
from hostler.cloud.errors import CloudConfigError
from hostler.cloud.registry import load_driver
from hostler.cloud.session import SessionSource
from hostler.config.schema import FleetFile
from hostler.ledger.errors import LedgerError
from hostler.model.enums import FleetMode
from hostler.stores import migrate
from hostler.stores.tables import HEAD
from hostler.vault.local import MASTER_FILE, LocalKeys
from hostler.vault.port import KeyServiceError
from hostler.wiring.doctor_airflow import check_airflow
from hostler.wiring.doctor_reach import check_reach
from hostler.wiring.doctor_store import check_store
from hostler.wiring.settings import embedded_of, ledger_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctor:
    """One deployment to be looked at.

    Attributes:
        asks_writes: dry runs of what buys and ends may be made; see ``Examination``.
    """

    fleet: FleetFile
    sessions: SessionSource
    asks_writes: bool

    def driver(self, cloud: str) -> CloudDriver:
        """Returns the driver of a cloud. Raises CloudConfigError: fleet.yaml does not have it, or it has no doctor."""
        if cloud not in self.fleet.clouds:
            raise CloudConfigError(f"cloud {cloud!r}: fleet.yaml has {', '.join(sorted(self.fleet.clouds))}")
        built = load_driver(cloud)(deployment=self.fleet.deployment, settings=self.fleet.clouds[cloud], sessions=self.sessions)
        if not isinstance(built, SupportsDoctor):
            raise CloudConfigError(f"cloud {cloud!r}: its driver has no doctor")
        return built

    def examination(self, cloud: str) -> Examination:
        """Returns what the cloud's doctor has to know."""
        fleet = self.fleet
        return Examination(
            is_enforcing=fleet.mode is FleetMode.ENFORCE,
            asks_writes=self.asks_writes,
            nodes=fleet.limits.nodes,
            usd_per_hour=fleet.limits.usd_per_hour,
            backup_uri=fleet.backup.uri,
            backup_region=fleet.backup.region,
            uses_prices=cloud in fleet.prices.sources,
        )

    def checks(self, cloud: str) -> tuple[Check, ...]:
        """Returns every check, in the order in which it is best read; writes nothing but a probe object, in mode enforce.

        Raises:
            CloudConfigError: see ``driver``.
        """
        driver = self.driver(cloud)
        assert isinstance(driver, SupportsDoctor)  # noqa: S101 - driver() refuses others
        found = list(driver.examine(self.examination(cloud)))
        found += check_reach(driver, self.fleet.clouds[cloud].reach)
        found += [check_ledger(self.fleet), check_keys(self.fleet)]
        found += check_store(self.fleet, self.sessions)
        found += check_airflow()
        return tuple(found)

    def policy(self, cloud: str, whose: Any, account: str | None) -> Any:
        """Returns the policy document of a cloud. Raises CloudConfigError: its driver writes none."""
        driver = self.driver(cloud)
        if not isinstance(driver, SupportsPolicy):
            raise CloudConfigError(f"cloud {cloud!r}: its driver writes no policy document")
        return driver.policy(self.examination(cloud), whose, account=account)


def check_ledger(fleet: FleetFile) -> Check:
    """Says whether the ledger answers and has this program's schema. Only reads."""
    server = embedded_of(fleet)
    if server is not None and not server.is_running():
        return fail("ledger", f"the embedded PostgreSQL in {server.folder} is not running", "hostler ledger start")
    kind = "embedded" if server is not None else "external"
    try:
        found = migrate.current(ledger_url(fleet))
    except LedgerError as error:
        return fail("ledger", f"{kind}: {error}", "look at ledger.url, and whether PostgreSQL runs and lets us in")
    if found != HEAD:
        return fail("ledger", f"{kind}: schema {found or 'none'}, this program needs {HEAD}", "hostler ledger upgrade")
    return ok("ledger", f"{kind}, schema {found}")


def check_keys(fleet: FleetFile) -> Check:
    """Says whether the key service has its key, readable by us alone. Makes none."""
    folder = fleet.keys.folder.expanduser()
    if not (folder / MASTER_FILE).exists():
        fix = (
            f"nothing yet: the first run makes {folder / MASTER_FILE}; keep a copy elsewhere, without it no backup can be read"
        )
        return warn("keys", f"{folder} has no key yet", fix)
    try:
        return ok("keys", f"{LocalKeys(folder).key_id} in {folder}; keep a copy elsewhere")
    except KeyServiceError as error:
        return fail("keys", str(error), f"chmod 700 {folder}; chmod 600 {folder / MASTER_FILE}")
