"""Where the agent ships to and fetches from: a folder that the node sees too (``file://``), or S3."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from pathlib import Path
from typing import Any, Iterator
from urllib.parse import unquote, urlsplit

from hostler.recipes.agent.layout import BadRequestError
from hostler.recipes.agent.s3 import S3, StoreError

_READ_BYTES = 8 * 1024 * 1024


class FilePlace:
    """A folder. Objects appear whole or not at all, and are read again after they were written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, key: str, content: bytes) -> None:
        """Writes a small object. Raises OSError."""
        with self._made(key) as temporary:
            temporary.write_bytes(content)

    def put_file(self, key: str, path: Path) -> None:
        """Copies a file and checks the copy's hash. Raises OSError or StoreError."""
        with self._made(key) as temporary:
            shutil.copyfile(str(path), str(temporary))
            if _sha256(temporary) != _sha256(path):
                raise StoreError(f"{key}: the copy differs from what was sent")

    def abandon(self, path: Path) -> None:
        """Nothing of a copy that broke off is left here."""

    @contextlib.contextmanager
    def _made(self, key: str) -> Iterator[Path]:
        path = self._folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
        try:
            yield temporary
            handle = os.open(str(temporary), os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
            temporary.replace(path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()

    def get(self, key: str) -> bytes:
        """Reads a small object. Raises FileNotFoundError."""
        return (self._folder / key).read_bytes()

    def pieces(self, key: str) -> Iterator[bytes]:
        """Reads an object in pieces. Raises FileNotFoundError."""
        with (self._folder / key).open("rb") as source:
            while True:
                piece = source.read(_READ_BYTES)
                if not piece:
                    return
                yield piece

    def folders(self, prefix: str) -> list[str]:
        """Returns the names of the folders directly below a prefix, sorted; empty when there is none."""
        folder = self._folder / prefix
        return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []

    def keys(self, prefix: str) -> list[str]:
        """Returns all keys below a prefix that ends in a slash (or is empty), sorted."""
        folder = self._folder / prefix
        return sorted(path.relative_to(self._folder).as_posix() for path in folder.rglob("*") if path.is_file())


class S3Place:
    """A prefix in a bucket."""

    def __init__(self, store: S3, prefix: str) -> None:
        self._store = store
        self._prefix = prefix + "/" if prefix else ""

    def put(self, key: str, content: bytes) -> None:
        """Writes a small object. Raises StoreError."""
        self._store.put(self._prefix + key, content)

    def put_file(self, key: str, path: Path) -> None:
        """Writes a file and checks that the store has all of it. Raises StoreError."""
        self._store.put_file(self._prefix + key, path)

    def abandon(self, path: Path) -> None:
        """Gives up the upload of a file that broke off."""
        self._store.abandon(path)

    def get(self, key: str) -> bytes:
        """Reads a small object. Raises FileNotFoundError or StoreError."""
        return self._store.get(self._prefix + key)

    def pieces(self, key: str) -> Iterator[bytes]:
        """Reads an object in pieces. Raises FileNotFoundError or StoreError."""
        return self._store.pieces(self._prefix + key)

    def folders(self, prefix: str) -> list[str]:
        """Returns the names directly below a prefix, sorted. Raises StoreError."""
        return self._store.folders(self._prefix + prefix)

    def keys(self, prefix: str) -> list[str]:
        """Returns all keys below a prefix, sorted. Raises StoreError."""
        return [key[len(self._prefix) :] for key in self._store.keys(self._prefix + prefix)]


def open_place(uri: str, target: dict[str, Any]) -> Any:
    """Returns the place of a URI. ``target`` may name ``endpoint_url`` and ``region``. Raises BadRequestError."""
    parts = urlsplit(uri)
    if parts.scheme == "file" and parts.path.startswith("/"):
        return FilePlace(Path(unquote(parts.path)))
    if parts.scheme == "s3" and parts.netloc:
        store = S3(parts.netloc, endpoint_url=target.get("endpoint_url"), region=target.get("region"))
        return S3Place(store, parts.path.strip("/"))
    raise BadRequestError("uri: file:///folder or s3://bucket/prefix are allowed")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as source:
        while True:
            piece = source.read(_READ_BYTES)
            if not piece:
                return digest.hexdigest()
            digest.update(piece)
