"""``lspci`` of any depth: which accelerators and network cards are on the bus, and whether they answer."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from hostler.health.finding import degraded, failed, noted, unknown
from hostler.health.pci import normal_pci
from hostler.health.roll_up import accelerator_health, cut, source_health
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.source import Source
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding, SourceHealth

KIND: Final = "lspci"
_HEAD: Final = re.compile(
    r"^((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ([^:\n]{3,80}): ([^\n]{1,300})$", re.MULTILINE | re.IGNORECASE
)
_GPU_CLASS: Final = re.compile(r"3D controller|VGA compatible|Display controller|Processing accelerators?", re.IGNORECASE)
_GPU_VENDOR: Final = re.compile(
    r"NVIDIA|\[10de:|Advanced Micro Devices|\[1002:|Habana|Google|\[1ae0:|Xilinx|\[10ee:", re.IGNORECASE
)
_NIC_CLASS: Final = re.compile(r"Infiniband controller|Ethernet controller|Network controller", re.IGNORECASE)
_LINK: Final = re.compile(r"LnkSta:\s{0,4}Speed ([^,\n]{1,30}), Width ([^,\n]{1,30})")
_SOURCE: Final = "pciutils lspci manual; Linux PCI: a device that is gone reads as all ones"


@dataclass(slots=True)
class _Device:
    pci: str
    kind: str
    name: str
    lines: list[str] = field(default_factory=list)

    @property
    def is_accelerator(self) -> bool:
        return bool(_GPU_CLASS.search(self.kind) and _GPU_VENDOR.search(self.name)) and "AST1150" not in self.name


def detect(text: str, name: str) -> float:
    """Returns 0.85 for several lines of lspci, 0.6 for one."""
    found = sum(1 for _, _ in zip(_HEAD.finditer(text), range(3), strict=False))
    if found:
        return 0.85 if found > 1 or "lspci" in name else 0.6
    return 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges what stands on the bus: a device that answers with all ones is lost; a list alone tells no health."""
    devices = list(_devices(text))
    if not devices:
        return source_health(KIND, findings=[no_answer(text, command, exit_code)])
    accelerators = [
        accelerator_health(pci=device.pci, findings=list(_accelerator(device))) for device in devices if device.is_accelerator
    ]
    findings = [found for device in devices if not device.is_accelerator for found in _other(device)]
    nics = sum(1 for device in devices if _NIC_CLASS.search(device.kind))
    said = f"{len(accelerators)} accelerators and {nics} network devices on the bus"
    findings.append(noted("pci.devices", said, said, _SOURCE))
    if not accelerators:
        findings.append(unknown("pci.no_accelerator", f"no accelerator among the {len(devices)} devices of the list"))
    return source_health(KIND, accelerators, findings=findings)


def _devices(text: str) -> Iterator[_Device]:
    current: _Device | None = None
    for line in text.splitlines():
        found = _HEAD.match(line)
        if found:
            if current is not None:
                yield current
            current = _Device(normal_pci(found[1]) or found[1], found[2], found[3])
        elif current is not None and line[:1].isspace():
            current.lines.append(line.strip())
    if current is not None:
        yield current


def _is_gone(device: _Device) -> bool:
    return "(rev ff)" in device.name or any("Unknown header type 7f" in line for line in device.lines)


def _accelerator(device: _Device) -> Iterator[Finding]:
    said = cut(f"{device.pci} {device.name}")
    if _is_gone(device):
        what = "the device answers with all ones: it has fallen off the bus; reboot, replace when it repeats"
        yield failed("gpu.fallen_off_bus", what, HealthAction.REBOOT_NODE, said, _SOURCE)
        return
    details = "\n".join(device.lines)
    driver = re.search(r"Kernel driver in use: (\S{1,40})", details)
    if driver and driver[1] == "nouveau":
        yield failed("driver.nouveau", "nouveau holds the GPU in place of the NVIDIA driver: repeat the driver setup",
                     HealthAction.REBOOT_NODE, said, "Linux drivers/gpu/drm/nouveau")  # fmt: skip
    elif "Kernel modules:" in details and driver is None:
        yield failed(
            "driver.not_bound", "no driver holds the GPU: repeat the driver setup", HealthAction.REBOOT_NODE, said, _SOURCE
        )
    elif driver and driver[1].startswith("vfio"):
        yield noted("driver.vfio", "the GPU is passed through to a guest", said, _SOURCE)
    link = _LINK.search(details)
    if link and "downgraded" in f"{link[1]} {link[2]}":
        width = " narrower" if "downgraded" in link[2] else ""
        what = (
            f"the PCIe link is{width or ' slower'} than it could be ({link[1]}, {link[2]}): an idle link slows"
            f" down by design, its width stays"
        )
        yield degraded("pcie.link", what, cut(link[0]), "pciutils lspci; an idle PCIe link downshifts")
    elif link is None and driver is None:
        yield unknown("unknown.health", "it is on the bus; nothing is told of its health", said)


def _other(device: _Device) -> Iterator[Finding]:
    said = cut(f"{device.pci} {device.name}")
    if _is_gone(device):
        is_nic = bool(_NIC_CLASS.search(device.kind))
        yield (failed if is_nic else _seen)(
            "pci.gone",
            f"{device.pci} ({device.kind}) answers with all ones: it is gone",
            HealthAction.REBOOT_NODE,
            said,
            _SOURCE,
        )
        return
    link = _LINK.search("\n".join(device.lines))
    if _NIC_CLASS.search(device.kind) and link and "downgraded" in f"{link[1]} {link[2]}":
        yield degraded(
            "pcie.nic_link",
            f"{device.pci}: the network card's PCIe link is less than it could be ({link[1]}, {link[2]})",
            cut(link[0]),
            _SOURCE,
        )


def _seen(code: str, what: str, action: HealthAction, evidence: str, source: str) -> Finding:
    return Finding(
        code=code,
        what=what,
        verdict=Verdict.DEGRADED,
        action=min(action, HealthAction.RECORD, key=lambda one: one.rank),
        evidence=evidence,
        source=source,
    )


LSPCI: Final = Source(kind=KIND, detect=detect, parse=parse, command=r"\blspci\b")
