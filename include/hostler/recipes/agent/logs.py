"""A job's log: pieces named by the offset at which they start, never renamed, so that rotation loses and doubles no line."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import IO

from hostler.recipes.agent.layout import private_folder

PIECE_BYTES = 8 * 1024 * 1024
PIECE_S = 60.0
KEPT_BYTES = 256 * 1024 * 1024
TAIL_BYTES = 4096


def pieces(folder: Path) -> list[tuple[int, Path]]:
    """Returns (start offset, file) of all pieces, in order; the last one may still grow."""
    if not folder.is_dir():
        return []
    return sorted((int(path.stem), path) for path in folder.iterdir() if path.suffix == ".log" and path.stem.isdigit())


def read(folder: Path, offset: int, most: int) -> tuple[bytes, int]:
    """Returns up to ``most`` bytes from ``offset`` on and the next offset. Bytes that are gone from the node are skipped."""
    found = bytearray()
    for start, path in pieces(folder):
        if len(found) >= most:
            break
        with contextlib.suppress(FileNotFoundError), path.open("rb") as source:
            end = start + os.fstat(source.fileno()).st_size
            if end <= offset:
                continue
            offset = max(offset, start)
            source.seek(offset - start)
            piece = source.read(most - len(found))
            found += piece
            offset += len(piece)
    return bytes(found), offset


def tail(folder: Path, most: int = TAIL_BYTES) -> str:
    """Returns the last bytes as text."""
    all_pieces = pieces(folder)
    if not all_pieces:
        return ""
    start, path = all_pieces[-1]
    with contextlib.suppress(OSError):
        return read(folder, max(0, start + path.stat().st_size - most), most)[0].decode("utf-8", "replace")
    return ""


class LogWriter:
    """Writes pieces; one writer a job. A full disk loses bytes, says how many once there is room, and never stops the job."""

    def __init__(self, folder: Path) -> None:
        self._folder = private_folder(folder)
        last = pieces(folder)
        self.offset = last[-1][0] + last[-1][1].stat().st_size if last else 0
        self._piece: IO[bytes] | None = None
        self._piece_start = self.offset
        self._opened_at = 0.0
        self._lost = 0

    def write(self, data: bytes) -> None:
        """Appends, and begins a new piece when the present one is large."""
        if self._lost:
            data = b"\n[hostler: %d bytes of log lost: no room on the disk]\n" % self._lost + data
        try:
            self._append(data)
            self._lost = 0
        except OSError:
            self._lost += len(data)

    def rotate(self) -> None:
        """Ends the present piece, if it holds anything."""
        if self._piece and self.offset > self._piece_start:
            with contextlib.suppress(OSError):
                self._piece.close()
            self._piece = None
            self._forget()

    def rotate_when_due(self) -> None:
        """Ends the present piece when it is old, so that it can be shipped while the job goes on."""
        if self._piece and time.monotonic() - self._opened_at > PIECE_S:
            self.rotate()

    def close(self) -> None:
        """Ends the log."""
        if self._piece:
            with contextlib.suppress(OSError):
                self._piece.close()
            self._piece = None

    def _append(self, data: bytes) -> None:
        if self._piece and self.offset - self._piece_start >= PIECE_BYTES:
            self.rotate()
        if self._piece is None:
            handle = os.open(str(self._folder / f"{self.offset:020d}.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self._piece = os.fdopen(handle, "ab", buffering=0)
            self._piece_start = self.offset
            self._opened_at = time.monotonic()
        while data:
            written = self._piece.write(data) or 0
            self.offset += written
            data = data[written:]

    def _forget(self) -> None:
        found = [(path, path.stat().st_size) for _, path in pieces(self._folder)]
        too_many = sum(size for _, size in found) - KEPT_BYTES
        for path, size in found[:-1]:
            if too_many <= 0:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            too_many -= size
