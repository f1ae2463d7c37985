"""``hostler adopt --dry-run``: what runs in the account already, and what Hostler would say of it."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal

from hostler.cli.table import ago, render, usd
from hostler.cloud.errors import CloudConfigError
from hostler.lifecycle.survey import Surveyed
from hostler.wiring.sdk_sessions import SdkSessions
from hostler.wiring.settings import read_fleet_file
from hostler.wiring.survey import survey_fleet


def adopt(options: argparse.Namespace) -> int:
    """Prints every machine with its cost a month and what would be done with it. Exit status 1 when something was not looked at.

    Raises:
        CloudConfigError: ``--dry-run`` is missing: machines are shown, not taken over.
    """
    if not options.dry_run:
        raise CloudConfigError("adopt shows machines and takes none over: give --dry-run")
    found = survey_fleet(read_fleet_file(), SdkSessions())
    if options.json:
        print(json.dumps(asdict(found), indent=2, default=str))
        return 1 if found.errors else 0
    rows = [
        (
            item.provider_id,
            item.name or "-",
            f"{item.instance_type} {item.capacity_type}",
            item.zone,
            item.state,
            ago(item.launched_at, found.at),
            usd(item.usd_per_month) if item.usd_per_month is not None else "unknown",
            item.whose,
            ", ".join(item.owners) or "nobody named",
        )
        for item in found.machines
    ]
    print(render(("PROVIDER ID", "NAME", "TYPE", "ZONE", "STATE", "UP", "USD/MONTH", "WHOSE", "OWNER TAGS"), rows))
    print()
    for item in found.machines:
        print(
            f"{item.provider_id}\n  cost: {item.cost_note}\n  load: {item.load}\n  health: {item.health}\n  policy: {item.policy}"
        )
    _print_sum(found.machines)
    for error in found.errors:
        print(f"could not look: {error}")
    return 1 if found.errors else 0


def _print_sum(machines: Sequence[Surveyed]) -> None:
    known = sum((item.usd_per_month for item in machines if item.usd_per_month is not None), Decimal(0))
    missing = sum(1 for item in machines if item.usd_per_month is None)
    rest = f", and {missing} without a known price" if missing else ""
    print(f"\n{len(machines)} machines, {usd(known)} USD a month{rest}; nothing was changed")
