"""Gives up old backups by the tenant's rules: only what the ledger knows, proved first, told first, a few at a time."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from hostler.lifecycle.backup_check import released
from hostler.lifecycle.backup_notes import DELETED, DELETING, GOING, RESTORED, BackupNote, condition_of, read_note, write_note
from hostler.lifecycle.events import make_event, words_of
from hostler.lifecycle.fleet import Fleet
from hostler.model.enums import FleetMode
from hostler.model.lease import LeaseView
from hostler.recipes.manifest import BackupError, sequence_of
from hostler.recipes.sealed import open_backup, problem_of
from hostler.vault.port import ObjectLockError, SupportsObjectLock, SupportsUpkeep
from hostler.vault.retention import BackupAge, Kept, Retention, judge

HOLD: Final = "hold.json"
"""Object in a lease's folder that keeps its backup whatever the rules say: a legal hold of one's own, in any store."""

MOST_DELETED: Final = 20
"""Backups given up in one run at most: a wrong number in fleet.yaml is seen before it has eaten everything."""


@dataclass(slots=True, kw_only=True)
class RetentionReport:
    """What retention did. ``deleted``: lease ids. ``errors``: what could not be judged or deleted; it stays."""

    judged: tuple[Kept, ...]
    report_only: str | None
    deleted: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def retain_backups(
    fleet: Fleet, rules: Callable[[str], Retention | None], *, who: str, dry_run: bool, most: int = MOST_DELETED
) -> RetentionReport:
    """Judges all backups of released leases and deletes those that no rule keeps.

    Before anything of a tenant goes, its newest good backup is read back whole; when that fails, nothing of the tenant goes.

    Args:
        rules: a tenant's retention; None keeps everything. dry_run: say what would go, delete nothing.
    """
    now = fleet.ledger.now()
    views = {view.lease.lease_id: view for view in released(fleet) if view.backups}
    notes = {lease_id: read_note(fleet.ledger, lease_id) for lease_id in views}
    ages = [_age(view, notes[lease_id]) for lease_id, view in views.items() if not _is(notes[lease_id], *GOING)]
    judged = judge(ages, rules, now)
    report = RetentionReport(judged=judged, report_only=_why_report_only(fleet, dry_run=dry_run))
    for lease_id, view in views.items():
        if _is(notes[lease_id], DELETING) and not report.report_only:
            _give_up(fleet, view, who, now, report)
    proved: dict[str, str | None] = {}
    for one in judged:
        if one.reasons:
            continue
        backup, tenant = one.backup, one.backup.tenant
        if report.report_only or len(report.deleted) >= most:
            report.left.append(backup.backup_id)
            continue
        if tenant not in proved:
            proved[tenant] = _newest_problem(fleet, judged, tenant)
            if proved[tenant]:
                report.errors.append(f"tenant {tenant}: nothing was deleted: {proved[tenant]}")
        if proved[tenant] is None:
            _give_up(fleet, views[backup.backup_id], who, now, report)
    return report


def hold_key(lease_id: str) -> str:
    """Returns the key of a lease's hold."""
    return f"{lease_id}/{HOLD}"


def set_hold(fleet: Fleet, lease_id: str, *, who: str, reason: str, is_held: bool) -> None:
    """Puts a hold on a lease's backup, or takes it off. Raises TypeError: the store can't delete."""
    event = make_event(lease_id, who, "backup.held" if is_held else "backup.unheld", reason)
    fleet.ledger.append_events([event])
    if is_held:
        content = {"who": who, "reason": reason, "at": fleet.ledger.now().isoformat()}
        fleet.store.put(hold_key(lease_id), json.dumps(content, sort_keys=True).encode())
    elif isinstance(fleet.store, SupportsUpkeep):
        fleet.store.delete(hold_key(lease_id))
    else:
        raise TypeError(f"{fleet.store.uri}: a store without deletion")


