"""Steps that every machine needs: disk, clock, Python with the framework."""

from __future__ import annotations

import json

from .packages import Apt
from .step import Context, Step

CLOCK_SERVICES = ("chrony", "chronyd", "systemd-timesyncd", "ntpd", "ntp")
IMPORT_NAMES = {"scikit-learn": "sklearn", "nvidia-ml-py": "pynvml"}
"""Distribution -> module, where they differ."""

_ASK = """
import importlib, importlib.metadata, json, sys
found = {}
for name, module in json.loads(sys.argv[1]).items():
    try:
        importlib.import_module(module)
        found[name] = importlib.metadata.version(name)
    except Exception as error:
        found[name] = "%s: %s" % (type(error).__name__, error)
print(json.dumps(found))
"""


def disk_problem(context: Context) -> str | None:
    """Framework and checkpoints need room; we can only say so."""
    done = context.machine.run("df", "-Pk", str(context.machine.home))
    columns = done.output.splitlines()[-1].split() if done.code == 0 and done.output.strip() else []
    if len(columns) < 4 or not columns[3].isdigit():  # noqa: PLR2004 - the fourth column of df -P is what is free
        return f"free disk is not known: {done.last_line}"
    free_gib = int(columns[3]) / (1 << 20)
    least = int(context.options.min_free_gib)
    return None if free_gib >= least else f"{free_gib:.1f} GiB free at {context.machine.home}, {least} GiB needed"


def clock_problem(context: Context) -> str | None:
    """A time service must be active: log times and certificates are judged by the node's clock."""
    for service in CLOCK_SERVICES:
        if context.machine.run("systemctl", "is-active", service).output.strip() == "active":
            return None
    return f"no time service is active; one of {', '.join(CLOCK_SERVICES)} must be"


def apply_clock(context: Context) -> None:
    """Starts the time service that is there, or installs chrony."""
    for service in CLOCK_SERVICES:
        context.machine.run("systemctl", "enable", "--now", service, as_root=True)
        if clock_problem(context) is None:
            return
    context.packages.refresh()
    context.packages.install([("chrony", "")])
    context.machine.must("systemctl", "enable", "--now", "chrony" if isinstance(context.packages, Apt) else "chronyd")


def framework_versions(context: Context) -> tuple[dict[str, str], str]:
    """Returns what the virtual environment's Python imports, name -> version or error, and words when it says nothing."""
    python = context.machine.home / "venv" / "bin" / "python"
    modules = {name: IMPORT_NAMES.get(name, name) for name in context.options.packages}
    done = context.machine.run(str(python), "-c", _ASK, json.dumps(modules), timeout_s=300)
    try:
        found = json.loads(done.output.splitlines()[-1]) if done.code == 0 else None
    except (ValueError, IndexError):
        found = None
    return (found, "") if isinstance(found, dict) else ({}, done.last_line)


def framework_problem(context: Context) -> str | None:
    """Every package must be importable in exactly its pinned version (a build tag such as ``+cu130`` does not count)."""
    found, words = framework_versions(context)
    if not found:
        return f"no virtual environment: {words}"
    wrong = [
        f"{name} {found.get(name)} (pinned {version})"
        for name, version in context.options.packages.items()
        if found.get(name, "").partition("+")[0] != version
    ]
    return "; ".join(wrong) or None


def apply_framework(context: Context) -> None:
    """Makes the virtual environment and installs the pinned versions into it."""
    machine = context.machine
    venv = machine.home / "venv"
    python = str(venv / "bin" / "python")
    if machine.run(python, "-m", "pip", "--version").code != 0:
        make = (machine.system_python(), "-m", "venv", "--clear", str(venv))
        if machine.run(*make, timeout_s=300).code != 0:
            context.packages.refresh()
            context.packages.install([("python3-venv" if isinstance(context.packages, Apt) else "python3-pip", "")])
            machine.must(*make, as_root=False, timeout_s=300)
    pinned = [f"{name}=={version}" for name, version in context.options.packages.items()]
    machine.must(python, "-m", "pip", "install", "--disable-pip-version-check", *pinned, as_root=False, timeout_s=3000)


def nothing_pending_problem(context: Context) -> str | None:
    """No installation may be half done: the next one would stop at it."""
    if not isinstance(context.packages, Apt):
        return None
    done = context.machine.run("dpkg", "--audit")
    return f"half-installed packages: {done.output.strip().splitlines()[0]}" if done.output.strip() and done.code == 0 else None


def apply_nothing_pending(context: Context) -> None:
    """Finishes what was interrupted, such as by a reboot in the middle."""
    context.machine.must("dpkg", "--configure", "-a", timeout_s=1800)


SYSTEM_STEPS = (
    Step("disk space", disk_problem),
    Step("no package half installed", nothing_pending_problem, apply_nothing_pending),
    Step("clock", clock_problem, apply_clock),
    Step("framework", framework_problem, apply_framework),
)
"""The first two come before all others."""
