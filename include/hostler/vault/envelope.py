"""Framed AES-256-GCM for objects of any size, in constant memory. The controller and the node agent share this file.

Layout: a header, then frames. Header: magic ``HSTE``, format version (1 byte), plain bytes per frame (4 bytes, big endian),
salt (16 bytes), nonce prefix (7 bytes). Each frame but the last holds exactly the plain bytes named in the header, then the
16-byte tag; the last one holds 0 to that many. Key: HKDF-SHA256 of the data key with the salt, bound to the object's id, so
that no two objects share a key. Nonce: prefix, frame number (4 bytes), last flag (1 byte). Associated data: header, object id,
frame number, last flag. So a changed bit, frames in another order, a cut-off end and an object under another's name are all
refused.

Source of the construction: V. T. Hoang, R. Reyhanitabar, P. Rogaway, D. Vizar, "Online Authenticated-Encryption and its
Nonce-Reuse Misuse-Resistance" (CRYPTO 2015), section 7 (STREAM).

Runs on Python 3.8 (nodes); ``cryptography`` is imported at first use, since a node has it only after its setup.
"""

from __future__ import annotations

import hashlib
import os
import struct
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

KEY_BYTES = 32
FRAME_BYTES = 1024 * 1024
MAX_FRAME_BYTES = 16 * 1024 * 1024
_MAGIC = b"HSTE"
_VERSION = 1
_HEADER = struct.Struct(">4sBI16s7s")
_NONCE_TAIL = struct.Struct(">IB")
_TAG_BYTES = 16
_MAX_FRAMES = 2**32 - 1
HEADER_BYTES = _HEADER.size


class EnvelopeError(Exception):
    """The object is not what was sealed under this name and key: damaged, cut, reordered, swapped, or the wrong key."""


class CryptographyMissingError(RuntimeError):
    """The ``cryptography`` package is not installed here: nothing can be sealed or opened."""


class Sealed(NamedTuple):
    """What a sealed object came to. Hashes are SHA-256 in hex; sizes in bytes."""

    sha256: str
    plain_sha256: str
    size_bytes: int
    plain_bytes: int


class Sink(Protocol):
    """Where sealed bytes go."""

    def write(self, data: bytes, /) -> object:
        """Takes all of ``data``."""
        ...


def _cipher(key: bytes, salt: bytes, object_id: str) -> Any:
    if len(key) != KEY_BYTES:
        raise ValueError(f"data key: {KEY_BYTES} bytes expected, {len(key)} given")
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ImportError as error:
        raise CryptographyMissingError("the cryptography package is missing: the setup recipe installs it") from error
    info = b"hostler envelope 1\0" + object_id.encode()
    return AESGCM(HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=salt, info=info).derive(key))


def _associated(header: bytes, object_id: str, tail: bytes) -> bytes:
    return header + tail + object_id.encode()


class Sealer:
    """Seals what is written to it into ``sink``. ``close`` writes the last frame; without it the object can't be opened."""

    def __init__(self, sink: Sink, key: bytes, object_id: str, *, frame_bytes: int = FRAME_BYTES) -> None:
        if not 0 < frame_bytes <= MAX_FRAME_BYTES:
            raise ValueError(f"frame_bytes: 1 to {MAX_FRAME_BYTES} expected, {frame_bytes} given")
        salt, self._prefix = os.urandom(16), os.urandom(7)
        self._cipher = _cipher(key, salt, object_id)
        self._sink = sink
        self._object_id = object_id
        self._frame_bytes = frame_bytes
        self._header = _HEADER.pack(_MAGIC, _VERSION, frame_bytes, salt, self._prefix)
        self._waiting = bytearray()
        self._count = 0
        self._hash, self._plain_hash = hashlib.sha256(), hashlib.sha256()
        self._size = self._plain_size = 0
        self._emit(self._header)

    def write(self, data: bytes) -> int:
        """Takes plain bytes; returns how many (all)."""
        self._plain_hash.update(data)
        self._plain_size += len(data)
        self._waiting += data
        # One full frame is kept back: only at ``close`` is it known whether it is the last.
        while len(self._waiting) > self._frame_bytes:
            self._frame(bytes(self._waiting[: self._frame_bytes]), last=False)
            del self._waiting[: self._frame_bytes]
        return len(data)

    def close(self) -> Sealed:
        """Writes the last frame and returns hashes and sizes."""
        self._frame(bytes(self._waiting), last=True)
        self._waiting.clear()
        return Sealed(self._hash.hexdigest(), self._plain_hash.hexdigest(), self._size, self._plain_size)

    def _frame(self, plain: bytes, *, last: bool) -> None:
        if self._count > _MAX_FRAMES:
            raise ValueError(f"object too large: more than {_MAX_FRAMES} frames")
        tail = _NONCE_TAIL.pack(self._count, last)
        self._emit(self._cipher.encrypt(self._prefix + tail, plain, _associated(self._header, self._object_id, tail)))
        self._count += 1

    def _emit(self, data: bytes) -> None:
        self._hash.update(data)
        self._size += len(data)
        self._sink.write(data)


