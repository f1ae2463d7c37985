"""The files that are put on nodes: read from the installed package, so that wheel and nodes cannot differ."""

import json
from collections.abc import Mapping
from importlib import resources


def package_files(package: str, folder: str) -> dict[str, bytes]:
    """Returns the Python files of a package, as ``<folder>/<file>`` -> content, sorted by name."""
    found = sorted((entry for entry in resources.files(package).iterdir() if entry.name.endswith(".py")), key=lambda e: e.name)
    return {f"{folder}/{entry.name}": entry.read_bytes() for entry in found}


def probe_file() -> bytes:
    """Returns the probe: one file, run as ``python3 probe.py``."""
    return resources.files("hostler.recipes.probe").joinpath("probe.py").read_bytes()


def setup_files(options: Mapping[str, str]) -> dict[str, bytes]:
    """Returns what the setup needs in one folder, to be run there as ``python3 setup.py``.

    Args:
        options: see ``hostler.recipes.setup.options``; they travel as ``options.json``.
    """
    files = package_files("hostler.recipes.setup", "hostler_setup")
    starter = files.pop("hostler_setup/setup.py")
    return {"setup.py": starter, "options.json": json.dumps(dict(options), sort_keys=True, indent=1).encode() + b"\n", **files}
