"""The composition root: fleet.yaml, a source of SDK sessions and a source of secrets become a Fleet. Nobody else builds one."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from hostler.cloud.driver import CloudDriver, SupportsPace
from hostler.cloud.errors import CloudUnavailableError
from hostler.cloud.registry import load_driver
from hostler.cloud.session import SessionSource
from hostler.config.clouds import CloudSettings, ReachSettings
from hostler.config.schema import FleetFile
from hostler.health.verdict import judge
from hostler.ledger.errors import LedgerError
from hostler.ledger.port import Ledger
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.seams import Seams
from hostler.reach.port import Target
from hostler.reach.ssh import SshTransport
from hostler.recipes import user_data
from hostler.recipes.control import SshNodeControl
from hostler.stores.postgres import PostgresLedger
from hostler.vault.local import LocalKeys
from hostler.wiring.keeping import backup_store, key_service
from hostler.wiring.notices import tell_quietly
from hostler.wiring.prices import AcceptedPrices
from hostler.wiring.settings import ledger_url, lifecycle_settings, read_fleet_file, silences_of

PRINCIPAL = "hostler"
"""Who user certificates are made out to; ``recipes.user_data`` lets this principal in."""


def build_fleet(*, sessions: SessionSource, secret: Callable[[str], str], fleet_file: FleetFile | None = None) -> Fleet:
    """Builds a Fleet.

    Args:
        sessions: gives SDK clients. secret: name of a secret to its value. fleet_file: None reads it from where it is.

    Raises:
        FleetFileError: fleet.yaml is wrong or missing. LedgerUnavailableError: buy nothing, try again.
        CloudConfigError: a cloud has no driver.
    """
    fleet = fleet_file or read_fleet_file()
    identity = LocalKeys(fleet.keys.folder.expanduser())
    settings = lifecycle_settings(fleet)
    transport = SshTransport(partial(identity.user_certificate, PRINCIPAL))
    ledger = PostgresLedger(ledger_url(fleet))
    return Fleet(
        settings=settings,
        ledger=ledger,
        drivers=_drivers(fleet, sessions, ledger),
        nodes=SshNodeControl(transport, jumps=_jumps(fleet)),
        keys=key_service(fleet, sessions, identity),
        identity=identity,
        store=backup_store(fleet, sessions),
        user_data=lambda intent: user_data.build(intent, identity, user=settings.login_of(intent.offering.cloud).user),
        sleep=asyncio.sleep,
        secret=secret,
        seams=Seams(with_prices=AcceptedPrices(fleet), judge=partial(judge, silences=silences_of(fleet))),
        tell=partial(tell_quietly, ledger, fleet),
    )


@contextmanager
def open_fleet() -> Iterator[Fleet]:
    """Builds a Fleet for the command line (the SDKs' own credentials, secrets from the environment) and closes its ledger."""
    from hostler.wiring.sdk_sessions import SdkSessions

    fleet = build_fleet(sessions=SdkSessions(), secret=secret_of_environment)
    try:
        yield fleet
    finally:
        if isinstance(fleet.ledger, PostgresLedger):
            fleet.ledger.close()


def _drivers(fleet: FleetFile, sessions: SessionSource, ledger: Ledger) -> Mapping[str, CloudDriver]:
    made: dict[str, CloudDriver] = {}
    for name, settings in fleet.clouds.items():
        made[name] = load_driver(name)(deployment=fleet.deployment, settings=settings, sessions=sessions)
        if isinstance(made[name], SupportsPace):
            made[name].pace_with(partial(claim_call, ledger, name, settings))  # type: ignore[attr-defined] # asked above
    return made


def claim_call(ledger: Ledger, name: str, settings: CloudSettings) -> float:
    """Takes one API call from what the account may be sent; returns seconds to wait, 0 when it was taken.

    Raises:
        CloudUnavailableError: the ledger, which counts for all processes, cannot be asked: nothing is sent.
    """
    try:
        return ledger.claim_call(
            f"{name}/{settings.connection or 'default'}", calls_per_s=settings.calls_per_s, burst=settings.calls_burst
        )
    except LedgerError as error:
        raise CloudUnavailableError(f"calls to {name} cannot be counted: {error}") from error


def _jumps(fleet: FleetFile) -> Mapping[str, Target]:
    """Returns the jump host of each cloud that has one."""
    found = {name: _jump(settings.reach) for name, settings in fleet.clouds.items()}
    return {name: jump for name, jump in found.items() if jump is not None}


def _jump(reach: ReachSettings) -> Target | None:
    if reach.jump_host is None or reach.jump_host_key is None:
        return None
    user, _, place = reach.jump_host.partition("@")
    host, _, port = place.rpartition(":")
    return Target(host=host, port=int(port), user=user, host_key=reach.jump_host_key)


def secret_of_environment(name: str) -> str:
    """Returns ``HOSTLER_SECRET_<NAME>``. Raises KeyError naming the variable, never a value."""
    variable: Any = f"HOSTLER_SECRET_{name.upper().replace('-', '_')}"
    if variable not in os.environ:
        raise KeyError(f"secret {name!r}: set {variable}")
    return os.environ[variable]
