"""Backups of the ledger in the backup store: sealed, proved, and named last, so that one that broke off is never taken for whole.

``ledger/<deployment>/<time>.hste`` is the dump in an envelope, ``<time>.json`` its manifest with a proof under the same data key.
"""

import hashlib
import hmac
import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from hostler.ledger.errors import LedgerUnavailableError
from hostler.lifecycle.backup_notes import RESTORED
from hostler.lifecycle.events import make_event
from hostler.recipes.manifest import BackupError
from hostler.stores import dump
from hostler.stores.postgres import PostgresLedger
from hostler.stores.tables import HEAD
from hostler.vault.envelope import EnvelopeError, PieceReader, Sealer, open_pieces
from hostler.vault.port import KeyProvider, ObjectStore, SupportsObjectLock, SupportsUpkeep

_FORMAT: Final = "hostler-ledger-backup"
_NAME: Final = re.compile(r"[0-9]{8}T[0-9]{6}\.[0-9]{6}Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerBackup:
    """One backup of the ledger.

    Attributes:
        name: its time, ``20261201T120000.000000Z``; later ones sort later. method: ``pg_dump`` or ``rows``. schema: migration.
        counts: rows by table. sha256, plain_sha256: of the sealed and of the plain stream.
    """

    name: str
    deployment: str
    made_at: str
    method: str
    schema: str
    counts: dict[str, int]
    sha256: str
    plain_sha256: str
    size_bytes: int
    key_id: str
    wrapped_data_key: str

    @property
    def row_count(self) -> int:
        """Rows of all tables."""
        return sum(self.counts.values())


def back_up_ledger(
    url: str, deployment: str, store: ObjectStore, keys: KeyProvider, *, method: dump.Method | None = None
) -> LedgerBackup:
    """Writes a backup and reads it back. The ledger may be in use: the backup is one moment of it.

    Args:
        method: None chooses.

    Raises:
        LedgerUnavailableError, KeyServiceError, BackupError: no backup was made; earlier ones are as they were.
    """
    if not isinstance(store, SupportsUpkeep):
        raise BackupError(f"{store.uri}: a store that takes no files")
    chosen = method or dump.choose_method(url)
    made_at = datetime.now(UTC)
    name = made_at.strftime("%Y%m%dT%H%M%S.%fZ")
    data_key, wrapped = keys.new_data_key(_context(deployment))
    with tempfile.TemporaryDirectory(prefix="hostler-ledger-") as folder:
        spooled = Path(folder) / "dump"
        with spooled.open("wb") as sink:
            sealer = Sealer(sink, data_key, _key(deployment, name))
            counts = dump.dump(url, sealer, chosen)
            sealed = sealer.close()
        store.put_file(_key(deployment, name), spooled)
    made = LedgerBackup(
        name=name,
        deployment=deployment,
        made_at=made_at.isoformat(),
        method=chosen,
        schema=HEAD,
        counts=counts,
        sha256=sealed.sha256,
        plain_sha256=sealed.plain_sha256,
        size_bytes=sealed.size_bytes,
        key_id=keys.key_id,
        wrapped_data_key=wrapped,
    )
    for _ in _proved(store, made, data_key):
        pass
    _lock(store, _key(deployment, name), made_at)
    store.put(_manifest_key(deployment, name), _written(made, data_key), if_absent=True)
    _lock(store, _manifest_key(deployment, name), made_at)
    return made


def list_ledger_backups(store: ObjectStore, deployment: str) -> tuple[str, ...]:
    """Returns the names of whole backups, oldest first. They are not proved yet."""
    keys = store.list_keys(f"ledger/{deployment}/")
    names = (key.rpartition("/")[2].removesuffix(".json") for key in keys if key.endswith(".json"))
    return tuple(sorted(name for name in names if _NAME.fullmatch(name)))


def read_ledger_backup(store: ObjectStore, keys: KeyProvider, deployment: str, name: str) -> tuple[LedgerBackup, bytes]:
    """Returns a backup's proved manifest and its data key. Raises BackupError, KeyServiceError."""
    words = f"ledger backup {name} of {deployment}"
    try:
        document = json.loads(store.get(_manifest_key(deployment, name)))
        proof = document.pop("proof")
        is_ours = document.pop("format") == _FORMAT and (document["deployment"], document["name"]) == (deployment, name)
        made = LedgerBackup(**document)
    except FileNotFoundError as error:
        raise BackupError(f"{words}: there is none") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BackupError(f"{words}: its manifest is not readable") from error
    if not is_ours or not isinstance(made.wrapped_data_key, str):
        raise BackupError(f"{words}: its manifest is another's")
    data_key = keys.unwrap(made.wrapped_data_key, _context(deployment))
    if not isinstance(proof, str) or not hmac.compare_digest(proof.encode(), _proof(made, data_key).encode()):
        raise BackupError(f"{words}: its manifest was changed, or sealed with another key")
    return made, data_key


def restore_ledger(
    url: str, deployment: str, store: ObjectStore, keys: KeyProvider, *, who: str, name: str | None = None
) -> LedgerBackup:
    """Fills an empty ledger from a backup, which is proved before the first row is written.

    Afterwards purchases are stopped, and reconcile and retention only report until a person confirms the ledger: what was
    bought and ended since the backup is not in it.

    Args:
        name: None: the newest.

    Raises:
        BackupError, KeyServiceError: the backup is not as it was made; nothing was written.
        LedgerUnavailableError: the ledger is not empty or refused; nothing was written.
    """
    names = list_ledger_backups(store, deployment)
    if not names:
        raise BackupError(f"no ledger backup of {deployment} in {store.uri}")
    made, data_key = read_ledger_backup(store, keys, deployment, name or names[-1])
    if made.schema != HEAD:
        raise LedgerUnavailableError(f"ledger backup {made.name} is of schema {made.schema}, this program needs {HEAD}")
    for _ in _proved(store, made, data_key):
        pass
    method: dump.Method = "pg_dump" if made.method == "pg_dump" else "rows"
    counts = dump.restore(url, _proved(store, made, data_key), method)
    if counts != made.counts:
        raise BackupError(f"ledger backup {made.name}: {counts} rows came back, {made.counts} were written")
    _quieten(url, made, who)
    return made


def _quieten(url: str, made: LedgerBackup, who: str) -> None:
    ledger = PostgresLedger(url)
    try:
        why = f"backup {made.name}: what happened since is not in this ledger"
        ledger.set_meta(RESTORED, f"from backup {made.name}")
        ledger.set_meta("confirmed_epoch", "")
        ledger.set_spending_stopped(True, [make_event(None, who, "ledger.restored", why, rows=made.row_count)])
    finally:
        ledger.close()


def _proved(store: ObjectStore, made: LedgerBackup, data_key: bytes) -> Iterator[bytes]:
    """Yields the plain stream; raises BackupError unless it is to its last byte what was sealed."""
    key = _key(made.deployment, made.name)
    reader = PieceReader(open_pieces(store.read_chunks(key), data_key, key))
    try:
        while piece := reader.read(1024 * 1024):
            yield piece
        if reader.drain() != made.plain_sha256:
            raise BackupError(f"ledger backup {made.name}: not what was written")
    except EnvelopeError as error:
        raise BackupError(f"ledger backup {made.name}: {error}") from error
    except FileNotFoundError as error:
        raise BackupError(f"ledger backup {made.name}: its content is missing") from error


def _lock(store: ObjectStore, key: str, since: datetime) -> None:
    if isinstance(store, SupportsObjectLock) and store.locks_objects:
        store.lock(key, since)


def _context(deployment: str) -> str:
    return f"ledger/{deployment}"


def _key(deployment: str, name: str) -> str:
    return f"ledger/{deployment}/{name}.hste"


def _manifest_key(deployment: str, name: str) -> str:
    return f"ledger/{deployment}/{name}.json"


def _written(made: LedgerBackup, data_key: bytes) -> bytes:
    document: dict[str, Any] = {"format": _FORMAT, **asdict(made), "proof": _proof(made, data_key)}
    return json.dumps(document, sort_keys=True).encode() + b"\n"


def _proof(made: LedgerBackup, data_key: bytes) -> str:
    key = hmac.new(data_key, b"hostler ledger backup 1", hashlib.sha256).digest()
    body = json.dumps(asdict(made), sort_keys=True, separators=(",", ":")).encode()
    return hmac.new(key, body, hashlib.sha256).hexdigest()
