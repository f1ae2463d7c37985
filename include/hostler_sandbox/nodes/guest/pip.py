"""pip on a node: links packages that the sandbox's own interpreter has, with all they require, into a site folder.

Runs in the node's interpreter (or that of a virtual environment on the node). ``install`` resolves like pip would as far as
one version a package goes: what the sandbox has not, or not in the asked version, is "No matching distribution found".
"""

import argparse
import importlib.metadata as md
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .interpreter import PIP_VERSION, site_of
from .linking import link_distribution
from .programs import node_of

_MANAGED = """error: externally-managed-environment

\u00d7 This environment is externally managed
\u2570\u2500> To install Python packages system-wide, try apt install
    python3-xyz, where xyz is the package you are trying to
    install.

    If you wish to install a non-Debian-packaged Python package,
    create a virtual environment using python3 -m venv path/to/venv.
    Then use path/to/venv/bin/python and path/to/venv/bin/pip. Make
    sure you have python3-full installed.

note: If you believe this is a mistake, please contact your Python installation or OS distribution provider. You can override this, at the risk of breaking your Python installation or OS, by passing --break-system-packages.
hint: See PEP 668 for the detailed specification.
"""  # noqa: E501  # pip's own words


_PLAIN_FLAGS = (
    "-v", "--verbose", "--no-input", "--disable-pip-version-check", "--no-cache-dir", "--isolated", "--no-color",
    "--require-virtualenv", "--no-warn-script-location", "--prefer-binary", "--no-build-isolation", "--require-hashes", "-I",
    "--ignore-installed", "--force-reinstall", "--pre", "--user",
)  # fmt: skip
_VALUE_FLAGS = (
    "--timeout", "--retries", "--progress-bar", "-i", "--index-url", "--extra-index-url", "--find-links", "-f",
    "--root-user-action", "--only-binary", "--no-binary", "--cache-dir", "--upgrade-strategy", "--platform", "--python-version",
    "--trusted-host",
)  # fmt: skip
"""Options that are taken and change nothing here."""


class PipError(Exception):
    """The install cannot be done; the text is pip's."""


@dataclass(frozen=True, slots=True)
class _Site:
    """Where packages go and where they come from."""

    prefix: Path
    target: Path
    sources: tuple[str, ...]

    def installed(self) -> dict[str, md.Distribution]:
        """Returns normal name -> distribution in the site folder."""
        return {_name(one.metadata["Name"]): one for one in md.distributions(path=[str(self.target)])}

    def offered(self, name: str) -> md.Distribution | None:
        """Returns what the sandbox's interpreter has by that name.

        Found by folder name: reading all would take half a second.
        """
        return next(iter(md.Distribution.discover(name=name, path=list(self.sources))), None)


