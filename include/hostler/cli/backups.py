"""``hostler backups``: what is kept of each run, holds, checks, drills."""

import argparse
import json
import random
from dataclasses import asdict
from pathlib import Path

from hostler.cli.act import who
from hostler.cli.show import find_lease
from hostler.cli.table import render
from hostler.lifecycle.backup_check import check_backups
from hostler.lifecycle.backup_notes import read_note
from hostler.lifecycle.backup_retention import retain_backups, set_hold
from hostler.lifecycle.drill import drill as run_drill
from hostler.wiring.build import open_fleet
from hostler.wiring.keeping import retention_of
from hostler.wiring.settings import read_fleet_file


def show(options: argparse.Namespace) -> int:
    """Lists sealed backups with the last look at each, and what retention says. Exit status 1 when one is not good."""
    file = read_fleet_file()
    with open_fleet() as fleet:
        report = retain_backups(fleet, lambda tenant: retention_of(file, tenant), who=who(), dry_run=True)
        notes = {one.backup.backup_id: read_note(fleet.ledger, one.backup.backup_id) for one in report.judged}
    rows = []
    for one in report.judged:
        note, backup = notes[one.backup.backup_id], one.backup
        words = ", ".join(one.reasons) or "NO RULE KEEPS IT"
        looked = note.looked_at if note else "at its sealing"
        rows.append((backup.backup_id, backup.tenant, str(backup.sealed_at), backup.condition.value, looked, words))
    if options.json:
        names = ("lease", "tenant", "sealed_at", "condition", "looked_at", "kept_by")
        print(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=2))
    else:
        print(render(("LEASE", "TENANT", "SEALED", "CONDITION", "PROVED", "KEPT BY"), rows) if rows else "no sealed backup yet")
    return 0 if all(one.backup.condition == "good" for one in report.judged) else 1


def check(options: argparse.Namespace) -> int:
    """Reads all backups back, and seals what is not. Exit status 1 when one is not good."""
    del options
    with open_fleet() as fleet:
        report = check_backups(fleet, who=who())
    for one in report.findings:
        print(f"{one.lease_id}: {one.found}{': ' + one.why if one.why else ''}")
    return 1 if report.of("damaged", "unknown") else 0


def drill(options: argparse.Namespace) -> int:
    """Restores one and trains on from it. Exit status 1 when it does not."""
    scratch = Path(options.scratch) if options.scratch else None
    with open_fleet() as fleet:
        lease_id = find_lease(fleet.ledger, options.lease).lease_id if options.lease else None
        report = run_drill(fleet, who=who(), rng=random.Random(), scratch=scratch, lease_id=lease_id)  # noqa: S311 - no secret
    if report is None:
        print("no sealed backup to restore")
        return 1
    print(json.dumps(asdict(report), indent=2))
    return 0 if report.is_good else 1


def hold(options: argparse.Namespace) -> int:
    """Keeps a backup whatever retention says."""
    return _hold(options, is_held=True)


def unhold(options: argparse.Namespace) -> int:
    """Lets retention judge a backup again."""
    return _hold(options, is_held=False)


def _hold(options: argparse.Namespace, *, is_held: bool) -> int:
    with open_fleet() as fleet:
        lease_id = find_lease(fleet.ledger, options.lease).lease_id
        set_hold(fleet, lease_id, who=who(), reason=options.reason, is_held=is_held)
    print(f"{lease_id}: {'held: retention will not touch it' if is_held else 'no longer held'}")
    return 0