def _why_report_only(fleet: Fleet, *, dry_run: bool) -> str | None:
    if dry_run:
        return "dry run"
    if fleet.settings.mode is FleetMode.OBSERVE:
        return "mode: observe in fleet.yaml"
    if fleet.ledger.get_meta(RESTORED):
        return "this ledger was restored and nobody has confirmed it (`hostler reap --confirm`)"
    if not isinstance(fleet.store, SupportsUpkeep):
        return "the backup store can't delete"
    return None


def _is(note: BackupNote | None, *found: str) -> bool:
    return note is not None and note.found in found


def _age(view: LeaseView, note: BackupNote | None) -> BackupAge:
    return BackupAge(
        backup_id=view.lease.lease_id,
        tenant=view.lease.request.tenant,
        sealed_at=view.backups[-1].sealed_at,
        condition=condition_of(view, note),
    )


def _newest_problem(fleet: Fleet, judged: tuple[Kept, ...], tenant: str) -> str | None:
    """Reads the tenant's newest good backup back; returns what is wrong with it, or None."""
    newest = next(
        one.backup for one in reversed(judged) if one.backup.tenant == tenant and "the newest good one" in one.reasons
    )
    lease_id = newest.backup_id
    try:
        known = fleet.ledger.view(lease_id).backups[-1].manifest_sha256
        backup = open_backup(fleet.store, fleet.keys, lease_id, known_sha256=known)
        problems = (problem_of(fleet.store, lease_id, entry, backup.data_key) for entry in backup.manifest.objects)
        problem = next((found for found in problems if found), None)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is not proved
        problem = words_of(error)
    return f"its newest good backup, {lease_id}, can't be proved: {problem}" if problem else None


def _give_up(fleet: Fleet, view: LeaseView, who: str, now: datetime, report: RetentionReport) -> None:
    lease_id = view.lease.lease_id
    try:
        reason = _kept_by_store(fleet, lease_id, now)
        if reason is None:
            _delete(fleet, view, who, now)
    except (ObjectLockError, BackupError) as error:
        reason = words_of(error)
    except Exception as error:  # noqa: BLE001 - the store failed: the next run goes on
        report.errors.append(f"{lease_id}: {words_of(error)}")
        return
    if reason is None:
        report.deleted.append(lease_id)
    else:
        report.left.append(lease_id)


def _kept_by_store(fleet: Fleet, lease_id: str, now: datetime) -> str | None:
    """Returns why the store keeps a backup: a hold, or a lock on any of its objects; None when it does not."""
    keys = fleet.store.list_keys(f"{lease_id}/")
    if hold_key(lease_id) in keys:
        return "held by a person"
    if isinstance(fleet.store, SupportsObjectLock):
        for key in keys:
            if fleet.store.lock_of(key).holds_at(now):
                return f"{key} is locked"
    return None


def _delete(fleet: Fleet, view: LeaseView, who: str, now: datetime) -> None:
    """Who, what and why first; then manifests, newest first, and the rest: what is left of it never looks whole."""
    lease_id, newest, store = view.lease.lease_id, view.backups[-1], fleet.store
    assert isinstance(store, SupportsUpkeep)  # noqa: S101 - else retention only reports
    event = make_event(
        lease_id,
        who,
        "backup.deleting",
        f"no rule of tenant {view.lease.request.tenant} keeps it",
        sealed_at=newest.sealed_at.isoformat(),
        manifest_sha256=newest.manifest_sha256,
        size_bytes=newest.size_bytes,
    )
    fleet.ledger.append_events([event])
    going = BackupNote(found=DELETING, why="by retention", sha256=newest.manifest_sha256, looked_at=now.isoformat())
    write_note(fleet.ledger, lease_id, going)
    for key in sorted(store.list_keys(f"{lease_id}/"), key=lambda key: (-(sequence_of(key) or 0), key)):
        store.delete(key)
    write_note(fleet.ledger, lease_id, replace(going, found=DELETED))
