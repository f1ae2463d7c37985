"""Brings code and data to a job before it starts: ``HOSTLER_CODE_URI`` and ``HOSTLER_DATA_URI`` of its order's environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from hostler.recipes.agent.layout import private_folder
from hostler.recipes.agent.places import open_place


def stage(environment: dict[str, str], target: dict[str, Any] | None, code: Path, data: Path) -> None:
    """Copies every file below each URI; contents only: modes are not kept.

    Raises:
        FileNotFoundError: there is nothing at the URI. StoreError, OSError: it can't be read.
    """
    for name, into in (("HOSTLER_CODE_URI", code), ("HOSTLER_DATA_URI", data)):
        if environment.get(name):
            _fetch(environment[name], target or {}, into)


def _fetch(uri: str, target: dict[str, Any], into: Path) -> None:
    parts = urlsplit(uri)
    single = Path(unquote(parts.path)) if parts.scheme == "file" else None
    if single is not None and single.is_file():
        place = open_place(f"file://{quote(str(single.parent))}", target)
        names = [single.name]
    else:
        place = open_place(uri, target)
        # An empty object whose key ends in a slash is how consoles show an empty folder.
        names = [name for name in place.keys("") if name and not name.endswith("/")]
    if not names:
        raise FileNotFoundError(f"{uri}: nothing there")
    for name in names:
        if any(part in {"", ".", ".."} for part in name.split("/")):
            raise ValueError(f"{uri}: {name!r} would leave its folder")
        path = into / name
        private_folder(path.parent)
        with path.open("wb") as sink:
            for piece in place.pieces(name):
                sink.write(piece)
