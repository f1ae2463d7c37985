"""The user's cache of compiled catalogs: reading price lists takes a third of a second, reading this a hundredth.

A file of the cache is named by the SHA-256 of everything that decides its content: names and bytes of the price lists, and size and
time of the program's own files of this package. So it is never stale. One that is damaged, of another version, of another
user, or cannot be read or written costs time and nothing else.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterable, Sequence
from typing import Final

from hostler.catalog.compiled import CompiledCatalog, CompiledError, packed
from hostler.catalog.index import CatalogIndex

KEPT: Final = 8
"""Catalogs kept; of more, those unused longest go."""

_SUFFIXES: Final = (".csv", ".csv.gz")
_PREFIX, _SUFFIX = "catalog-", ".bin"


def open_index(
    paths: Iterable[str | os.PathLike[str]] = (), *, keep_going: bool = False, folder: str | None = None
) -> CatalogIndex:
    """Returns the index of what the price lists offer, from the cache when it is there; fills the cache when it is not.

    Args:
        paths, keep_going: as for ``load_catalog``.
        folder: of the cache; None takes ``default_folder``; empty uses none.

    Raises:
        CatalogError: a row or file is broken and ``keep_going`` is false; names file, line and field.
    """
    wanted = [os.fspath(path) for path in paths]

    def remake() -> CompiledCatalog:
        return CompiledCatalog(_made(wanted, keep_going=keep_going))

    place = default_folder() if folder is None else folder
    key = _key(wanted, keep_going=keep_going) if place else None
    if key is None:
        return CatalogIndex(remake(), remake)
    file = os.path.join(place, f"{_PREFIX}{key}{_SUFFIX}")
    try:
        compiled = CompiledCatalog(_read(file))
    except (OSError, CompiledError):
        data = _made(wanted, keep_going=keep_going)
        _write(file, data)
        compiled = CompiledCatalog(data)
    return CatalogIndex(compiled, remake)


def default_folder() -> str:
    """Returns ``$HOSTLER_CACHE``, else ``hostler`` in the user's cache folder; empty when there is no home, or to use none."""
    own = os.environ.get("HOSTLER_CACHE")
    if own is not None:
        return own
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        home = os.path.expanduser("~")
        if not os.path.isabs(home):
            return ""
        base = os.path.join(home, ".cache")
    return os.path.join(base, "hostler")


def _made(paths: Sequence[str], *, keep_going: bool) -> bytes:
    from hostler.catalog.offerings import load_catalog

    return packed(load_catalog(paths, keep_going=keep_going))


def _key(paths: Sequence[str], *, keep_going: bool) -> str | None:
    """Returns the name of the catalog; None when something cannot be read: then reading it says so best."""
    digest = hashlib.sha256(f"{keep_going}\n".encode())
    try:
        for file in _own_files():
            facts = os.stat(file)
            digest.update(f"{file}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())
        for path in paths:
            for file in _lists_in(path):
                with open(file, "rb") as stream:
                    content = hashlib.sha256(stream.read()).hexdigest()
                digest.update(f"{os.path.basename(file)}\0{content}\n".encode())
    except OSError:
        return None
    return digest.hexdigest()


def _own_files() -> list[str]:
    """Returns the program's files that decide how a price list is read."""
    folder = os.path.dirname(__file__)
    model = os.path.join(os.path.dirname(folder), "model")
    files = [os.path.join(model, name) for name in ("accelerators.py", "offering.py", "enums.py")]
    for place in (folder, os.path.join(folder, "data")):
        with os.scandir(place) as entries:
            files += [entry.path for entry in entries if entry.name.endswith((".py", *_SUFFIXES, ".json", ".yaml"))]
    return sorted(files)


def _lists_in(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    return sorted(os.path.join(path, name) for name in os.listdir(path) if name.endswith(_SUFFIXES))


def _read(file: str) -> bytes:
    """Returns the bytes of a file of this user. Raises OSError."""
    with open(file, "rb") as stream:
        if hasattr(os, "getuid") and os.fstat(stream.fileno()).st_uid != os.getuid():
            raise PermissionError(f"{file} belongs to another user")
        return stream.read()


def _write(file: str, data: bytes) -> None:
    """Puts the file in its place at once or not at all; that it cannot is no error."""
    folder = os.path.dirname(file)
    half = f"{file}.{os.getpid()}"
    with contextlib.suppress(OSError):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        try:
            descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
            os.replace(half, file)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(half)
            raise
        _prune(folder)


def _prune(folder: str) -> None:
    """Takes out all but the newest. Raises OSError."""
    with os.scandir(folder) as entries:
        held = [(entry.stat().st_mtime_ns, entry.path) for entry in entries if entry.name.startswith(_PREFIX)]
    for _, path in sorted(held)[:-KEPT]:
        with contextlib.suppress(OSError):
            os.unlink(path)
