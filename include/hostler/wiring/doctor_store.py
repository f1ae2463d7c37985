"""Whether the backup store takes what we write, gives it back, and lets the probe be deleted."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from hostler.cloud.doctor import Check, fail, ok, unknown, warn
from hostler.cloud.errors import CloudAuthError, CloudConfigError, CloudError
from hostler.cloud.session import SessionSource
from hostler.config.schema import FleetFile
from hostler.drivers.aws.classify import classify
from hostler.drivers.aws.policy import PROBE_FOLDER
from hostler.model.enums import FleetMode
from hostler.vault.port import ObjectStore
from hostler.vault.stores import open_store

_POLICY_FIX: Final = "give it the rights that `hostler doctor aws --policy` prints"
_PLACE_FIX: Final = "look at backup.uri and backup.region; the bucket or folder has to be there"


def check_store(fleet: FleetFile, sessions: SessionSource) -> Iterator[Check]:
    """Yields one check: in mode ``enforce`` a probe object is written, read and deleted, in mode ``observe`` one list is read."""
    uri = fleet.backup.uri
    parts = urlsplit(uri)
    client = _Client(fleet, sessions)
    store = open_store(uri, client_factory=client)
    try:
        if parts.scheme == "file" and not (folder := Path(unquote(parts.path))).is_dir():
            if fleet.mode is FleetMode.OBSERVE:
                yield warn("store", f"{folder} is not there", "nothing yet: the first backup makes it; all nodes must share it")
                return
            folder.parent.stat()
        if fleet.mode is FleetMode.OBSERVE:
            found = store.list_keys(f"{PROBE_FOLDER}/")
            yield ok(
                "store", f"{uri} can be listed ({len(found)} probes); mode observe writes nothing, so writing is not tried"
            )
            return
        yield _probe(store, uri, parts.scheme, client)
    except Exception as error:  # noqa: BLE001 - an SDK's and a file system's errors have no common base
        yield _of_error(uri, error)


class _Client:
    """Makes the store's S3 client at its first use, as ``wiring.build`` does."""

    def __init__(self, fleet: FleetFile, sessions: SessionSource) -> None:
        aws = fleet.clouds.get("aws")
        self._connection = aws.connection if aws else None
        self._region = fleet.backup.region or "us-east-1"
        self._sessions = sessions

    def __call__(self) -> Any:
        return self._sessions.client("aws", "s3", self._region, self._connection)


def _probe(store: ObjectStore, uri: str, scheme: str, client: _Client) -> Check:
    key, content = f"{PROBE_FOLDER}/{os.urandom(8).hex()}", os.urandom(64)
    store.put(key, content)
    try:
        same = store.get(key) == content
    finally:
        left = _delete(uri, scheme, key, client)
    if not same:
        return fail("store", f"{uri} gave back other bytes than were written", "do not use this store")
    if left is not None:
        fix = f"delete {key} by hand; {_POLICY_FIX}"
        return warn("store", f"{uri} takes and gives objects, but the probe could not be deleted: {left}", fix)
    return ok("store", f"{uri}: a probe was written, read back and deleted")


def _delete(uri: str, scheme: str, key: str, client: _Client) -> str | None:
    """Deletes the probe; returns why it could not, None when it could."""
    parts = urlsplit(uri)
    try:
        if scheme == "file":
            path = Path(unquote(parts.path)) / key
            path.unlink()
            path.parent.rmdir()
        else:
            prefix = parts.path.strip("/")
            client().delete_object(Bucket=parts.netloc, Key=f"{prefix}/{key}" if prefix else key)
    except Exception as error:  # noqa: BLE001 - as in check_store
        return str(_drawn(error))
    return None


def _of_error(uri: str, error: Exception) -> Check:
    drawn = _drawn(error)
    if isinstance(drawn, CloudAuthError):
        return fail("store", f"{uri}: {drawn}", _POLICY_FIX)
    if isinstance(drawn, CloudConfigError | OSError):
        return fail("store", f"{uri}: {drawn}", _PLACE_FIX)
    return unknown("store", f"{uri}: could not be asked: {drawn}", "run it again when the store answers")


def _drawn(error: Exception) -> CloudError | OSError:
    """Returns a file system's error as it is, an SDK's as ours."""
    if isinstance(error, CloudError):
        return error
    if isinstance(error, OSError) and type(error).__module__ == "builtins":
        return error
    return classify(error, call="store", effect="read")
