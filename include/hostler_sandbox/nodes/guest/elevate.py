"""``sudo``, ``su`` and ``systemd-run``: run the rest of the command line on the node."""

import os
import sys
from pathlib import Path

from .state import NodeState

_SUDO_FLAGS_WITH_VALUE = frozenset(
    {"-u", "--user", "-g", "--group", "-h", "--host", "-p", "--prompt", "-C", "-D", "--chdir", "-T", "-r", "-t"}
)


def main(program: str, node: NodeState, arguments: list[str]) -> int:
    """Replaces itself by the asked command; returns an exit status only when it cannot."""
    if program == "systemd-run":
        return _systemd_run(arguments)
    if program == "su":
        return _su(arguments)
    user = os.environ.get("USER", "root")
    allowed = {line.split()[0] for line in _lines(node.root / "etc/sudoers")}
    if user not in allowed | {"root"}:
        sys.stderr.write(f"{user} is not in the sudoers file.\nThis incident has been reported to the administrator.\n")
        return 1
    rest, target = list(arguments), "root"
    keeps = False
    while rest and rest[0].startswith("-"):
        flag = rest.pop(0)
        if flag == "--":
            break
        if flag in _SUDO_FLAGS_WITH_VALUE and rest:
            value = rest.pop(0)
            target = value if flag in {"-u", "--user"} else target
        keeps = keeps or flag in {"-E", "--preserve-env"} or flag.startswith("--preserve-env")
        if flag in {"-v", "-l", "-k", "-K", "--validate"}:
            return 0
        if flag in {"-i", "-s", "--login", "--shell"}:
            rest = ["bash", "-c", " ".join(rest)] if rest else ["bash"]
            break
    # The node's own variables stay whether asked or not: without them the command would no longer run on this node.
    os.environ.update({"USER": target, "LOGNAME": target, "SUDO_USER": user})
    while rest and "=" in rest[0] and not rest[0].startswith("="):
        key, _, value = rest.pop(0).partition("=")
        os.environ[key] = value
    return _replace(rest, "sudo") if rest else 1


def _su(arguments: list[str]) -> int:
    """Runs ``-c`` as another user: by name only, since all logins of a node are one user of the host."""
    command = next((arguments[place + 1] for place, word in enumerate(arguments[:-1]) if word in {"-c", "--command"}), None)
    shell = next((arguments[place + 1] for place, word in enumerate(arguments[:-1]) if word in {"-s", "--shell"}), "bash")
    names = [word for word in arguments if not word.startswith("-") and word not in {command, shell}]
    user = names[0] if names else "root"
    os.environ.update({"USER": user, "LOGNAME": user})
    return _replace([shell, "-c", command] if command is not None else [shell], "su")


def _systemd_run(arguments: list[str]) -> int:
    """Starts the command detached from the caller, as a transient unit would be."""
    rest = list(arguments)
    waits = False
    while rest and rest[0].startswith("-"):
        flag = rest.pop(0)
        waits = waits or flag in {"--wait", "--scope", "--pipe", "-P", "-t", "--pty"}
        if flag == "--":
            break
        if (
            flag
            in {"-p", "--property", "-u", "--unit", "-E", "--setenv", "--uid", "--gid", "--on-active", "--working-directory"}
            and rest
        ):
            value = rest.pop(0)
            if flag in {"-E", "--setenv"} and "=" in value:
                key, _, text = value.partition("=")
                os.environ[key] = text
        elif flag.startswith("--setenv=") and flag.count("=") > 1:
            _, key, text = flag.split("=", 2)
            os.environ[key] = text
    if waits:
        return _replace(rest, "systemd-run")
    sys.stderr.write("Running as unit: run-simulated.service\n")
    sys.stderr.flush()
    if os.fork():
        return 0
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    return _replace(rest, "systemd-run")


def _replace(argv: list[str], program: str) -> int:
    sys.stdout.flush()
    try:
        os.execvp(argv[0], argv)  # noqa: S606  # a shell would read the words anew
    except FileNotFoundError:
        sys.stderr.write(f"{program}: {argv[0]}: command not found\n")
    except OSError as error:
        sys.stderr.write(f"{program}: {argv[0]}: {error.strerror}\n")
    return 1


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()] if path.exists() else []