def _name(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def main(argv: list[str]) -> int:
    """Runs one pip command and returns its exit status."""
    if argv[:1] in (["--version"], ["-V"]):
        sys.stdout.write(f"pip {PIP_VERSION} from {site_of(Path(sys.prefix)) / 'pip'} (python {sys.version.split()[0][:4]})\n")
        return 0
    options = _parser().parse_args(argv)
    facts = node_of(Path(sys.prefix)).facts()
    prefix = Path(sys.prefix)
    site = _Site(prefix, Path(options.target) if options.target else site_of(prefix), tuple(facts["python_sources"]))
    # `packaging` comes from the sandbox's interpreter; real pip carries its own copy. Appended: the node's own goes first.
    sys.path += site.sources
    actions = {"install": _install, "download": _install, "list": _list, "freeze": _freeze, "show": _show, "check": _check,
               "uninstall": _uninstall, "cache": _nothing, "config": _nothing}  # fmt: skip
    try:
        return actions[options.command](site, options)
    except PipError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("-q", "--quiet", action="count", default=0)
    common.add_argument("-y", "--yes", action="store_true")
    for flag in _PLAIN_FLAGS:
        common.add_argument(flag, action="store_true")
    for flag in _VALUE_FLAGS:
        common.add_argument(flag, action="append")
    common.add_argument("-t", "--target")
    common.add_argument("-r", "--requirement", action="append", default=[])
    common.add_argument("-c", "--constraint", action="append", default=[])
    common.add_argument("-U", "--upgrade", action="store_true")
    common.add_argument("--no-deps", action="store_true")
    common.add_argument("--dry-run", action="store_true")
    common.add_argument("--no-index", action="store_true")
    common.add_argument("--break-system-packages", action="store_true")
    common.add_argument("--format", default="columns")
    parser = argparse.ArgumentParser(prog="pip", parents=[common])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("install", "download", "list", "freeze", "show", "check", "uninstall", "cache", "config"):
        commands.add_parser(name, parents=[common]).add_argument("names", nargs="*")
    return parser


def _lines(paths: Iterable[str]) -> list[str]:
    found = []
    for path in paths:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise PipError(f"ERROR: Could not open requirements file: [Errno 2] No such file or directory: '{path}'") from error
        for line in text.replace("\\\n", " ").splitlines():
            bare = line.split(" #", 1)[0].split(" --hash", 1)[0].strip()
            if bare and not bare.startswith(("#", "-")):
                found.append(bare)
    return found


def _install(site: _Site, options: argparse.Namespace) -> int:
    from packaging.requirements import InvalidRequirement, Requirement  # found on the sources, set just now

    if options.no_index:
        raise PipError("ERROR: Could not find a version that satisfies the requirement (from versions: none)")
    managed = site.prefix / "lib" / site_of(site.prefix).parent.name / "EXTERNALLY-MANAGED"
    if managed.exists() and not options.break_system_packages and not options.target:
        raise PipError(_MANAGED)
    try:
        wanted = [Requirement(text) for text in [*options.names, *_lines(options.requirement)]]
        limits = {_name(one.name): one for one in map(Requirement, _lines(options.constraint))}
    except InvalidRequirement as error:
        raise PipError(f"ERROR: Invalid requirement: {error}") from error
    if not wanted:
        raise PipError('ERROR: You must give at least one requirement to install (see "pip help install")')
    chosen = _resolve(site, wanted, limits, follow=not options.no_deps)
    if not options.dry_run:
        _link(site, chosen)
    if not options.quiet:
        _report(chosen)
    return 0


def _resolve(site: _Site, wanted: list[Any], limits: dict[str, Any], *, follow: bool) -> dict[str, md.Distribution]:
    """Returns name -> distribution for all that has to be added; raises PipError when one is not to be had."""
    installed = site.installed()
    from packaging.requirements import Requirement

    chosen: dict[str, md.Distribution] = {}
    done: set[tuple[str, frozenset[str]]] = set()
    queue = list(wanted)
    while queue:
        asked = queue.pop(0)
        key = (_name(asked.name), frozenset(asked.extras))
        if asked.marker and not asked.marker.evaluate({"extra": ""}):
            continue
        one = _fitting(asked, limits.get(key[0]), site.offered(key[0]))
        if key in done:
            continue
        done.add(key)
        there = installed.get(key[0])
        if there is None or there.version != one.version:
            chosen[key[0]] = one
        queue += [need for text in (one.requires or []) if follow and _applies(need := Requirement(text), asked.extras)]
    return chosen


def _applies(need: Any, extras: set[str]) -> bool:
    applies = need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in {"", *extras})
    need.marker = None
    return applies


def _fitting(asked: Any, limit: Any, one: md.Distribution | None) -> md.Distribution:
    if one is not None and all(
        spec is None or spec.specifier.contains(one.version, prereleases=True) for spec in (asked, limit)
    ):
        return one
    raise PipError(
        f"ERROR: Could not find a version that satisfies the requirement {asked} "
        f"(from versions: {one.version if one else 'none'})\nERROR: No matching distribution found for {asked}"
    )


