"""From fleet.yaml to the ledger and to the lifecycle's settings. No cloud SDK is touched here."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hostler.cloud.registry import settings_models
from hostler.config.fleet_file import find_fleet_file, load_fleet
from hostler.config.schema import FleetFile, ScaleDownSettings
from hostler.health.engine import Silence
from hostler.ledger.errors import LedgerUnavailableError
from hostler.ledger.port import Caps
from hostler.lifecycle.fleet import LifecycleSettings, Login
from hostler.lifecycle.policies import Housekeeping, ScaleDownPolicy, SweepPolicy
from hostler.stores.embedded import EmbeddedPostgres
from hostler.stores.postgres import PostgresLedger

DATABASE = "hostler"


def read_fleet_file(path: Path | None = None) -> FleetFile:
    """Returns the checked fleet file (``path``, or where ``find_fleet_file`` looks). Raises FleetFileError."""
    return load_fleet(path or find_fleet_file(), settings_models())


def embedded_of(fleet: FleetFile) -> EmbeddedPostgres | None:
    """Returns the embedded server of the fleet; None when the ledger is on a PostgreSQL of the user's own."""
    if fleet.ledger.url.get_secret_value() != "embedded":
        return None
    return EmbeddedPostgres(fleet.ledger.folder.expanduser())


def ledger_url(fleet: FleetFile) -> str:
    """Returns the address of the ledger's database; it may hold a password.

    Raises:
        LedgerUnavailableError: the embedded server is not running.
    """
    server = embedded_of(fleet)
    if server is None:
        return fleet.ledger.url.get_secret_value()
    if not server.is_running():
        raise LedgerUnavailableError(f"the embedded ledger in {server.folder} is not running: hostler ledger start")
    return server.url(DATABASE)


@contextmanager
def open_ledger(fleet: FleetFile) -> Iterator[PostgresLedger]:
    """Opens the ledger and closes it again. Raises LedgerUnavailableError."""
    ledger = PostgresLedger(ledger_url(fleet))
    try:
        yield ledger
    finally:
        ledger.close()


def silences_of(fleet: FleetFile) -> tuple[Silence, ...]:
    """Returns the maintenance that the fleet file announces."""
    return tuple(
        Silence(starts_at=one.starts_at, ends_at=one.ends_at, who=one.who, why=one.why, codes=one.codes)
        for one in fleet.health.silences
    )


def lifecycle_settings(fleet: FleetFile) -> LifecycleSettings:
    """Returns the lifecycle's knobs; each tenant's caps hold the deployment's too."""
    caps = {
        tenant: Caps(
            usd_per_hour=fleet.limits.usd_per_hour,
            nodes=fleet.limits.nodes,
            tenant_usd_per_hour=limits.usd_per_hour,
            tenant_nodes=limits.nodes,
        )
        for tenant, limits in fleet.tenants.items()
    }
    return LifecycleSettings(
        deployment=fleet.deployment,
        mode=fleet.mode,
        tenant_caps=caps,
        usd_per_run=fleet.limits.usd_per_run,
        destroyed_per_tick=fleet.limits.destroyed_per_tick,
        logins={name: Login(user=cloud.reach.user, port=cloud.reach.port) for name, cloud in fleet.clouds.items()},
        backup_uri=fleet.backup.uri,
        backup_endpoint_url=fleet.backup.endpoint_url,
        backup_region=fleet.backup.region,
        scale_down={tenant: _scale_down(limits.scale_down) for tenant, limits in fleet.tenants.items()},
        cost_sweep=SweepPolicy(
            mode=Housekeeping(fleet.cost_sweep.mode),
            grace_s=fleet.cost_sweep.grace_s,
            stopped_after_s=fleet.cost_sweep.stopped_after_s,
        ),
        **fleet.timing.model_dump(),
    )


def _scale_down(given: ScaleDownSettings) -> ScaleDownPolicy:
    return ScaleDownPolicy(mode=Housekeeping(given.mode), idle_after_s=given.idle_after_s, grace_s=given.grace_s)
