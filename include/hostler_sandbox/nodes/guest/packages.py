"""What a node's package manager can install, and what an installed package changes on the node.

Versions and names are those of Ubuntu 24.04 and of NVIDIA's own repository; a package brings only what the real one brings, so
that a forgotten one is missed (``nvidia-headless-*`` has no ``nvidia-smi``, for one).

Source: https://packages.ubuntu.com/noble/, https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/,
https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/ (driver branch -> CUDA).
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .interpreter import make_pip
from .state import NodeState

DRIVERS: Final = {
    "535": ("535.274.02", "12.2"),
    "550": ("550.163.01", "12.4"),
    "570": ("570.195.03", "12.8"),
    "575": ("575.57.08", "12.9"),
    "580": ("580.95.05", "13.0"),
}
"""Driver branch -> (release, newest CUDA version it serves)."""


@dataclass(frozen=True, slots=True)
class Package:
    """One installable version.

    ``gives``: ``module`` (kernel module), ``library`` (NVML and CUDA driver library), ``persistenced``, ``fabric``, ``pip``.
    """

    name: str
    version: str
    gives: frozenset[str] = frozenset()
    programs: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    driver: str = ""


_ALL = frozenset({"module", "library"})
_DRIVER: Final[tuple[tuple[str, frozenset[str], tuple[str, ...], tuple[str, ...]], ...]] = (
    (r"nvidia-driver-(\d+)(-server)?(-open)?", _ALL, ("nvidia-smi",), ("nvidia-persistenced",)),
    (r"cuda-drivers-(\d+)", _ALL, ("nvidia-smi",), ("nvidia-persistenced",)),
    (r"nvidia-headless-(\d+)(-server)?(-open)?", _ALL, (), ()),
    (r"nvidia-headless-no-dkms-(\d+)(-server)?(-open)?", frozenset({"library"}), (), ()),
    (r"nvidia-dkms-(\d+)(-server)?(-open)?", frozenset({"module"}), (), ()),
    (r"linux-modules-nvidia-(\d+)(-server)?(-open)?-(aws|generic|virtual)", frozenset({"module"}), (), ()),
    (r"nvidia-utils-(\d+)(-server)?", frozenset({"library"}), ("nvidia-smi",), ("nvidia-persistenced",)),
    (r"nvidia-compute-utils-(\d+)(-server)?", frozenset({"library"}), ("nvidia-smi",), ("nvidia-persistenced",)),
    (r"libnvidia-compute-(\d+)(-server)?", frozenset({"library"}), (), ()),
    (r"(?:cuda-drivers-|nvidia-)fabricmanager-(\d+)", frozenset({"fabric"}), ("nv-fabricmanager",), ("nvidia-fabricmanager",)),
)
"""Name pattern (group 1: driver branch) -> what it gives, its programs, its services."""

_PLAIN: Final[dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]]] = {
    "python3-pip": ("24.0+dfsg-1ubuntu1.3", (), ()),
    "python3-venv": ("3.12.3-0ubuntu2", (), ()),
    "python3.12-venv": ("3.12.3-1ubuntu0.8", (), ()),
    "python3-full": ("3.12.3-0ubuntu2", (), ()),
    "python3-dev": ("3.12.3-0ubuntu2", (), ()),
    "python3": ("3.12.3-0ubuntu2", (), ()),
    "docker.io": ("28.2.2-0ubuntu1~24.04.1", ("docker",), ("docker", "containerd")),
    "docker-ce": ("5:28.5.1-1~ubuntu.24.04~noble", ("docker",), ("docker", "containerd")),
    "docker-ce-cli": ("5:28.5.1-1~ubuntu.24.04~noble", ("docker",), ()),
    "containerd": ("1.7.28-0ubuntu1~24.04.1", (), ("containerd",)),
    "containerd.io": ("1.7.28-1~ubuntu.24.04~noble", (), ("containerd",)),
    "nvidia-container-toolkit": ("1.18.0-1", ("nvidia-ctk",), ()),
    "nvidia-container-toolkit-base": ("1.18.0-1", ("nvidia-ctk",), ()),
    "libnvidia-container1": ("1.18.0-1", (), ()),
    "libnvidia-container-tools": ("1.18.0-1", (), ()),
    "datacenter-gpu-manager": ("1:3.3.9", ("dcgmi",), ("nvidia-dcgm",)),
    "datacenter-gpu-manager-4-core": ("1:4.4.1-1", ("dcgmi",), ("nvidia-dcgm",)),
    "datacenter-gpu-manager-4-cuda12": ("1:4.4.1-1", ("dcgmi",), ("nvidia-dcgm",)),
    "datacenter-gpu-manager-4-cuda13": ("1:4.4.1-1", ("dcgmi",), ("nvidia-dcgm",)),
    "cuda-keyring": ("1.1-1", (), ()),
    "nvidia-persistenced": ("575.57.08-0ubuntu1", (), ("nvidia-persistenced",)),
    "unattended-upgrades": ("2.9.1+nmu4ubuntu1", (), ("unattended-upgrades",)),
    "linux-aws": ("6.14.0-1015.15~24.04.1", (), ()),
    "linux-image-aws": ("6.14.0-1015.15~24.04.1", (), ()),
    "ubuntu-drivers-common": ("1:0.9.7.6ubuntu3.4", (), ()),
    "chrony": ("4.5-1ubuntu4.2", (), ("chrony",)),
    "openssh-server": ("1:9.6p1-3ubuntu13.14", (), ("ssh",)),
    "nvme-cli": ("2.8-1ubuntu0.1", (), ()),
}
"""Name -> version, programs, services. Names below have no effect beyond being installed."""

_TOOLS: Final = frozenset(
    [
        "apt-transport-https",
        "build-essential",
        "ca-certificates",
        "curl",
        "dkms",
        "gcc",
        "git",
        "gnupg",
        "htop",
        "iproute2",
        "jq",
        "kmod",
        "less",
        "lsb-release",
        "make",
        "mdadm",
        "numactl",
        "pciutils",
        "procps",
        "rsync",
        "software-properties-common",
        "tar",
        "tmux",
        "unzip",
        "util-linux",
        "wget",
        "xz-utils",
        "zstd",
        "screen",
        "nano",
        "vim",
        "sudo",
        "psmisc",
        "ethtool",
        "libssl-dev",
        "libffi-dev",
        "pkg-config",
        "ncurses-bin",
        "gpg",
        "gpg-agent",
        "dirmngr",
        "ubuntu-keyring",
        "libc6-dev",
        "cron",
        "logrotate",
        "rsyslog",
    ]
)

PROGRAMS: Final = ("ssh", "containerd", "cron", "rsyslog", "systemd-timesyncd", "snapd", "unattended-upgrades")
"""Services that every image has."""


def find(name: str) -> Package | None:
    """Returns the one version on offer, or None when no repository has such a package."""
    for pattern, gives, programs, services in _DRIVER:
        matched = re.fullmatch(pattern, name)
        if matched and matched[1] in DRIVERS:
            release = DRIVERS[matched[1]][0]
            own = "cuda" in name or "fabric" in name
            version = f"{release}-1" if own else f"{release}-0ubuntu0.24.04.1"
            return Package(name, version, gives, programs, services, release)
    if toolkit := re.fullmatch(r"cuda-(?:toolkit|nvcc|compiler|libraries|runtime)-(\d+)-(\d+)", name):
        programs = ("nvcc",) if name.startswith(("cuda-toolkit", "cuda-nvcc", "cuda-compiler")) else ()
        return Package(name, f"{toolkit[1]}.{toolkit[2]}.1-1", frozenset({"cuda"}), programs)
    if name in _PLAIN:
        version, programs, services = _PLAIN[name]
        gives = (
            frozenset({"pip"}) if name == "python3-pip" else frozenset({"kernel"}) if name.startswith("linux-") else frozenset()
        )
        return Package(name, version, gives, programs, services)
    if name in _TOOLS or re.fullmatch(r"linux-headers-[\w.+-]+|linux-modules-extra-[\w.+-]+", name):
        return Package(name, "24.04-1")
    return None


def install(node: NodeState, values: dict[str, str], package: Package) -> list[str]:
    """Makes a package's changes to the state and the root folder; returns lines that its installation prints."""
    values[f"pkg.{package.name}"] = package.version
    if package.name in {"python3.12-venv", "python3-full"}:
        values.setdefault("pkg.python3-venv", _PLAIN["python3-venv"][0])
    facts = node.facts()
    for program in package.programs:
        _link(_place(node, program), facts["tool"])
    for service in package.services:
        values.setdefault(f"svc.{service}", "disabled,inactive" if service.startswith("nvidia-") else "enabled,active")
    if "pip" in package.gives:
        make_pip(node.root / "usr", str(node.root / "usr/bin/python3"))
    if "library" in package.gives:
        values["lib.version"] = package.driver
        values["cuda.driver"] = cuda_of(package.driver)
        _link_libraries(node, facts)
    if "fabric" in package.gives:
        values["fabric.version"] = package.driver
    if "cuda" in package.gives:
        values["cuda.toolkit"] = ".".join(package.version.split(".")[:2])
    if "kernel" in package.gives:
        return require_reboot(node, package.name)
    return _install_module(node, values, package) if "module" in package.gives else []


