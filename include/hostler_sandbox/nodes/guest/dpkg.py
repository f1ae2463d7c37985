"""``dpkg -l``, ``dpkg -s``, ``dpkg -i``, ``dpkg-query -W -f``, ``dpkg --print-architecture``."""

import fnmatch
import sys

from . import packages
from .state import NodeState

_HEAD = """Desired=Unknown/Install/Remove/Purge/Hold
| Status=Not/Inst/Conf-files/Unpacked/halF-conf/Half-inst/trig-aWait/Trig-pend
|/ Err?=(none)/Reinst-required (Status,Err: uppercase=bad)
||/ Name           Version      Architecture Description
+++-==============-============-============-=================================
"""


_STATUS = "Package: ${Package}\nStatus: ${Status}\nArchitecture: amd64\nVersion: ${Version}\n\n"
_ROW = "${db:Status-Abbrev} ${Package} ${Version} amd64 (simulated)\n"


def main(program: str, node: NodeState, arguments: list[str]) -> int:
    """Runs one query and returns its exit status (1 when a named package is not installed)."""
    flags = [word for word in arguments if word.startswith("-")]
    names = [word for word in arguments if not word.startswith("-")]
    if "--print-architecture" in flags:
        sys.stdout.write("amd64\n")
        return 0
    if {"--configure", "--audit", "-C"} & set(flags):
        return 0
    if {"-i", "--install"} & set(flags):
        return _install(node, names)
    layout = _layout(flags, names)
    values = node.read()
    found, unknown = _matched(values, names or ["*"])
    for pattern in unknown:
        sys.stderr.write(f"{program}: no packages found matching {pattern}\n")
    if layout is not None:
        sys.stdout.writelines(_filled(layout, name, values[f"pkg.{name}"], f"hold.{name}" in values) for name in found)
    elif {"-s", "--status"} & set(flags):
        sys.stdout.writelines(_filled(_STATUS, name, values[f"pkg.{name}"], f"hold.{name}" in values) for name in found)
    elif found:
        sys.stdout.write(_HEAD)
        sys.stdout.writelines(_filled(_ROW, name, values[f"pkg.{name}"], f"hold.{name}" in values) for name in found)
    return 1 if unknown else 0


def _matched(values: dict[str, str], patterns: list[str]) -> tuple[list[str], list[str]]:
    """Returns installed names that match, by pattern and name, and the patterns that match none."""
    installed = sorted(key[4:] for key in values if key.startswith("pkg."))
    found, unknown = [], []
    for pattern in patterns:
        matched = [name for name in installed if fnmatch.fnmatchcase(name, pattern.split(":", 1)[0])]
        found += matched
        unknown += [] if matched else [pattern]
    return found, unknown


def _layout(flags: list[str], names: list[str]) -> str | None:
    """Returns the output form, or None for the tables; takes a form given as a word of its own out of ``names``."""
    if not {"-W", "--show"} & set(flags) and not any(flag.startswith(("-W", "-f", "--showformat")) for flag in flags):
        return None
    for flag in flags:
        if flag.startswith("--showformat="):
            return flag.partition("=")[2]
        if flag.startswith(("-f=", "-Wf=")):
            return flag.partition("=")[2]
        if flag.startswith(("-f", "-Wf")) and flag not in {"-f", "-Wf"}:
            return flag.split("f", 1)[1]
        if flag in {"-f", "-Wf"} and names:
            form = next((name for name in names if "${" in name), None)
            if form:
                names.remove(form)
                return form
    return "${binary:Package}\t${Version}\n"


def _filled(layout: str, name: str, version: str, is_held: bool) -> str:
    fields = {
        "binary:Package": name,
        "Package": name,
        "Version": version,
        "Architecture": "amd64",
        "Status": f"{'hold' if is_held else 'install'} ok installed",
        "db:Status-Abbrev": "hi " if is_held else "ii ",
        "db:Status-Status": "installed",
        "db:Status-Want": "hold" if is_held else "install",
    }
    for key, value in fields.items():
        layout = layout.replace(f"${{{key}}}", value)
    return layout.replace("\\n", "\n").replace("\\t", "\t")


def _install(node: NodeState, names: list[str]) -> int:
    """Installs from a file: its name must be that of a known package (``cuda-keyring_1.1-1_all.deb``)."""
    with node.change() as values:
        for path in names:
            name = path.rsplit("/", 1)[-1].split("_", 1)[0]
            found = packages.find(name)
            if found is None:
                sys.stderr.write(f"dpkg: error: cannot access archive '{path}': No such file or directory\n")
                return 2
            packages.install(node, values, found)
            sys.stdout.write(f"Setting up {name} ({found.version}) ...\n")
    return 0
