"""Proves the backups of leases that are over, again and again, and seals what a run could not seal."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from hostler.lifecycle.backup_notes import GOING, BackupNote, read_note, write_note
from hostler.lifecycle.events import make_event, words_of
from hostler.lifecycle.fleet import Fleet
from hostler.model.enums import LeaseState
from hostler.model.lease import LeaseView
from hostler.recipes.backup import all_objects
from hostler.recipes.manifest import BackupError
from hostler.recipes.sealed import open_backup, problem_of
from hostler.vault.port import SupportsUpkeep
from hostler.vault.retention import Condition

_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupFinding:
    """One backup as found now. ``found``: a ``Condition``, or ``sealed`` when it was sealed just now. ``why``: in words."""

    lease_id: str
    tenant: str
    found: str
    why: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What a check saw. ``left_count``: backups that are for a later run, since the bytes of this one were used up."""

    findings: tuple[BackupFinding, ...]
    left_count: int

    def of(self, *found: str) -> tuple[BackupFinding, ...]:
        """Returns the findings of these kinds."""
        return tuple(one for one in self.findings if one.found in found)


def check_backups(fleet: Fleet, *, who: str, most_bytes: int | None = None) -> CheckReport:
    """Seals what is not sealed, and reads back and opens every backup, the ones that were proved longest ago first.

    Only leases that are released are looked at: nothing writes to their backups any more.

    Args:
        most_bytes: begin no further backup once this much was read; at least one is always looked at. None: all.
    """
    due = sorted(_due(fleet), key=lambda one: (one[1] is not None, one[1].looked_at if one[1] else ""))
    findings: list[BackupFinding] = []
    read_bytes = 0
    for view, note in due:
        if findings and most_bytes is not None and read_bytes >= most_bytes:
            break
        finding = _Look(fleet, view, note, who).run()
        if finding is not None:
            findings.append(finding)
            read_bytes += finding.size_bytes
    looked = {finding.lease_id for finding in findings}
    is_cut = most_bytes is not None and read_bytes >= most_bytes
    return CheckReport(
        findings=tuple(findings),
        left_count=sum(view.lease.lease_id not in looked for view, _ in due) if is_cut else 0,
    )


def released(fleet: Fleet) -> Iterator[LeaseView]:
    """Yields the leases whose backups are final."""
    for lease in fleet.ledger.list_leases(LeaseState.RELEASED):
        if lease.wrapped_data_key is not None and lease.deployment == fleet.settings.deployment:
            yield fleet.ledger.view(lease.lease_id)


def _due(fleet: Fleet) -> Iterator[tuple[LeaseView, BackupNote | None]]:
    for view in released(fleet):
        note = read_note(fleet.ledger, view.lease.lease_id)
        if note is None or note.found not in GOING:
            yield view, note


@dataclass(slots=True)
class _Look:
    """One look at one lease's backup."""

    fleet: Fleet
    view: LeaseView
    note: BackupNote | None
    who: str

    def run(self) -> BackupFinding | None:
        """Returns what was found; None when the lease never shipped anything."""
        lease_id = self.view.lease.lease_id
        try:
            if isinstance(self.fleet.store, SupportsUpkeep):
                self.fleet.store.abort_uploads(f"{lease_id}/")
            if self._is_unsealed():
                return self._seal()
            return self._prove() if self.view.backups else None
        except BackupError as error:
            return self._told(Condition.DAMAGED, words_of(error))
        except Exception as error:  # noqa: BLE001 - a store or key service that fails says nothing of the backup
            return self._told(Condition.UNKNOWN, words_of(error))

    def _is_unsealed(self) -> bool:
        """True when nodes shipped what no sealing of the ledger names."""
        lease_id = self.view.lease.lease_id
        shipped = {entry.key for entry in all_objects(self.fleet.store, lease_id)}
        if not self.view.backups:
            return bool(shipped)
        backup = open_backup(self.fleet.store, self.fleet.keys, lease_id, known_sha256=self.view.backups[-1].manifest_sha256)
        is_known = backup.sha256 == self.view.backups[-1].manifest_sha256
        return not is_known or bool(shipped - {entry.key for entry in backup.manifest.objects})

    def _seal(self) -> BackupFinding:
        fleet, lease = self.fleet, self.view.lease
        backup = fleet.seams.seal(fleet.store, lease, (), fleet.ledger.now(), keys=fleet.keys)
        known = next((row for row in self.view.backups if row.backup_id == backup.backup_id), None)
        if known is None or known.manifest_sha256 != backup.manifest_sha256:
            why = f"{backup.object_count} objects, {backup.size_bytes} bytes, sealed after the run"
            event = make_event(lease.lease_id, self.who, "backup.sealed", why, manifest_uri=backup.manifest_uri)
            row = replace(backup, row_version=known.row_version if known else 0)
            fleet.crash("write:backup-sealed-later:before")
            fleet.ledger.write(lease.lease_id, [row], [event])
        return self._told(Condition.GOOD, "", sha256=backup.manifest_sha256, size_bytes=backup.size_bytes, shown="sealed")

    def _prove(self) -> BackupFinding:
        """Reads every object back and opens it."""
        newest, store = self.view.backups[-1], self.fleet.store
        lease_id = self.view.lease.lease_id
        backup = open_backup(store, self.fleet.keys, lease_id, known_sha256=newest.manifest_sha256)
        found = (problem_of(store, lease_id, entry, backup.data_key) for entry in backup.manifest.objects)
        problems = [problem for problem in found if problem]
        words = f"{len(problems)} damaged: {'; '.join(problems[:_MOST_NAMED])}" if problems else ""
        condition = Condition.DAMAGED if problems else Condition.GOOD
        return self._told(condition, words, sha256=backup.sha256, size_bytes=newest.size_bytes)

    def _told(
        self, condition: Condition, why: str, *, sha256: str | None = None, size_bytes: int = 0, shown: str | None = None
    ) -> BackupFinding:
        """Remembers the look, and tells of a change for the worse once."""
        lease, ledger = self.view.lease, self.fleet.ledger
        known = sha256 or (self.view.backups[-1].manifest_sha256 if self.view.backups else None)
        is_news = self.note is None or (self.note.found, self.note.sha256) != (condition, known)
        if condition is not Condition.GOOD and is_news:
            ledger.append_events([make_event(lease.lease_id, self.who, f"backup.{condition}", why)])
        looked_at = ledger.now().isoformat()
        write_note(ledger, lease.lease_id, BackupNote(found=condition, why=why, sha256=known, looked_at=looked_at))
        found = shown or condition.value
        return BackupFinding(lease_id=lease.lease_id, tenant=lease.request.tenant, found=found, why=why, size_bytes=size_bytes)
