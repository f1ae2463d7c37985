"""Commands that act. Each names who acted in the event log."""

import argparse
import asyncio
import getpass
import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from hostler.cli.show import find_lease
from hostler.cli.table import render
from hostler.lifecycle.converge import converge
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.outcome import Outcome, Reached, Waiting
from hostler.lifecycle.reap import ReapReport, confirm_epoch, reconcile
from hostler.lifecycle.release import begin_release
from hostler.model.enums import Phase
from hostler.model.lease import Event
from hostler.recipes.backup import restore as restore_backup
from hostler.wiring.build import open_fleet
from hostler.wiring.notices import tell_people
from hostler.wiring.settings import open_ledger, read_fleet_file


def who() -> str:
    """Returns who acts, for the event log."""
    return f"cli/{getpass.getuser()}"


def release(options: argparse.Namespace) -> int:
    """Ends a lease. Exit status 1 when the cloud has not yet said that all is gone: reconcile goes on with it."""
    with open_fleet() as fleet:
        lease_id = find_lease(fleet.ledger, options.lease).lease_id
        begin_release(fleet, lease_id, who=who(), reason=options.reason)
        outcome = asyncio.run(_release(fleet, lease_id, options.wait_s))
    if isinstance(outcome, Reached):
        print(f"{lease_id}: released; the cloud says that all its machines are gone")
        return 0
    print(f"{lease_id}: not gone yet: {outcome.reason}; run again, or leave it to `hostler reap` and hostler_fleet_reconcile")
    return 1


async def _release(fleet: Fleet, lease_id: str, wait_s: float) -> Outcome:
    """Converges until released or the time is up."""
    loop = asyncio.get_running_loop()
    end = loop.time() + wait_s
    try:
        while True:
            left_s = max(1.0, end - loop.time())
            outcome = await converge(fleet, lease_id, Phase.RELEASE, holder=who(), budget_s=left_s)
            if not isinstance(outcome, Waiting) or loop.time() + outcome.retry_after_s > end:
                return outcome
            await asyncio.sleep(outcome.retry_after_s)
    finally:
        await fleet.nodes.close()


def reap(options: argparse.Namespace) -> int:
    """Runs one reconcile. Exit status 1 when something is left that needs another look."""
    with open_fleet() as fleet:
        if options.confirm:
            confirm_epoch(fleet, who=who())
        report = asyncio.run(_reap(fleet, dry_run=options.dry_run))
        told = tell_people(fleet.ledger, secret=fleet.secret)
    if options.json:
        print(json.dumps(asdict(report), indent=2, default=str))
    else:
        _print_report(report)
        if told:
            print(f"{told} notices of what needs a person were given to the receivers of notify")
    return 1 if report.report_only or report.errors or any(finding.kind != "foreign" for finding in report.findings) else 0


def _print_report(report: ReapReport) -> None:
    rows = [(finding.kind, finding.subject, finding.action, finding.reason) for finding in report.findings]
    if rows:
        print(render(("KIND", "SUBJECT", "ACTION", "REASON"), rows))
    if report.report_only:
        print(f"report only: {report.report_only}")
    for error in report.errors:
        print(f"could not look: {error}")
    print(f"{report.live_count} live machines of this deployment")


async def _reap(fleet: Fleet, *, dry_run: bool) -> ReapReport:
    try:
        return await reconcile(fleet, who=who(), dry_run=dry_run)
    finally:
        await fleet.nodes.close()


def stop_spending(options: argparse.Namespace) -> int:
    """Stops all purchases."""
    _set_stopped(stopped=True, why=options.reason)
    print("spending is stopped: nothing more is bought anywhere; machines that run go on (hostler status, hostler release)")
    return 0


def resume(options: argparse.Namespace) -> int:
    """Allows purchases again."""
    del options
    _set_stopped(stopped=False, why="asked by a person")
    print("purchases are allowed again")
    return 0


def _set_stopped(*, stopped: bool, why: str) -> None:
    what = "spending.stopped" if stopped else "spending.resumed"
    with open_ledger(read_fleet_file()) as ledger:
        event = Event(lease_id=None, who=who(), what=what, why=why, at=ledger.now())
        ledger.set_spending_stopped(stopped, [event])


def restore(options: argparse.Namespace) -> int:
    """Verifies and unpacks a lease's backup."""
    into = Path(options.into)
    if into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise FileExistsError(f"--into {into}: must not exist or be an empty folder")
    with open_fleet() as fleet:
        lease_id = find_lease(fleet.ledger, options.lease).lease_id
        backups = fleet.ledger.view(lease_id).backups
        known = backups[-1].manifest_sha256 if backups else None
        report = restore_backup(fleet.store, fleet.keys, lease_id, into, manifest_sha256=known)
        event = Event(
            lease_id=lease_id,
            who=who(),
            what="backup.restored",
            why="asked by a person",
            at=datetime.now(UTC),
            evidence=(("objects", str(report.object_count)), ("bytes", str(report.size_bytes))),
        )
        fleet.ledger.append_events([event])
    print(f"{lease_id}: {report.object_count} objects, {report.size_bytes} bytes, every hash right; unpacked into {into}")
    return 0
