"""Table of the stand-in programs. Each is ``main(program, node, arguments) -> exit status``, imported when it is called."""

import importlib
import os
import sys
from pathlib import Path
from typing import Final

from .state import FACTS_FILE, NodeState

ALWAYS: Final[dict[str, str]] = {
    "apt-get": "apt",
    "apt": "apt",
    "apt-mark": "apt_mark",
    "apt-cache": "apt",
    "dpkg-query": "dpkg",
    "dpkg": "dpkg",
    "modprobe": "modules",
    "lsmod": "modules",
    "modinfo": "modules",
    "update-initramfs": "modules",
    "lspci": "pci",
    "dmesg": "kernel_log",
    "journalctl": "kernel_log",
    "systemctl": "services",
    "systemd-run": "elevate",
    "sudo": "elevate",
    "su": "elevate",
    "chown": "identity",
    "shutdown": "power",
    "poweroff": "power",
    "halt": "power",
    "reboot": "power",
    "hostname": "identity",
    "hostnamectl": "identity",
    "uname": "identity",
    "uptime": "identity",
    "cloud-init": "identity",
    "df": "disk",
    "nproc": "identity",
}
"""Program -> module of this package; present on every image."""

BY_PACKAGE: Final[dict[str, str]] = {
    "pip": "pip",
    "pip3": "pip",
    "nvidia-smi": "nvidia_smi",
    "nvidia-persistenced": "services",
    "nv-fabricmanager": "services",
    "nvcc": "identity",
    "nvidia-ctk": "containers",
    "docker": "containers",
    "dcgmi": "dcgmi",
}
"""Program -> module; present once a package that carries it is installed (``packages.PROGRAMS``)."""


def node_of(program: Path) -> NodeState:
    """Returns the node whose root folder holds ``program``. Raises RuntimeError outside of any node."""
    for folder in Path(os.path.abspath(program)).parents:  # noqa: PTH100  # must not follow the link out of the node
        if (folder / FACTS_FILE).exists():
            return NodeState(folder)
    raise RuntimeError(f"{program}: not on a simulated node")


def run(program: Path, arguments: list[str]) -> int:
    """Runs the program that ``program`` is named after and returns its exit status."""
    module = importlib.import_module(f".{ {**ALWAYS, **BY_PACKAGE}[program.name] }".replace(" ", ""), __package__)
    try:
        status: int = module.main(program.name, node_of(program), arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    return status
