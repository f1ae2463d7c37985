"""Lays out a node's root folder, and the folder of host programs that all nodes may call.

A node's PATH holds only its own ``usr/local/bin`` and ``usr/bin`` and, last, a folder of links to the host's plain tools
(``sh``, ``tar``, ``cat`` ...). Programs that would betray the host (Python, pip, docker, the package manager, GPU tools) are
kept out, so that a set-up step which was left out shows.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hostler_sandbox.nodes.guest.programs import ALWAYS

_KEPT_OUT: Final = (
    "python", "pip", "idle", "pydoc", "2to3", "conda", "uv", "poetry", "docker", "podman", "containerd", "runc", "crun",
    "nvidia", "nv-", "nvcc", "cuda", "dcgm", "rocm", "apt", "dpkg", "deb", "snap", "systemctl", "systemd", "journalctl",
    "loginctl", "modprobe", "insmod", "rmmod", "lsmod", "modinfo", "kmod", "lspci", "dmesg", "sudo", "su", "shutdown",
    "poweroff", "reboot", "halt", "init", "telinit", "chown", "hostname", "uname", "aws", "gcloud", "az", "aliyun",
    "kubectl", "mount", "umount", "swapoff", "swapon", "mkfs", "fdisk",
)  # fmt: skip
"""Beginnings of names that are not linked: what nodes have of their own, and what could change the host."""

FOLDERS: Final = (
    "dev", "dev/pts", "etc", "etc/apt", "etc/apt/apt.conf.d", "etc/apt/sources.list.d", "etc/modprobe.d", "etc/ssh",
    "etc/ssh/sshd_config.d", "opt", "opt/hostler", "root", "run", "tmp", "usr", "usr/bin", "usr/lib",
    "usr/lib/x86_64-linux-gnu", "usr/local", "usr/local/bin", "var", "var/lib", "var/log",
)  # fmt: skip
"""Parents before children."""


def make_shared_programs(folder: Path, guest: Path) -> None:
    """Makes, once per sandbox, ``folder/tool`` (starts a stand-in by the name it is called by), links to it and to the host's.

    ``folder/sbin`` holds what every image has; a node sees it through a link of its own, by which a stand-in finds its node.
    """
    host, system = folder / "host", folder / "sbin"
    for made in (host, system):
        made.mkdir(parents=True, exist_ok=True)
    tool = folder / "tool"
    tool.write_text(f'#!/bin/sh\nexec "{base_python()}" -I -S "{guest / "launch.py"}" "$0" "$@"\n', encoding="utf-8")
    tool.chmod(0o755)
    for program in ALWAYS:
        if not os.path.lexists(system / program):
            (system / program).symlink_to(tool)
    for source in ("/usr/local/sbin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"):
        if not Path(source).is_dir():
            continue
        with os.scandir(source) as entries:
            for entry in entries:
                link = host / entry.name
                if not entry.name.startswith(_KEPT_OUT) and not os.path.lexists(link):
                    link.symlink_to(entry.path)


def base_python() -> str:
    """Returns the interpreter below the sandbox's own virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def make_root(root: Path, *, shared: Path, hostname: str, os_release: str, motd: str) -> None:
    """Makes the folders and the files that every image has."""
    for folder in FOLDERS:
        (root / folder).mkdir()
    (root / "var/run").symlink_to("../run")
    (root / "usr/sbin").symlink_to(shared / "sbin")
    files = {
        "etc/hostname": f"{hostname}\n",
        "etc/hosts": f"127.0.0.1 localhost\n127.0.1.1 {hostname}\n",
        "etc/os-release": os_release,
        "etc/motd": motd,
        "etc/ssh/sshd_config": "Include /etc/ssh/sshd_config.d/*.conf\nPasswordAuthentication no\n",
    }
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")


def environment(root: Path, *, node_id: str, shared: Path, hostname: str, metadata_url: str) -> Mapping[str, str]:
    """Returns the environment that every process of the node starts with. Nothing of the host's environment is in it."""
    path = [root / "usr/local/bin", root / "usr/bin", root / "usr/sbin", shared / "host"]
    return {
        "PATH": ":".join(str(folder) for folder in path),
        "HOME": str(root),
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TMPDIR": str(root / "tmp"),
        "LD_LIBRARY_PATH": str(root / "usr/lib/x86_64-linux-gnu"),
        "HOSTNAME": hostname,
        "NODE_ID": node_id,
        "NODE_ROOT": str(root),
        "HOSTLER_ROOT": str(root),
        "HOSTLER_HOME": str(root / "opt/hostler"),
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata_url,
        "DEBIAN_FRONTEND": "noninteractive",
    }