def _install_module(node: NodeState, values: dict[str, str], package: Package) -> list[str]:
    values["module.installed"] = package.driver
    blacklist = node.root / "etc/modprobe.d/nvidia-graphics-drivers.conf"
    blacklist.write_text("blacklist nouveau\nalias nouveau off\n", encoding="utf-8")
    printed = [f"nvidia/{package.driver}: building for the running kernel (simulated)... done."]
    if values.get("module.loaded", "") not in {"", package.driver} or values.get("nouveau") == "1":
        printed += require_reboot(node, package.name)
    return printed


def require_reboot(node: NodeState, name: str) -> list[str]:
    """Leaves the marks that Ubuntu leaves when a restart is needed."""
    (node.root / "run/reboot-required").write_text("*** System restart required ***\n", encoding="utf-8")
    with (node.root / "run/reboot-required.pkgs").open("a", encoding="utf-8") as names:
        names.write(f"{name}\n")
    return ["*** System restart required ***"]


def remove(node: NodeState, values: dict[str, str], name: str) -> None:
    """Takes a package away: its programs and libraries, unless another installed package gives them too."""
    values.pop(f"pkg.{name}", None)
    left = [found for key in values if key.startswith("pkg.") and (found := find(key[4:]))]
    gone = find(name)
    if gone is None:
        return
    for program in set(gone.programs) - {one for package in left for one in package.programs}:
        _place(node, program).unlink(missing_ok=True)
    for service in set(gone.services) - {one for package in left for one in package.services}:
        values.pop(f"svc.{service}", None)
    kept = {one for package in left for one in package.gives}
    if "library" in gone.gives - kept:
        values["lib.version"] = ""
        for library in (node.root / "usr/lib/x86_64-linux-gnu").glob("libnvidia-ml.so*"):
            library.unlink()
    if "module" in gone.gives - kept:
        values["module.installed"] = ""


def _link_libraries(node: NodeState, facts: dict[str, object]) -> None:
    library = facts.get("nvml_library")
    if library:
        for name in ("libnvidia-ml.so.1", "libnvidia-ml.so"):
            _link(node.root / "usr/lib/x86_64-linux-gnu" / name, str(library))


def _place(node: NodeState, program: str) -> Path:
    """Returns where a package puts a program; the CUDA compiler is not on the PATH."""
    return node.root / ("usr/local/cuda/bin" if program == "nvcc" else "usr/bin") / program


def _link(link: Path, target: object) -> None:
    if not os.path.lexists(link):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(str(target))


def cuda_of(driver: str) -> str:
    """Returns the newest CUDA version that a driver release serves; ``N/A`` for an unknown release."""
    return next((cuda for release, cuda in DRIVERS.values() if release == driver), "N/A")
