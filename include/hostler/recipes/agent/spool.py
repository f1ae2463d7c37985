"""Sealed objects on their way to the store. One that could not be sent stays, so that the next round goes on with its upload."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, Callable

from hostler.recipes.agent.layout import private_folder, read_json, write_json
from hostler.vault.envelope import Sealed, Sealer

_SUFFIXES = (".part", ".sealed", ".json")


class Spool:
    """One lease's spool folder."""

    def __init__(self, folder: Path, lease_id: str, data_key: bytes) -> None:
        self._folder = private_folder(folder)
        self._lease_id = lease_id
        self._data_key = data_key

    def seal(self, key: str, write: Callable[[Sealer], None]) -> tuple[Path, Sealed]:
        """Returns the sealed file and what it came to; one that was sealed in an earlier round is taken as it is.

        Args:
            write: writes the plain bytes. It is not called when the object is sealed already.
        """
        found = self._sealed(key)
        if found is None:
            part = self._file(key, ".part")
            with part.open("wb") as sink:
                sealer = Sealer(sink, self._data_key, f"{self._lease_id}/{key}")
                write(sealer)
                found = sealer.close()
                sink.flush()
                os.fsync(sink.fileno())
            os.replace(str(part), str(self._file(key, ".sealed")))  # noqa: PTH105 - as layout.write_whole
            write_json(self._file(key, ".json"), {"key": key, "lease_id": self._lease_id, **found._asdict()})
        return self._file(key, ".sealed"), found

    def _sealed(self, key: str) -> Sealed | None:
        facts, path = read_json(self._file(key, ".json")), self._file(key, ".sealed")
        if not facts or (facts.get("key"), facts.get("lease_id")) != (key, self._lease_id) or not path.is_file():
            return None
        sealed = Sealed(*(facts[name] for name in Sealed._fields))
        return sealed if path.stat().st_size == sealed.size_bytes else None

    def remove(self, key: str) -> None:
        """Forgets an object."""
        for suffix in _SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                self._file(key, suffix).unlink()

    def sweep(self, wanted: Callable[[str], bool], place: Any) -> None:
        """Forgets what nobody will send any more, at the store too, so that it does not fill the disk."""
        for facts in self._folder.glob("*.json"):
            key = (read_json(facts) or {}).get("key")
            if isinstance(key, str) and not wanted(key):
                place.abandon(self._file(key, ".sealed"))
                self.remove(key)

    def _file(self, key: str, suffix: str) -> Path:
        return self._folder / (key.replace("/", "_") + suffix)
