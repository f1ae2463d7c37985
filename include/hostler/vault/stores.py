"""The backup store as the controller sees it: a folder (``file://``) or a bucket prefix (``s3://``)."""

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from hostler.vault.object_lock import LockTerms, S3Locks
from hostler.vault.port import ObjectLock, ObjectLockError, ObjectStore

_KEY = re.compile(r"[A-Za-z0-9._=+@-]+(?:/[A-Za-z0-9._=+@-]+)*")
_GONE = frozenset({"NoSuchKey", "404", "NotFound"})
_TAKEN = frozenset({"PreconditionFailed", "412", "ConditionalRequestConflict"})


def open_store(uri: str, *, client_factory: Callable[[], Any], lock: LockTerms | None = None) -> ObjectStore:
    """Returns the store of a ``file:///folder`` or ``s3://bucket/prefix`` URI.

    Args:
        client_factory: gives a boto3 S3 client; called once, at the first use of an ``s3://`` store.
        lock: how objects are to be locked (``s3://`` only); None: not.

    Raises:
        ValueError: the URI names neither, or has no folder or bucket; or a folder was to lock objects.
    """
    parts = urlsplit(uri)
    if parts.scheme == "file" and parts.netloc in {"", "localhost"} and parts.path.startswith("/"):
        if lock is not None:
            raise ValueError("backup.object_lock: only with s3://bucket/prefix; a folder locks nothing")
        return FileStore(uri, Path(unquote(parts.path)))
    if parts.scheme == "s3" and parts.netloc:
        return S3Store(uri, parts.netloc, parts.path.strip("/"), client_factory, lock=lock)
    raise ValueError(f"backup uri: file:///folder or s3://bucket/prefix allowed, {uri!r} given")


def check_key(key: str) -> str:
    """Returns the key. Raises ValueError when it could leave the store's folder."""
    if not _KEY.fullmatch(key) or any(part in {".", ".."} for part in key.split("/")):
        raise ValueError(f"object key {key!r}: words of letters, digits and ._=+@- joined by / are allowed")
    return key


