"""Folders as tar streams: packed the same way every time, unpacked without leaving their place."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path
from typing import Any, Callable

_COPY_BYTES = 1024 * 1024


class FolderError(Exception):
    """The folder or archive holds something that is not carried: the message names it."""


def pack(folder: Path, sink: Any) -> None:
    """Writes the folder, under its own name, as a tar stream: files and folders, by name, without owners and times.

    Raises:
        FolderError: it holds something else (a link out of it, a device); nothing usable was written.
    """
    with tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for path in [folder, *sorted(folder.rglob("*"))]:
            entry = tarfile.TarInfo((Path(folder.name) / path.relative_to(folder)).as_posix())
            if path.is_symlink() and folder.resolve() not in path.resolve().parents:
                raise FolderError(f"{path}: a link that leads out of its folder")
            if path.is_dir():
                entry.type, entry.mode = tarfile.DIRTYPE, 0o700
                archive.addfile(entry)
            elif path.is_file():
                entry.mode = 0o700 if os.access(str(path), os.X_OK) else 0o600
                with path.open("rb") as source:
                    entry.size = os.fstat(source.fileno()).st_size
                    archive.addfile(entry, source)
            else:
                raise FolderError(f"{path}: neither a file nor a folder")


def unpack(source: Any, into: Path, *, overwrite: bool = False, accept: Callable[[str], bool] = lambda _: True) -> int:
    """Unpacks a tar stream below ``into`` and returns how many files it wrote.

    Args:
        overwrite: when off, a file that is there already is left as it is.
        accept: asked with each member's path; refused ones raise.

    Raises:
        FolderError: a member would leave the folder, is no plain file or folder, or is not accepted. Earlier ones are written.
    """
    count = 0
    try:
        with tarfile.open(fileobj=source, mode="r|") as archive:
            for member in archive:
                parts = _parts(member.name)
                if not accept(member.name) or not (member.isdir() or member.isreg()):
                    raise FolderError(f"archive member {member.name!r} is not allowed")
                path = _below(into, parts)
                if member.isdir():
                    path.mkdir(mode=0o700, exist_ok=True)
                elif overwrite or not path.exists():
                    _write(archive.extractfile(member), path, member.mode & 0o700 | 0o600)
                    count += 1
    except tarfile.TarError as error:
        raise FolderError(f"not a readable archive: {error}") from error
    return count


def _parts(name: str) -> list[str]:
    parts = name.split("/")
    if name.startswith("/") or "\0" in name or any(part in {"", ".", ".."} for part in parts):
        raise FolderError(f"archive member {name!r} would leave its folder")
    return parts


def _below(into: Path, parts: list[str]) -> Path:
    """Makes the folders on the way; a link among them is refused, wherever it leads."""
    path = into
    for part in parts[:-1]:
        path /= part
        path.mkdir(mode=0o700, exist_ok=True)
        if path.is_symlink():
            raise FolderError(f"{path} is a link")
    last = path / parts[-1]
    if last.is_symlink():
        raise FolderError(f"{last} is a link")
    return last


def _write(source: Any, path: Path, mode: int) -> None:
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    handle = os.open(str(temporary), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(handle, "wb") as target:
        while True:
            piece = source.read(_COPY_BYTES)
            if not piece:
                break
            target.write(piece)
    temporary.replace(path)
