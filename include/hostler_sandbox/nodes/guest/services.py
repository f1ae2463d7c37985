"""``systemctl`` for the units that a node knows, and the NVIDIA daemons started by hand."""

import sys

from .state import NodeState

_ALIASES = {"sshd": "ssh", "dcgm": "nvidia-dcgm"}


def main(program: str, node: NodeState, arguments: list[str]) -> int:
    """Runs one command and returns its exit status, systemd's own numbers."""
    if program == "nv-fabricmanager" and {"--version", "-v"} & set(arguments):
        sys.stdout.write(f"Fabric Manager version is : {node.read()['fabric.version']}\n")
        return 0
    if program in {"nvidia-persistenced", "nv-fabricmanager"}:
        unit = "nvidia-persistenced" if program == "nvidia-persistenced" else "nvidia-fabricmanager"
        with node.change() as values:
            return _start(node, values, unit)
    flags = {word for word in arguments if word.startswith("-")}
    words = [word for word in arguments if not word.startswith("-")]
    command, units = (words[0], [_unit(word) for word in words[1:]]) if words else ("list-units", [])
    if command in {"poweroff", "reboot", "halt"}:
        from . import power  # rare

        return power.main(command, node, [])
    if command in {"daemon-reload", "reset-failed", "list-units", "daemon-reexec", "is-system-running"}:
        if command == "is-system-running":
            sys.stdout.write("running\n")
        return 0
    return max((_one(node, command, unit, flags) for unit in units), default=1)


def _unit(word: str) -> str:
    name = word.removesuffix(".service").removesuffix(".timer").removesuffix(".socket")
    return _ALIASES.get(name, name)


def _one(node: NodeState, command: str, unit: str, flags: set[str]) -> int:
    with node.change() as values:
        known = values.get(f"svc.{unit}")
        if command in {"mask", "unmask"}:
            if command == "mask":
                values[f"svc.{unit}"] = "masked,inactive"
            elif known == "masked,inactive":
                values[f"svc.{unit}"] = "disabled,inactive"
            return 0
        if command in {"is-active", "is-enabled", "is-failed"}:
            return _ask(command, known, flags)
        if known is None:
            verb = "Unit" if command in {"status", "show"} else f"Failed to {command} {unit}.service: Unit"
            sys.stderr.write(f"{verb} {unit}.service {'could not be' if command == 'status' else 'not'} found.\n")
            return 4 if command == "status" else 5
        enabled, active = known.split(",")
        if command == "status":
            sys.stdout.write(f"{unit}.service (simulated)\n   Loaded: loaded (;{enabled})\n   Active: {active}\n")
            return 0 if active == "active" else 3
        if command == "show":
            sys.stdout.write(f"ActiveState={active}\nUnitFileState={enabled}\n")
            return 0
        return _change(node, values, command, unit, now="--now" in flags)


def _ask(command: str, known: str | None, flags: set[str]) -> int:
    enabled, active = (known or "not-found,inactive").split(",")
    word = enabled if command == "is-enabled" else active
    if not {"-q", "--quiet"} & flags:
        sys.stdout.write(f"{word}\n")
    if command == "is-enabled":
        return 0 if word == "enabled" else 1
    if command == "is-failed":
        return 0 if word == "failed" else 1
    return 0 if word == "active" else 3


def _change(node: NodeState, values: dict[str, str], command: str, unit: str, *, now: bool) -> int:
    enabled, active = values[f"svc.{unit}"].split(",")
    if enabled == "masked" and command in {"start", "restart", "enable"}:
        sys.stderr.write(f"Failed to {command} {unit}.service: Unit {unit}.service is masked.\n")
        return 1
    if command in {"enable", "disable"}:
        enabled = f"{command}d"
        values[f"svc.{unit}"] = f"{enabled},{active}"
    if command in {"start", "restart", "reload-or-restart", "try-restart"} or (command == "enable" and now):
        return _start(node, values, unit)
    if command == "stop" or (command == "disable" and now):
        values[f"svc.{unit}"] = f"{enabled},inactive"
        if unit == "nvidia-persistenced":
            _persist(values, "0")
    return 0


def _start(node: NodeState, values: dict[str, str], unit: str) -> int:
    enabled = values.get(f"svc.{unit}", "disabled,").split(",")[0]
    problem = _why_not(values, unit)
    values[f"svc.{unit}"] = f"{enabled},{'failed' if problem else 'active'}"
    if problem:
        sys.stderr.write(f"Job for {unit}.service failed because the control process exited with error code.\n")
        node.log_kernel(f"{unit}: {problem}")
        return 1
    if unit == "nvidia-persistenced":
        _persist(values, "1")
    return 0


def _why_not(values: dict[str, str], unit: str) -> str:
    """Returns why a unit cannot start, empty when it can."""
    loaded = values["module.loaded"]
    if unit in {"nvidia-persistenced", "nvidia-fabricmanager"} and not loaded:
        return "Failed to query NVIDIA devices. Please ensure that the NVIDIA device files (/dev/nvidia*) exist."
    if unit == "nvidia-fabricmanager" and values["fabric.version"] != loaded:
        version = values["fabric.version"]
        return f"fabric manager NVIDIA GPU driver interface version {version} don't match with driver version {loaded}."
    return ""


def _persist(values: dict[str, str], mode: str) -> None:
    values.update({f"gpu.{index}.persistence": mode for index in range(int(values["gpu.count"]))})