class FileStore:
    """A folder, possibly on a shared file system. Objects appear whole or not at all."""

    def __init__(self, uri: str, folder: Path) -> None:
        self.uri = uri
        self._folder = folder

    def put(self, key: str, content: bytes, *, if_absent: bool = False) -> None:
        """Writes an object; with ``if_absent`` raises FileExistsError when it is there already."""
        path = self._folder / check_key(key)
        with self._whole(path, if_absent=if_absent) as target:
            target.write(content)

    def put_file(self, key: str, path: Path) -> None:
        """Writes a file of any size as an object; whole or not at all."""
        with path.open("rb") as source, self._whole(self._folder / check_key(key), if_absent=False) as target:
            shutil.copyfileobj(source, target, 1024 * 1024)

    @contextmanager
    def _whole(self, path: Path, *, if_absent: bool) -> Iterator[Any]:
        """Gives a file that takes the path's place at the end, durably, unless the block raised."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
        try:
            with temporary.open("xb") as target:
                yield target
                target.flush()
                os.fsync(target.fileno())
            if if_absent:
                os.link(temporary, path)
            else:
                temporary.replace(path)
            _sync(path.parent)
        finally:
            temporary.unlink(missing_ok=True)

    def replace(self, key: str, content: bytes, *, expected: bytes | None) -> bool:
        """See the port; one writer at a time, by a lock file."""
        path = self._folder / check_key(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_name(f".{path.name}.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                found: bytes | None = path.read_bytes()
            except FileNotFoundError:
                found = None
            if found != expected:
                return False
            self.put(key, content)
            return True

    def delete(self, key: str) -> None:
        """Deletes an object; one that is not there is fine."""
        path = self._folder / check_key(key)
        path.unlink(missing_ok=True)
        for folder in path.parents:
            if folder == self._folder or not folder.is_relative_to(self._folder):
                return
            try:
                folder.rmdir()
            except OSError:  # something is left in it, or another process was first
                return

    def get(self, key: str) -> bytes:
        """Reads an object whole. Raises FileNotFoundError."""
        return (self._folder / check_key(key)).read_bytes()

    def read_chunks(self, key: str, chunk_bytes: int = 8 * 1024 * 1024) -> Iterator[bytes]:
        """Reads an object in pieces. Raises FileNotFoundError."""
        with (self._folder / check_key(key)).open("rb") as source:
            while piece := source.read(chunk_bytes):
                yield piece

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        """Returns all keys under the prefix, sorted; half-written objects are not among them."""
        base = self._folder / prefix if prefix.endswith("/") else self._folder
        found = (path.relative_to(self._folder).as_posix() for path in base.rglob("*") if path.is_file())
        return tuple(sorted(key for key in found if key.startswith(prefix) and not key.rpartition("/")[2].startswith(".")))

    def abort_uploads(self, prefix: str) -> int:
        """A copy that broke off leaves nothing that costs."""
        del prefix
        return 0


class S3Store:
    """A prefix in a bucket, through a boto3 client. ``locks_objects``: fleet.yaml asks for object lock."""

    def __init__(
        self, uri: str, bucket: str, prefix: str, client_factory: Callable[[], Any], *, lock: LockTerms | None = None
    ) -> None:
        self.uri = uri
        self.locks_objects = lock is not None
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._client_factory = client_factory
        self._made: Any = None
        self._terms = lock

    @property
    def _client(self) -> Any:
        if self._made is None:
            self._made = self._client_factory()
        return self._made

    def put(self, key: str, content: bytes, *, if_absent: bool = False) -> None:
        """Writes an object; with ``if_absent`` raises FileExistsError when it is there already."""
        extra = {"IfNoneMatch": "*"} if if_absent else {}
        client = self._client
        try:
            client.put_object(Bucket=self._bucket, Key=self._prefix + check_key(key), Body=content, **extra)
        except client.exceptions.ClientError as error:
            if _code(error) in _TAKEN:
                raise FileExistsError(f"{self.uri}: {key}") from error
            raise

    def replace(self, key: str, content: bytes, *, expected: bytes | None) -> bool:
        """See the port. Source: S3 user guide, "Add preconditions to S3 operations with conditional requests"."""
        try:
            if expected is None:
                self.put(key, content, if_absent=True)
                return True
            answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + check_key(key))
            if answer["Body"].read() != expected:
                return False
            self._client.put_object(Bucket=self._bucket, Key=self._prefix + key, Body=content, IfMatch=answer["ETag"])
        except FileExistsError:
            return False
        except self._client.exceptions.ClientError as error:
            if _code(error) in _TAKEN | _GONE:
                return False
            raise
        return True

    def get(self, key: str) -> bytes:
        """Reads an object whole. Raises FileNotFoundError."""
        return b"".join(self.read_chunks(key))

    def read_chunks(self, key: str, chunk_bytes: int = 8 * 1024 * 1024) -> Iterator[bytes]:
        """Reads an object in pieces. Raises FileNotFoundError."""
        client = self._client
        try:
            body = client.get_object(Bucket=self._bucket, Key=self._prefix + check_key(key))["Body"]
        except client.exceptions.ClientError as error:
            if _code(error) in _GONE:
                raise FileNotFoundError(f"{self.uri}: {key}") from error
            raise
        try:
            while piece := body.read(chunk_bytes):
                yield piece
        finally:
            body.close()

    def put_file(self, key: str, path: Path) -> None:
        """Writes a file of any size as an object, in parts when it is large; whole or not at all."""
        self._client.upload_file(str(path), self._bucket, self._prefix + check_key(key))

    def delete(self, key: str) -> None:
        """Deletes an object with all its versions. Raises ObjectLockError."""
        self._locks.delete(self._prefix + check_key(key))

    def abort_uploads(self, prefix: str) -> int:
        """Gives up uploads under the prefix that were begun and never finished; returns how many."""
        pages = self._client.get_paginator("list_multipart_uploads").paginate(Bucket=self._bucket, Prefix=self._prefix + prefix)
        found = [upload for page in pages for upload in page.get("Uploads", ())]
        for upload in found:
            self._client.abort_multipart_upload(Bucket=self._bucket, Key=upload["Key"], UploadId=upload["UploadId"])
        return len(found)

    def lock(self, key: str, since: datetime) -> None:
        """Keeps an object for the asked days from ``since``. Raises ObjectLockError."""
        if self._terms is None:
            raise ObjectLockError(f"{self.uri}: no object lock is asked for")
        self._locks.lock(self._prefix + check_key(key), since, self._terms)

    def lock_of(self, key: str) -> ObjectLock:
        """Returns the lock on an object, whoever put it there. Raises FileNotFoundError."""
        return self._locks.lock_of(self._prefix + check_key(key))

    @property
    def _locks(self) -> S3Locks:
        return S3Locks(self._client, self._bucket)

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        """Returns all keys under the prefix, sorted, to the last page."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._prefix + prefix)
        return tuple(sorted(entry["Key"][len(self._prefix) :] for page in pages for entry in page.get("Contents", ())))


def _sync(folder: Path) -> None:
    """Makes a rename in the folder last over a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
