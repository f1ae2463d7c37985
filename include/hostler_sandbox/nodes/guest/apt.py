"""``apt-get`` (and ``apt``, ``apt-cache policy``): installs, upgrades, removes and holds as far as set-up recipes use it."""

import fnmatch
import sys

from . import packages
from .packages import Package
from .state import NodeState

_VALUE_FLAGS = frozenset({"-o", "-c", "-t", "--option", "--config-file", "--target-release"})


def main(program: str, node: NodeState, arguments: list[str]) -> int:  # noqa: PLR0911  # one return for each command
    """Runs one command and returns its exit status (100 as the real one for what it cannot do)."""
    words, flags = _split(arguments)
    command, names = (words[0], words[1:]) if words else ("", [])
    if program == "apt-cache":
        return {"policy": _policy, "madison": _madison}.get(command, _nothing)(node, names)
    if command == "update":
        return _update(node)
    if command in {"install", "reinstall"}:
        return _install(node, names, flags)
    if command in {"remove", "purge", "autoremove"}:
        return _remove(node, names, flags)
    if command in {"upgrade", "dist-upgrade", "full-upgrade"}:
        return _upgrade(node)
    if command in {"clean", "autoclean", "check"}:
        return 0
    if command == "policy":
        return _policy(node, names)
    sys.stderr.write(f"E: Invalid operation {command}\n")
    return 100


def _split(arguments: list[str]) -> tuple[list[str], set[str]]:
    words: list[str] = []
    flags: set[str] = set()
    rest = iter(arguments)
    for word in rest:
        if word in _VALUE_FLAGS:
            next(rest, None)
        elif word.startswith("-"):
            flags |= {f"-{one}" for one in word[1:]} if not word.startswith("--") else {word}
        else:
            words.append(word)
    return words, flags


def _update(node: NodeState) -> int:
    with node.change() as values:
        values["apt.updated"] = "1"
    sys.stdout.write("Hit:1 http://archive.ubuntu.com/ubuntu noble InRelease (simulated)\nReading package lists...\n")
    return 0


def _resolve(node: NodeState, asked: str) -> Package:
    """Returns the package for ``name`` or ``name=version``. Raises LookupError in apt's words."""
    name, _, version = asked.partition("=")
    name = name.rsplit("/", 1)[-1].removesuffix(".deb").split("_", 1)[0] if asked.endswith(".deb") else name.split(":", 1)[0]
    values = node.read()
    found = packages.find(name)
    # A fresh image has package lists of nothing: as in the cloud images, whose lists are emptied when they are made.
    if found is None or (values["apt.updated"] != "1" and f"pkg.{name}" not in values and not asked.endswith(".deb")):
        raise LookupError(f"E: Unable to locate package {name}")
    if version and not fnmatch.fnmatchcase(found.version, version):
        raise LookupError(f"E: Version '{version}' for '{name}' was not found")
    return found


def _install(node: NodeState, names: list[str], flags: set[str]) -> int:
    try:
        asked = [_resolve(node, name) for name in names]
    except LookupError as error:
        sys.stderr.write(f"{error}\n")
        return 100
    values = node.read()
    if values.get("disk.full") == "1":
        sys.stderr.write("E: You don't have enough free space in /var/cache/apt/archives/.\n")
        return 100
    held = [
        one.name for one in asked if f"hold.{one.name}" in values and values.get(f"pkg.{one.name}") not in {None, one.version}
    ]
    if held and "--allow-change-held-packages" not in flags:
        sys.stderr.write("E: Held packages were changed and -y was used without --allow-change-held-packages.\n")
        return 100
    new = [one for one in asked if values.get(f"pkg.{one.name}") != one.version]
    return _install_new(node, asked, new, flags)


def _install_new(node: NodeState, asked: list[Package], new: list[Package], flags: set[str]) -> int:
    for one in asked:
        if one not in new:
            sys.stdout.write(f"{one.name} is already the newest version ({one.version}).\n")
    if not new:
        sys.stdout.write("0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.\n")
        return 0
    sys.stdout.write(f"The following NEW packages will be installed:\n  {' '.join(one.name for one in new)}\n")
    if not flags & {"-y", "--yes", "--assume-yes", "-q"} - {"-q"}:
        sys.stdout.write("Do you want to continue? [Y/n] ")
        sys.stdout.flush()
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            sys.stdout.write("Abort.\n")
            return 1
    if flags & {"-s", "--simulate", "--dry-run", "-d", "--download-only"}:
        return 0
    clash = _other_branch(node.read(), new)
    if clash:
        sys.stderr.write(f"E: Unable to correct problems, you have held broken packages: {clash}\n")
        return 100
    with node.change() as values:
        for one in new:
            sys.stdout.write(f"Setting up {one.name} ({one.version}) ...\n")
            sys.stdout.writelines(f"{line}\n" for line in packages.install(node, values, one))
    return 0


def _other_branch(values: dict[str, str], new: list[Package]) -> str:
    """Two driver branches in one command conflict; a newer branch alone replaces the older one, unless that is held."""
    branches = {one.driver for one in new if one.driver and one.gives & {"module", "library"}}
    if len(branches) > 1:
        return "two driver branches conflict"
    for key in [key for key in values if key.startswith("hold.")]:
        held = packages.find(key[5:])
        if held and held.driver and held.gives & {"module", "library"} and branches and held.driver not in branches:
            return f"{held.name} is held"
    return ""


def _remove(node: NodeState, names: list[str], flags: set[str]) -> int:
    with node.change() as values:
        present = [name for name in names if f"pkg.{name}" in values]
        held = [name for name in present if f"hold.{name}" in values]
        if held and "--allow-change-held-packages" not in flags:
            sys.stderr.write("E: Held packages were changed and -y was used without --allow-change-held-packages.\n")
            return 100
        for name in present:
            packages.remove(node, values, name)
            sys.stdout.write(f"Removing {name} ...\n")
    return 0


def _upgrade(node: NodeState) -> int:
    """Brings all packages to the version on offer but held ones: what an unattended upgrade does to a driver."""
    if node.read()["apt.updated"] != "1":
        sys.stdout.write("0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.\n")
        return 0
    with node.change() as values:
        names = [key[4:] for key in values if key.startswith("pkg.") and f"hold.{key[4:]}" not in values]
        new = [found for name in names if (found := packages.find(name)) and found.version != values[f"pkg.{name}"]]
        for one in new:
            sys.stdout.write(f"Setting up {one.name} ({one.version}) ...\n")
            sys.stdout.writelines(f"{line}\n" for line in packages.install(node, values, one))
    sys.stdout.write(f"{len(new)} upgraded, 0 newly installed, 0 to remove and 0 not upgraded.\n")
    return 0


def _policy(node: NodeState, names: list[str]) -> int:
    values = node.read()
    for name in names:
        found = packages.find(name)
        if found and (values["apt.updated"] == "1" or f"pkg.{name}" in values):
            installed = values.get(f"pkg.{name}", "(none)")
            sys.stdout.write(f"{name}:\n  Installed: {installed}\n  Candidate: {found.version}\n")
    return 0


def _madison(node: NodeState, names: list[str]) -> int:
    if node.read()["apt.updated"] == "1":
        for name in names:
            if found := packages.find(name):
                sys.stdout.write(f"{name:>10} | {found.version} | http://archive.ubuntu.com/ubuntu noble/main amd64 Packages\n")
    return 0


def _nothing(_node: NodeState, _names: list[str]) -> int:
    return 0
