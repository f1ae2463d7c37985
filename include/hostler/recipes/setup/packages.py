"""The package manager: apt or dnf, one way to ask and install, versions pinned, packages held."""

from __future__ import annotations

import re
from typing import Sequence

from .machine import Machine, StepError

INSTALL_S = 1800
UPDATE_S = 600
HELD = re.compile(
    r"(lib)?(nvidia|cuda)[-\w.+]*|linux-modules-nvidia[-\w.+]*|datacenter-gpu-manager[-\w.+]*|kmod-nvidia[-\w.+]*"
)
"""What must not change under a running job. Source: lyulyul/shine-cluster#30 (a library upgraded under a loaded module)."""

CUDA_REPOSITORY = "https://developer.download.nvidia.com/compute/cuda/repos"
BLACKLIST = "/etc/apt/apt.conf.d/52hostler-held"
BLACKLIST_TEXT = """// Written by the setup: the driver and its libraries change only when a node is set up.
Unattended-Upgrade::Package-Blacklist { "nvidia"; "libnvidia"; "cuda"; "libcuda"; "linux-modules-nvidia"; };
"""


class Apt:
    """Debian and Ubuntu."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def installed(self) -> dict[str, str]:
        """Returns installed packages and their versions."""
        done = self._machine.run("dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Package} ${Version}\\n")
        rows = [line.split() for line in done.output.splitlines()]
        # the second letter tells what is; the first what is wanted, such as h for hold
        return {row[1]: row[2] for row in rows if len(row) == 3 and row[0][1:2] == "i"}  # noqa: PLR2004 - three columns

    def offers(self, name: str, version: str) -> bool:
        """True when a repository has the package in this version (a beginning); an empty version is any."""
        told = self._machine.run("apt-cache", "policy", name).output
        found = re.findall(r"^  Candidate: (\S+)$|^ (?:\*\*\*|   ) (\S+) -?\d+$", told, re.MULTILINE)
        versions = {candidate or listed for candidate, listed in found} - {"(none)"}
        return any(re.sub(r"^\d+:", "", one).startswith(version) for one in versions)

    def refresh(self) -> None:
        """Reads the repositories' lists anew."""
        self._machine.must("apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", "update", timeout_s=UPDATE_S)

    def install(self, wanted: Sequence[tuple[str, str]]) -> None:
        """Installs (name, version) pairs; the version is a beginning, empty for any. Raises StepError."""
        names = [f"{name}={version}*" if version else name for name, version in wanted]
        options = ("-q", "-y", "--no-install-recommends", "--allow-change-held-packages", "-o", "DPkg::Lock::Timeout=300")
        self._machine.must("apt-get", *options, "install", *names, timeout_s=INSTALL_S)

    def add_nvidia_repository(self) -> None:
        """Adds NVIDIA's own repository, which keeps old versions. Raises StepError."""
        release = dict(re.findall(r'^(ID|VERSION_ID)="?([^"\n]+)"?$', self._machine.read("/etc/os-release"), re.MULTILINE))
        system = release.get("ID", "") + release.get("VERSION_ID", "").replace(".", "")
        machine = self._machine.run("uname", "-m").output.strip()
        folder = "sbsa" if machine == "aarch64" else "x86_64"
        url = f"{CUDA_REPOSITORY}/{system}/{folder}/cuda-keyring_1.1-1_all.deb"
        target = str(self._machine.home / "setup" / "cuda-keyring.deb")
        self._machine.must("curl", "-fsSL", "--retry", "3", "-o", target, url, as_root=False, timeout_s=120)
        self._machine.must("dpkg", "-i", target)
        self.refresh()

    def unheld(self) -> list[str]:
        """Returns installed packages that must not change and may."""
        held = set(self._machine.run("apt-mark", "showhold").output.split())
        return sorted(name for name in self.installed() if HELD.fullmatch(name) and name not in held)

    def hold(self, names: Sequence[str]) -> None:
        """Keeps packages as they are."""
        self._machine.must("apt-mark", "hold", *names)

    def upgrades_spare_us(self) -> bool:
        """True when unattended upgrades leave our packages alone."""
        return self._machine.read(BLACKLIST) == BLACKLIST_TEXT

    def spare_us(self) -> None:
        """Tells unattended upgrades to leave our packages alone."""
        self._machine.write(BLACKLIST, BLACKLIST_TEXT)


