"""S3 Object Lock: retention until a time, legal hold, and deleting with all versions.

Source: S3 user guide, "Locking objects with Object Lock"; API reference PutObjectRetention, HeadObject, ListObjectVersions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from hostler.vault.port import ObjectLock, ObjectLockError

_GONE: Final = frozenset({"NoSuchKey", "NoSuchVersion", "404", "NotFound"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LockTerms:
    """How objects are locked.

    Attributes:
        mode: ``governance``: those with a special permission may delete all the same; ``compliance``: nobody, the account's
            root included. days: from the sealing.
    """

    mode: Literal["governance", "compliance"]
    days: int


class S3Locks:
    """Locks of one bucket, through a boto3 client."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def lock(self, key: str, since: datetime, terms: LockTerms) -> None:
        """Keeps the newest version for ``terms.days`` from ``since``; a later time that is there already stays.

        Raises:
            ObjectLockError: the bucket has no Object Lock, or S3 refused it.
        """
        # Whole seconds: S3 keeps no more, and a later look must find the same time.
        until = (since + timedelta(days=terms.days)).astimezone(UTC).replace(microsecond=0)
        kept = self.lock_of(key).until
        if kept is not None and kept >= until:
            return
        retention = {"Mode": terms.mode.upper(), "RetainUntilDate": until}
        try:
            self._client.put_object_retention(Bucket=self._bucket, Key=key, Retention=retention)
        except self._client.exceptions.ClientError as error:
            raise ObjectLockError(
                f"{key}: S3 put no lock on it ({_code(error)}): the bucket needs Object Lock, and the caller "
                "s3:PutObjectRetention; or take backup.object_lock out of fleet.yaml"
            ) from error

    def lock_of(self, key: str) -> ObjectLock:
        """Returns the newest version's lock. Raises FileNotFoundError."""
        try:
            head = self._client.head_object(Bucket=self._bucket, Key=key)
        except self._client.exceptions.ClientError as error:
            if _code(error) in _GONE:
                raise FileNotFoundError(key) from error
            raise
        until = head.get("ObjectLockRetainUntilDate")
        return ObjectLock(until.astimezone(UTC) if until else None, head.get("ObjectLockLegalHoldStatus") == "ON")

    def delete(self, key: str) -> None:
        """Deletes every version and delete marker of the key, the newest last: a refusal leaves the object readable.

        Raises:
            ObjectLockError: S3 keeps a version.
        """
        for version in reversed(list(self._versions(key))):
            try:
                self._client.delete_object(Bucket=self._bucket, Key=key, VersionId=version)
            except self._client.exceptions.ClientError as error:
                if _code(error) == "AccessDenied":
                    raise ObjectLockError(f"{key}: S3 refuses to delete it (locked, or s3:DeleteObjectVersion)") from error
                raise

    def _versions(self, key: str) -> Iterator[str]:
        """Yields version ids, newest first. A bucket without versions has one, named ``null``."""
        pages = self._client.get_paginator("list_object_versions").paginate(Bucket=self._bucket, Prefix=key)
        for page in pages:
            found = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
            mine = [entry for entry in found if entry["Key"] == key]
            yield from (entry["VersionId"] for entry in sorted(mine, key=lambda one: one["LastModified"], reverse=True))


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
