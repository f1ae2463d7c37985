"""From fleet.yaml to the backup store, the key service and the rules of retention. No ledger is needed for these."""

from hostler.cloud.session import SessionSource
from hostler.config.schema import FleetFile
from hostler.vault.kms import KeyRing, KmsKeys, region_of
from hostler.vault.local import LocalKeys
from hostler.vault.object_lock import LockTerms
from hostler.vault.port import KeyProvider, ObjectStore
from hostler.vault.retention import Retention
from hostler.vault.stores import open_store


def backup_store(fleet: FleetFile, sessions: SessionSource) -> ObjectStore:
    """Opens the backup store; an S3 client is made at its first use."""
    region, lock = fleet.backup.region or "us-east-1", fleet.backup.object_lock
    return open_store(
        fleet.backup.uri,
        client_factory=lambda: sessions.client("aws", "s3", region, _connection(fleet)),
        lock=LockTerms(mode=lock.mode, days=lock.days) if lock else None,
    )


def key_service(fleet: FleetFile, sessions: SessionSource, local: LocalKeys | None = None) -> KeyProvider:
    """Returns what wraps the keys of backups; a KMS client is made at its first use.

    Args:
        local: the deployment's own keys, when they are open already.

    Raises:
        KeyServiceError: the folder of keys is not as it must be.
    """
    own = local or LocalKeys(fleet.keys.folder.expanduser())
    arn = fleet.keys.kms_key
    if arn is None:
        return own
    kms = KmsKeys(
        arn,
        deployment=fleet.deployment,
        client_factory=lambda: sessions.client("aws", "kms", region_of(arn), _connection(fleet)),
    )
    return KeyRing(kms=kms, local=own)


def retention_of(fleet: FleetFile, tenant: str) -> Retention | None:
    """Returns a tenant's rules; None: nothing of it is ever deleted. One that fleet.yaml does not name (any more) keeps all."""
    limits = fleet.tenants.get(tenant)
    if limits is None:
        return None
    chosen = limits.retention or fleet.backup.retention
    return Retention(**chosen.model_dump()) if chosen else None


def _connection(fleet: FleetFile) -> str | None:
    aws = fleet.clouds.get("aws")
    return aws.connection if aws else None