class Dnf:
    """Amazon Linux, Fedora, RHEL and kin."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def installed(self) -> dict[str, str]:
        """Returns installed packages and their versions."""
        rows = [line.split() for line in self._machine.run("rpm", "-qa", "--qf", "%{NAME} %{VERSION}\\n").output.splitlines()]
        return {row[0]: row[1] for row in rows if len(row) == 2}  # noqa: PLR2004 - two columns

    def offers(self, name: str, version: str) -> bool:
        """True when a repository has the package in this version (a beginning); an empty version is any."""
        done = self._machine.run("dnf", "-q", "list", "--showduplicates", name, as_root=True, timeout_s=UPDATE_S)
        found = [row.split()[1] for row in done.output.splitlines() if row.startswith(name + ".") and len(row.split()) > 1]
        return any(re.sub(r"^\d+:", "", one).startswith(version) for one in found)

    def refresh(self) -> None:
        """Reads the repositories' lists anew."""
        self._machine.must("dnf", "-q", "makecache", timeout_s=UPDATE_S)

    def install(self, wanted: Sequence[tuple[str, str]]) -> None:
        """Installs (name, version) pairs; the version is a beginning, empty for any. Raises StepError."""
        names = [f"{name}-{version}*" if version else name for name, version in wanted]
        self._machine.must("dnf", "-y", "install", *names, timeout_s=INSTALL_S)

    def add_nvidia_repository(self) -> None:
        """Adds NVIDIA's own repository. Raises StepError."""
        release = dict(re.findall(r'^(ID|VERSION_ID)="?([^"\n]+)"?$', self._machine.read("/etc/os-release"), re.MULTILINE))
        major = release.get("VERSION_ID", "").partition(".")[0]
        system = {"amzn": "amzn", "fedora": "fedora"}.get(release.get("ID", ""), "rhel") + major
        url = f"{CUDA_REPOSITORY}/{system}/x86_64/cuda-{system}.repo"
        self._machine.must("curl", "-fsSL", "--retry", "3", "-o", str(self._machine.path("/etc/yum.repos.d/cuda.repo")), url)
        self.refresh()

    def unheld(self) -> list[str]:
        """Returns installed packages that must not change and may."""
        held = self._machine.run("dnf", "-q", "versionlock", "list", as_root=True).output
        return sorted(name for name in self.installed() if HELD.fullmatch(name) and f"{name}-" not in held)

    def hold(self, names: Sequence[str]) -> None:
        """Keeps packages as they are."""
        if not any("versionlock" in name for name in self.installed()):
            self.install([("python3-dnf-plugin-versionlock", "")])
        self._machine.must("dnf", "versionlock", "add", *names)

    def upgrades_spare_us(self) -> bool:
        """True: dnf-automatic obeys the version lock."""
        return True

    def spare_us(self) -> None:
        """Nothing to do: dnf-automatic obeys the version lock."""


def package_manager(machine: Machine) -> Apt | Dnf:
    """Returns the machine's package manager. Raises StepError when it has none that we know."""
    if machine.has("apt-get"):
        return Apt(machine)
    if machine.has("dnf"):
        return Dnf(machine)
    raise StepError("no apt-get and no dnf here; allowed are Debian, Ubuntu, Amazon Linux 2023, Fedora and RHEL")


def ensure_offered(packages: Apt | Dnf, wanted: Sequence[tuple[str, str]]) -> None:
    """Makes the repositories offer the packages: as they are, after a refresh, or with NVIDIA's own. Raises StepError."""
    missing = _missing(packages, wanted)
    if missing:
        packages.refresh()
        missing = _missing(packages, wanted)
    if missing:
        try:
            packages.add_nvidia_repository()
        except StepError as error:
            raise StepError(f"no repository offers {', '.join(missing)}, and NVIDIA's could not be added: {error}") from error
        missing = _missing(packages, wanted)
    if missing:
        raise StepError(f"no repository offers {', '.join(missing)}")


def _missing(packages: Apt | Dnf, wanted: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{name} {version}" for name, version in wanted if not packages.offers(name, version)]
