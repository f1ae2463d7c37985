"""Links an installed distribution of one site folder into another, entry by entry."""

import importlib.metadata as md
import os
import shutil
from pathlib import Path, PurePosixPath


def link_distribution(one: md.Distribution, target: Path) -> None:
    """Links all files of a distribution below ``target``.

    A package folder is linked as a whole; a folder without ``__init__.py`` at the top may be shared by several distributions
    (namespace packages), so it is made and its entries are linked. Scripts outside of the site folder are not touched.
    """
    source = Path(str(one.locate_file("")))
    files = [PurePosixPath(str(path)) for path in one.files or []]
    inside = [path for path in files if path.parts and path.parts[0] not in {"..", "__pycache__"} and not path.is_absolute()]
    have = {str(path) for path in inside}
    for top in dict.fromkeys(path.parts[0] for path in inside):
        _link(source, target, PurePosixPath(top), have)


def _link(source: Path, target: Path, path: PurePosixPath, have: set[str]) -> None:
    is_whole = (
        str(path) in have
        or str(path / "__init__.py") in have
        or path.suffix in {".dist-info", ".libs"}
        or not (source / path).is_dir()
    )
    link = target / path
    if is_whole:
        if os.path.lexists(link):
            _remove(link)
        if (source / path).exists():
            link.symlink_to(source / path)
        return
    if link.is_symlink():
        link.unlink()
    link.mkdir(parents=True, exist_ok=True)
    depth = len(path.parts)
    names = {PurePosixPath(name).parts[depth] for name in have if PurePosixPath(name).parts[:depth] == path.parts}
    for name in sorted(names - {"__pycache__"}):
        _link(source, target, path / name, have)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def unlink_distribution(one: md.Distribution, target: Path) -> None:
    """Takes the links of a distribution away again; folders shared with others stay."""
    tops = {PurePosixPath(str(path)).parts[0] for path in one.files or [] if path.parts and path.parts[0] != ".."}
    for top in tops | {Path(str(getattr(one, "_path", ""))).name}:
        link = target / top
        if link.is_symlink():
            link.unlink()
