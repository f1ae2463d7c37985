"""``hostler doctor``: is everything there that a run needs? Each check with its fix."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from hostler.cloud.doctor import Check, CheckStatus
from hostler.cloud.errors import CloudConfigError
from hostler.model.enums import FleetMode
from hostler.wiring.doctor import Doctor
from hostler.wiring.doctor_airflow import is_there
from hostler.wiring.sdk_sessions import SdkSessions
from hostler.wiring.settings import read_fleet_file

_BAD = frozenset({CheckStatus.FAIL})
_NOT_GOOD = frozenset({CheckStatus.FAIL, CheckStatus.WARN, CheckStatus.UNKNOWN})
_NO_AIRFLOW = "Airflow is not set up on this machine: its settings were not looked at"


def doctor(options: argparse.Namespace) -> int:
    """Prints checks, or a policy document. Exit status 1 when a check fails; with ``--strict`` also for warn and unknown."""
    fleet = read_fleet_file()
    if options.policy and options.json:
        raise CloudConfigError("--policy prints JSON already; leave --json out")
    asks_writes = fleet.mode is FleetMode.ENFORCE or options.dry_runs
    made = Doctor(fleet=fleet, sessions=SdkSessions(), asks_writes=asks_writes)
    if options.policy:
        document = made.policy(options.cloud, options.policy, options.account)
        print(json.dumps(document, indent=2))
        if not options.account and "::*:" in json.dumps(document):
            print("hostler: the account is not known: give --account to narrow the document to it", file=sys.stderr)
        return 0
    checks = made.checks(options.cloud)
    remarks = [] if is_there() else [_NO_AIRFLOW]
    if options.json:
        document = {
            "cloud": options.cloud,
            "mode": fleet.mode.value,
            "checks": [asdict(item) for item in checks],
            "remarks": remarks,
        }
        print(json.dumps(document, indent=2))
    else:
        _show(checks, remarks)
    wanted = _NOT_GOOD if options.strict else _BAD
    return 1 if any(item.status in wanted for item in checks) else 0


def _show(checks: Sequence[Check], remarks: Sequence[str]) -> None:
    width = max(len(item.name) for item in checks)
    for item in checks:
        print(f"{item.status.value:<8}{item.name:<{width}}  {item.text}")
        if item.fix:
            print(f"{'':<8}{'':<{width}}  fix: {item.fix}")
    counts = Counter(item.status for item in checks)
    print("\n" + ", ".join(f"{counts[status]} {status.value}" for status in CheckStatus))
    for remark in remarks:
        print(remark)
