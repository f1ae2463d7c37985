"""What is remembered of each lease's backup between runs, in the ledger: when it was last proved, and what was found."""

import json
from dataclasses import asdict, dataclass

from hostler.ledger.port import Ledger
from hostler.model.lease import LeaseView
from hostler.vault.retention import Condition

RESTORED = "restored_ledger"
"""Set when this ledger came from a backup and no person has confirmed it yet; its value says from which."""

DELETED = "deleted"
DELETING = "deleting"
"""Retention has begun to delete it; a run that died half-way is finished by the next."""

GOING = (DELETING, DELETED)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupNote:
    """The last look at a backup.

    Attributes:
        found: a ``Condition``, ``deleting`` or ``deleted``. why: in words; empty when good.
        sha256: of the manifest that was looked at; None when none could be read. looked_at: ISO time of the ledger.
    """

    found: str
    why: str
    sha256: str | None
    looked_at: str


def read_note(ledger: Ledger, lease_id: str) -> BackupNote | None:
    """Returns what is remembered; None when nobody looked yet."""
    kept = ledger.get_meta(f"backup/{lease_id}")
    return BackupNote(**json.loads(kept)) if kept else None


def write_note(ledger: Ledger, lease_id: str, note: BackupNote) -> None:
    """Remembers a look."""
    ledger.set_meta(f"backup/{lease_id}", json.dumps(asdict(note), sort_keys=True))


def condition_of(view: LeaseView, note: BackupNote | None) -> Condition:
    """Returns what may be said of a sealed backup: good, when its newest sealing was read back and nothing was found since."""
    newest = view.backups[-1]
    if note is None or note.sha256 != newest.manifest_sha256:
        return Condition.GOOD if newest.is_verified and (note is None or note.found == Condition.GOOD) else Condition.UNKNOWN
    return Condition(note.found) if note.found in set(Condition) else Condition.UNKNOWN