def _link(site: _Site, chosen: dict[str, md.Distribution]) -> None:
    site.target.mkdir(parents=True, exist_ok=True)
    python = site.prefix / "bin/python3"
    for one in chosen.values():
        link_distribution(one, site.target)
        for entry in one.entry_points:
            if entry.group == "console_scripts":
                script = site.prefix / "bin" / entry.name
                _write_entry(script, str(python), entry)


def _write_entry(script: Path, python: str, entry: md.EntryPoint) -> None:
    """A shell script that starts Python: a ``#!`` line could be too long for the kernel."""
    first = entry.attr.split(".")[0]
    code = f"import sys; sys.argv[0] = {script.name!r}; from {entry.module} import {first}; sys.exit({entry.attr}())"
    script.write_text(f'#!/bin/sh\nexec "{python}" -c {shlex.quote(code)} "$@"\n', encoding="utf-8")
    script.chmod(0o755)


def _report(chosen: dict[str, md.Distribution]) -> None:
    names = " ".join(f"{one.metadata['Name']}-{one.version}" for one in chosen.values())
    sys.stdout.write(f"Successfully installed {names}\n" if names else "Requirement already satisfied\n")


def _list(site: _Site, options: argparse.Namespace) -> int:
    found = sorted((one.metadata["Name"], one.version) for one in site.installed().values())
    if options.format == "json":
        import json

        sys.stdout.write(json.dumps([{"name": name, "version": version} for name, version in found]) + "\n")
    elif options.format == "freeze":
        sys.stdout.writelines(f"{name}=={version}\n" for name, version in found)
    else:
        sys.stdout.write("Package Version\n------- -------\n")
        sys.stdout.writelines(f"{name} {version}\n" for name, version in found)
    return 0


def _freeze(site: _Site, _options: argparse.Namespace) -> int:
    found = sorted((one.metadata["Name"], one.version) for one in site.installed().values())
    sys.stdout.writelines(f"{name}=={version}\n" for name, version in found if name not in {"pip", "setuptools", "wheel"})
    return 0


def _show(site: _Site, options: argparse.Namespace) -> int:
    installed, status = site.installed(), 1
    for name in options.names:
        one = installed.get(_name(name))
        if one is None:
            sys.stderr.write(f"WARNING: Package(s) not found: {name}\n")
            continue
        status = 0
        needs = ", ".join(sorted(text.split(";")[0].strip() for text in one.requires or [] if "extra ==" not in text))
        text = f"Name: {one.metadata['Name']}\nVersion: {one.version}\nSummary: {one.metadata['Summary'] or ''}\n"
        sys.stdout.write(f"{text}Location: {site.target}\nRequires: {needs}\n")
    return status


def _check(site: _Site, _options: argparse.Namespace) -> int:
    from packaging.requirements import Requirement

    installed, broken = site.installed(), 0
    for one in installed.values():
        for text in one.requires or []:
            need = Requirement(text)
            if need.marker and not need.marker.evaluate({"extra": ""}):
                continue
            if _name(need.name) not in installed:
                broken = 1
                sys.stdout.write(f"{one.metadata['Name']} {one.version} requires {need.name}, which is not installed.\n")
    if not broken:
        sys.stdout.write("No broken requirements found.\n")
    return broken


def _uninstall(site: _Site, options: argparse.Namespace) -> int:
    from .linking import unlink_distribution

    installed = site.installed()
    for name in options.names:
        one = installed.get(_name(name))
        if one is None:
            sys.stderr.write(f"WARNING: Skipping {name} as it is not installed.\n")
        else:
            unlink_distribution(one, site.target)
            sys.stdout.write(f"Successfully uninstalled {one.metadata['Name']}-{one.version}\n")
    return 0


def _nothing(_site: _Site, _options: argparse.Namespace) -> int:
    return 0
