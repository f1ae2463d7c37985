"""``hostname``, ``hostnamectl``, ``uname``, ``uptime``, ``nproc``, ``cloud-init status``, ``nvcc --version``, ``chown``."""

import os
import sys
import time

from .state import NodeState


def main(program: str, node: NodeState, arguments: list[str]) -> int:
    """Prints what the program would and returns its exit status."""
    answers = {"hostname": _hostname, "hostnamectl": _hostname, "uname": _uname, "uptime": _uptime, "nproc": _nproc,
               "cloud-init": _cloud_init, "nvcc": _nvcc, "chown": _chown}  # fmt: skip
    return answers[program](node, arguments)


def _hostname(node: NodeState, arguments: list[str]) -> int:
    if "-I" in arguments or "-i" in arguments:
        sys.stdout.write(f"{node.facts()['address']}\n")
    else:
        sys.stdout.write((node.root / "etc/hostname").read_text(encoding="utf-8"))
    return 0


def _uname(node: NodeState, arguments: list[str]) -> int:
    kernel = node.read()["kernel"]
    name = (node.root / "etc/hostname").read_text(encoding="utf-8").strip()
    fields = {
        "s": "Linux",
        "n": name,
        "r": kernel,
        "v": "#15-Ubuntu SMP simulated",
        "m": "x86_64",
        "p": "x86_64",
        "i": "x86_64",
        "o": "GNU/Linux",
    }
    longs = {"--kernel-name": "s", "--nodename": "n", "--kernel-release": "r", "--machine": "m", "--all": "a"}
    asked = {letter for word in arguments for letter in ([longs[word]] if word in longs else word.lstrip("-"))} or {"s"}
    chosen = fields if "a" in asked else {key: value for key, value in fields.items() if key in asked}
    sys.stdout.write(" ".join(chosen.values()) + "\n")
    return 0


def _uptime(node: NodeState, arguments: list[str]) -> int:
    booted_at = float(node.read()["booted_at"])
    if "-s" in arguments:
        sys.stdout.write(time.strftime("%Y-%m-%d %H:%M:%S\n", time.localtime(booted_at)))
    else:
        sys.stdout.write(f" up {int(time.time() - booted_at) // 60} min, 1 user, load average: 0.00, 0.00, 0.00\n")
    return 0


def _nproc(_node: NodeState, _arguments: list[str]) -> int:
    sys.stdout.write(f"{len(os.sched_getaffinity(0))}\n")
    return 0


def _cloud_init(node: NodeState, arguments: list[str]) -> int:
    finished = node.root / "var/lib/cloud/instance/boot-finished"
    while "--wait" in arguments and not finished.exists():
        time.sleep(0.05)
    sys.stdout.write("status: done\n" if finished.exists() else "status: running\n")
    return 0


def _nvcc(node: NodeState, _arguments: list[str]) -> int:
    toolkit = node.read()["cuda.toolkit"]
    sys.stdout.write(
        f"nvcc: NVIDIA (R) Cuda compiler driver (simulated)\nCuda compilation tools, release {toolkit}, V{toolkit}.1\n"
    )
    return 0


def _chown(node: NodeState, arguments: list[str]) -> int:
    """Changes nothing, since all logins of a node are one user of the host; refuses unknown users and missing files."""
    words = [word for word in arguments if not word.startswith("-")]
    user = words[0].replace(".", ":").partition(":")[0] if words else ""
    known = {line.partition(":")[0] for line in (node.root / "etc/passwd").read_text(encoding="utf-8").splitlines()}
    if user and not user.isdigit() and user not in known:
        sys.stderr.write(f"chown: invalid user: '{words[0]}'\n")
        return 1
    missing = [path for path in words[1:] if not os.path.lexists(path)]
    for path in missing:
        sys.stderr.write(f"chown: cannot access '{path}': No such file or directory\n")
    return 1 if missing or not words[1:] else 0
