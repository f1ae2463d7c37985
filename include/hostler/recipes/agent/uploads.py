"""Multipart uploads that go on where they broke off: what was sent is written down beside the file, part by part.

An upload that nobody takes up again stays at S3 and costs until it is aborted: ``abandon`` does so, ``hostler_backup`` for leases
that are over, and a lifecycle rule of the bucket (AbortIncompleteMultipartUpload) for all others.

Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any, Callable

from hostler.recipes.agent.layout import read_json, write_json

Demand = Callable[..., Any]
_MOST_PARTS = 10_000


class UploadGoneError(Exception):
    """S3 knows no such upload (any more): begin anew."""


class Upload:
    """The upload of one file under one key.

    Args:
        demand: ``S3.demand``: (method, key, query, body) -> (headers, body).
    """

    def __init__(self, demand: Demand, key: str, path: Path, *, part_bytes: int) -> None:
        self._demand = demand
        self._key = key
        self._path = path
        self._size = path.stat().st_size
        # A larger file has larger parts: S3 takes 10,000.
        self._part_bytes = max(part_bytes, -(-self._size // _MOST_PARTS))
        self._notes = notes_of(path)

    def send(self) -> None:
        """Sends what is not there yet and joins the parts. Raises StoreError, OSError: again goes on from here."""
        known = self._known()
        try:
            self._send(known or self._begin())
        except UploadGoneError:
            # Joined already with the answer lost, aborted by somebody, or too old: whole, once more.
            self._send(self._begin())
        self._notes.unlink()

    def _known(self) -> dict[str, Any] | None:
        found = read_json(self._notes)
        mine = (self._key, self._size, self._part_bytes)
        is_mine = found is not None and (found.get("key"), found.get("size"), found.get("part_bytes")) == mine
        return found if is_mine else None

    def _begin(self) -> dict[str, Any]:
        text = self._demand("POST", self._key, {"uploads": ""}, b"")[1].decode()
        found = re.search(r"<UploadId>([^<]+)</UploadId>", text)
        if not found:
            raise OSError(f"{self._key}: the store began no upload")
        upload = found.group(1).replace("&amp;", "&")
        notes: dict[str, Any] = {
            "key": self._key,
            "size": self._size,
            "part_bytes": self._part_bytes,
            "upload": upload,
            "tags": [],
        }
        write_json(self._notes, notes)
        return notes

    def _send(self, notes: dict[str, Any]) -> None:
        upload, tags = notes["upload"], notes["tags"]
        with self._path.open("rb") as source:
            source.seek(len(tags) * self._part_bytes)
            while True:
                part = source.read(self._part_bytes)
                if not part:
                    break
                query = {"partNumber": str(len(tags) + 1), "uploadId": upload}
                headers, _ = self._demand("PUT", self._key, query, part)
                tags.append(headers["etag"])
                write_json(self._notes, notes)
        self._join(upload, tags)

    def _join(self, upload: str, tags: list[str]) -> None:
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>" for number, tag in enumerate(tags, 1)
        )
        body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        # A refused completion can come with status 200 and an error in its body.
        if b"<Error>" in self._demand("POST", self._key, {"uploadId": upload}, body)[1]:
            self._notes.unlink()
            raise OSError(f"{self._key}: the store did not join the parts")


def notes_of(path: Path) -> Path:
    """Returns where the state of a file's upload is kept."""
    return path.with_name(path.name + ".upload")


def abandon(demand: Demand, path: Path) -> None:
    """Gives up the upload of a file, here and at the store; a store that does not answer is left alone."""
    found = read_json(notes_of(path))
    if found and isinstance(found.get("upload"), str):
        with contextlib.suppress(Exception):
            demand("DELETE", found["key"], {"uploadId": found["upload"]}, b"")
    with contextlib.suppress(FileNotFoundError):
        notes_of(path).unlink()