def open_pieces(pieces: Iterable[bytes], key: bytes, object_id: str) -> Iterator[bytes]:
    """Opens a sealed object that comes in pieces of any size; yields plain bytes, each only after its frame was proved.

    The caller must not act on what it got before the iterator has ended: the end is proved last.

    Raises:
        EnvelopeError: refuse the object; the message names it.
    """
    source = iter(pieces)
    waiting = bytearray()
    _fill(source, waiting, HEADER_BYTES)
    opener = _Opener(bytes(waiting[:HEADER_BYTES]), key, object_id)
    del waiting[:HEADER_BYTES]
    count, last = 0, False
    while not last:
        _fill(source, waiting, opener.full_bytes + 1)  # one byte more tells whether another frame follows
        last = len(waiting) <= opener.full_bytes
        yield opener.open(bytes(waiting[: opener.full_bytes]), count, last=last)
        del waiting[: opener.full_bytes]
        count += 1


class _Opener:
    """Opens the frames under one header. ``full_bytes``: length of every frame but the last."""

    def __init__(self, header: bytes, key: bytes, object_id: str) -> None:
        if len(header) < HEADER_BYTES:
            raise EnvelopeError(f"{object_id}: cut short in its header")
        magic, version, frame_bytes, salt, self._prefix = _HEADER.unpack(header)
        if magic != _MAGIC or version != _VERSION:
            raise EnvelopeError(f"{object_id}: not a sealed object of format version {_VERSION}")
        if not 0 < frame_bytes <= MAX_FRAME_BYTES:
            raise EnvelopeError(f"{object_id}: damaged header")
        self._cipher = _cipher(key, salt, object_id)
        self._header = header
        self._object_id = object_id
        self.full_bytes = frame_bytes + _TAG_BYTES

    def open(self, frame: bytes, count: int, *, last: bool) -> bytes:
        """Returns the frame's plain bytes. Raises EnvelopeError."""
        from cryptography.exceptions import InvalidTag

        if len(frame) < _TAG_BYTES or count > _MAX_FRAMES:
            raise EnvelopeError(f"{self._object_id}: cut short or damaged at frame {count}")
        tail = _NONCE_TAIL.pack(count, last)
        try:
            return bytes(self._cipher.decrypt(self._prefix + tail, frame, _associated(self._header, self._object_id, tail)))
        except InvalidTag as error:
            raise EnvelopeError(
                f"{self._object_id}: frame {count} was changed, moved or cut, or this is not its key"
            ) from error


def _fill(source: Iterator[bytes], waiting: bytearray, wanted: int) -> None:
    while len(waiting) < wanted:
        piece = next(source, None)
        if piece is None:
            return
        waiting += piece


class PieceReader:
    """Makes a file-like reader of an iterator of pieces, for ``tarfile``. Counts and hashes what was read."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._waiting = bytearray()
        self._hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Returns up to ``size`` bytes (all that is left when negative); empty at the end."""
        while size < 0 or len(self._waiting) < size:
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._hash.update(piece)
            self._waiting += piece
        taken = bytes(self._waiting if size < 0 else self._waiting[:size])
        del self._waiting[: len(taken)]
        return taken

    def drain(self) -> str:
        """Reads to the end, which proves it, and returns the SHA-256 of all plain bytes."""
        self._waiting.clear()
        for piece in self._pieces:
            self._hash.update(piece)
        return self._hash.hexdigest()
