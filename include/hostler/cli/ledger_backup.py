"""``hostler ledger backup``, ``backups``, ``restore`` and ``rebuild``."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from hostler.cli.act import who
from hostler.cli.table import render
from hostler.cloud.registry import load_driver
from hostler.config.schema import FleetFile
from hostler.lifecycle.rebuild import Rebuilt, look
from hostler.stores.dump import Method
from hostler.vault.port import ObjectStore
from hostler.wiring.keeping import backup_store, key_service
from hostler.wiring.ledger_backup import back_up_ledger, list_ledger_backups, read_ledger_backup, restore_ledger
from hostler.wiring.sdk_sessions import SdkSessions
from hostler.wiring.settings import ledger_url, read_fleet_file


def backup(options: argparse.Namespace) -> int:
    """Writes an encrypted backup of the ledger, reads it back, and names it."""
    fleet = read_fleet_file()
    store, sessions = _store(fleet, options.into), SdkSessions()
    method: Method | None = "rows" if options.rows else None
    made = back_up_ledger(ledger_url(fleet), fleet.deployment, store, key_service(fleet, sessions), method=method)
    print(f"{made.name}: {made.row_count} rows by {made.method}, {made.size_bytes} bytes, read back; in {store.uri}")
    return 0


def backups(options: argparse.Namespace) -> int:
    """Lists the ledger's backups. Exit status 1 when there is none, or one can't be proved."""
    fleet = read_fleet_file()
    store, keys = _store(fleet, options.source), key_service(fleet, SdkSessions())
    rows = []
    is_good = True
    for name in list_ledger_backups(store, fleet.deployment):
        try:
            made, _ = read_ledger_backup(store, keys, fleet.deployment, name)
            rows.append((name, str(made.row_count), str(made.size_bytes), made.method, made.schema, "manifest is proved"))
        except Exception as error:  # noqa: BLE001 - the others are shown too
            is_good = False
            rows.append((name, "", "", "", "", str(error)))
    print(render(("NAME", "ROWS", "BYTES", "METHOD", "SCHEMA", "STATE"), rows) if rows else f"no ledger backup in {store.uri}")
    return 0 if rows and is_good else 1


def restore(options: argparse.Namespace) -> int:
    """Fills an empty ledger from a backup."""
    fleet = read_fleet_file()
    store, keys = _store(fleet, options.source), key_service(fleet, SdkSessions())
    made = restore_ledger(ledger_url(fleet), fleet.deployment, store, keys, who=who(), name=options.name)
    print(
        f"{made.name}: {made.row_count} rows are back, every one proved. What was bought and ended since {made.made_at} is not among\n"
        "them: purchases are stopped, and reconcile only reports. Look (hostler reap --dry-run; hostler ledger rebuild --dry-run),\n"
        "then: hostler reap --confirm; hostler resume"
    )
    return 0


def rebuild(options: argparse.Namespace) -> int:
    """Prints what the clouds' tags say a new ledger would hold. Exit status 1 when a person has something to decide."""
    fleet, sessions = read_fleet_file(), SdkSessions()
    drivers = {
        name: load_driver(name)(deployment=fleet.deployment, settings=settings, sessions=sessions)
        for name, settings in fleet.clouds.items()
    }
    found = look(drivers, fleet.deployment)
    print(json.dumps(asdict(found), indent=2, default=str) if options.json else _shown(found))
    return 1 if found.doubts or found.errors else 0


def _shown(found: Rebuilt) -> str:
    leases = [(one.lease_id, one.tenant, one.state, str(one.slot_count), str(one.created_at or "?")) for one in found.leases]
    nodes = [
        (one.intent_id, one.provider_id, one.instance_type, one.zone, one.capacity_type, one.state, str(one.launched_at or "?"))
        for one in found.nodes
    ]
    parts = [render(("LEASE", "TENANT", "STATE", "SLOTS", "SINCE"), leases)] if leases else []
    parts += [render(("INTENT", "MACHINE", "TYPE", "ZONE", "CAPACITY", "STATE", "LAUNCHED"), nodes)] if nodes else []
    parts += [f"doubt: {subject}: {why}" for subject, why in found.doubts]
    parts += [f"could not look: {error}" for error in found.errors]
    parts.append(
        f"{len(found.leases)} leases, {len(found.nodes)} intents and nodes would be written; {len(found.foreign)} machines are "
        "not ours. Nothing was written: requests, plans, jobs and costs are in no tag (hostler ledger restore has them)"
    )
    return "\n".join(parts)


def _store(fleet: FleetFile, place: str | None) -> ObjectStore:
    """Returns the backup store, or the one at ``place``: a folder or a URI of the same kinds."""
    if place is None:
        return backup_store(fleet, SdkSessions())
    uri = place if "://" in place else Path(place).expanduser().absolute().as_uri()
    # Locks are asked for the backup store; another place is the caller's to guard.
    moved = fleet.backup.model_copy(update={"uri": uri, "object_lock": None})
    return backup_store(fleet.model_copy(update={"backup": moved}), SdkSessions())
