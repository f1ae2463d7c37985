"""Writes a node's hardware state: at first boot, at each boot, and by fault."""

import hashlib
import time
import uuid
from pathlib import Path
from typing import Final

from hostler_sandbox.nodes.accelerators import DEVICES, Device, device_of
from hostler_sandbox.nodes.guest import packages
from hostler_sandbox.nodes.guest.state import NodeState
from hostler_sandbox.nodes_port import BootError, NodeSpec

IMAGES: Final = ("bare", "gpu")
_DISK_MIB: Final = 200 * 1024
_KERNEL: Final = "6.14.0-1015-aws"
_GPU_IMAGE: Final = (
    "nvidia-driver-570-server", "cuda-toolkit-12-8", "docker.io", "nvidia-container-toolkit", "datacenter-gpu-manager-4-cuda12",
    "python3-pip", "python3-venv",
)  # fmt: skip


def first_state(spec: NodeSpec) -> dict[str, str]:
    """Returns the state of a new machine before its first boot.

    Raises:
        BootError: an accelerator or image that is not known; the message lists those that are.
    """
    if spec.image not in IMAGES:
        raise BootError(f"image: {spec.image!r}: allowed: {', '.join(IMAGES)}")
    values = {
        "kernel": _KERNEL,
        "disk.total_mib": str(_DISK_MIB),
        "disk.used_mib": "6144" if spec.image == "gpu" else "2048",
        "disk.full": "0",
        "nouveau": "0",
        "module.installed": "",
        "module.loaded": "",
        "lib.version": "",
        "fabric.version": "",
        "cuda.toolkit": "",
        "cuda.driver": "",
        "driver.hangs": "0",
        "apt.updated": "0",
        "gpu.count": str(spec.accelerator_count if spec.accelerator_name else 0),
        "pkg.python3": "3.12.3-0ubuntu2",
        "pkg.openssh-server": "1:9.6p1-3ubuntu13.14",
        "pkg.unattended-upgrades": "2.9.1+nmu4ubuntu1",
    }
    values |= {f"svc.{name}": "enabled,active" for name in packages.PROGRAMS}
    if spec.accelerator_name:
        try:
            device = device_of(spec.accelerator_name, spec.instance_type)
        except KeyError:
            raise BootError(f"accelerator_name: {spec.accelerator_name!r}: known: {', '.join(DEVICES)}") from None
        for index in range(spec.accelerator_count):
            values |= _device_state(device, spec.node_id, index)
    return values


def _device_state(device: Device, node_id: str, index: int) -> dict[str, str]:
    """One accelerator, healthy and idle. Its id derives from the node, so that a replayed run shows the same ones."""
    digest = hashlib.sha256(f"{node_id}/{index}".encode()).digest()
    one = {
        "name": device.name,
        "architecture": device.architecture,
        "brand": device.brand,
        "pci_id": device.pci_id,
        "uuid": f"GPU-{uuid.UUID(bytes=digest[:16])}",
        "serial": f"SIMULATED-{digest[:4].hex()}",
        "bus_id": f"00000000:{0x10 + index:02X}:00.0",
        "memory_total_mib": str(device.memory_mib),
        "memory_used_mib": "0",
        "temperature_c": "31",
        "memory_temperature_c": "38" if device.has_row_remap else "",
        **_limits(device),
        "vbios": "SIMULATED",
        "utilisation_percent": "0",
        "memory_utilisation_percent": "0",
        "power_watts": str(device.idle_watts),
        "power_limit_watts": str(device.power_limit_watts),
        "sm_clock_mhz": str(device.sm_clock_mhz),
        "sm_clock_max_mhz": str(device.sm_clock_mhz),
        "memory_clock_mhz": str(device.memory_clock_mhz),
        "throttle": "1",
        "pcie_gen": str(device.pcie_gen),
        "pcie_gen_max": str(device.pcie_gen),
        "pcie_width": "16",
        "pcie_width_max": "16",
        "ecc": "1",
        "ecc_pending": "1",
        "mig": "0" if device.has_mig else "",
        "mig_devices": "0",
        "persistence": "0",
        "nvlinks": str(device.nvlinks),
        "nvlinks_down": "0",
        "nvlink_gb_per_s": str(device.nvlink_gb_per_s),
        "nvlink_version": str(device.nvlink_version),
        "needs_fabric": str(int(device.needs_fabric)),
        "lost": "0",
        "absent": "0",
        "recovery_action": "0",
        "sram_exceeded": "0",
        "processes": "",
    }
    counters = [f"ecc_{span}_{kind}" for span in ("volatile", "aggregate") for kind in ("corrected", "uncorrected")]
    one |= dict.fromkeys(counters, "0")
    remap = ("remapped_corrected", "remapped_uncorrected", "remap_pending", "remap_failed")
    retired = ("retired_single", "retired_double", "retire_pending")
    one |= dict.fromkeys(remap, "0" if device.has_row_remap else "")
    one |= dict.fromkeys(retired, "" if device.has_row_remap else "0")
    return {f"gpu.{index}.{key}": value for key, value in one.items()}


def _limits(device: Device) -> dict[str, str]:
    """Hopper, Ada and later tell how far below their limit they are; older ones tell the limits."""
    keys = ("slowdown_c", "shutdown_c", "limit_c", "slowdown_margin_c", "shutdown_margin_c")
    if device.has_margin:
        return dict(zip(keys, ("", "", "87", "-2", "-8"), strict=True))
    return dict(zip(keys, (str(device.slowdown_c), str(device.shutdown_c), "", "", ""), strict=True))


def install_image(node: NodeState, spec: NodeSpec) -> None:
    """Installs what the image has in place. For an accelerator that needs it, the fabric manager too."""
    if spec.image != "gpu":
        return
    names = list(_GPU_IMAGE)
    with node.change() as values:
        if values.get("gpu.0.needs_fabric") == "1":
            names.append("nvidia-fabricmanager-570")
        for name in names:
            found = packages.find(name)
            if found is None:
                raise BootError(f"image: no package {name}")
            packages.install(node, values, found)
        values["apt.updated"] = "1"
        for key in [key for key in values if key.startswith("svc.nvidia-")]:
            values[key] = "enabled,inactive"


def power_on(node: NodeState) -> None:
    """What a boot does to the hardware and the kernel: new boot id, modules loaded, volatile counters cleared, services
    started.
    """
    for name in ("kernel.log", "xid.events", "root/run/reboot-required", "root/run/reboot-required.pkgs"):
        (node.folder / name).unlink(missing_ok=True)
    with node.change() as values:
        values["boot_id"] = str(uuid.uuid4())
        values["booted_at"] = f"{time.time():.3f}"
        module, count = values["module.installed"], int(values["gpu.count"])
        values["module.loaded"] = module if count else ""
        values["driver.hangs"] = "0"
        values["nouveau"] = "1" if count and not module else "0"
        for index in range(count):
            _reset(values, f"gpu.{index}.")
        for key, value in values.items():
            if key.startswith("svc."):
                values[key] = "enabled,active" if value.startswith("enabled") else "disabled,inactive"
        if values.get("svc.nvidia-persistenced") == "enabled,active":
            values.update({f"gpu.{index}.persistence": "1" for index in range(count)})
    kernel = Path(node.root / "proc/sys/kernel/random")
    kernel.mkdir(parents=True, exist_ok=True)
    (kernel / "boot_id").write_text(f"{values['boot_id']}\n", encoding="utf-8")
    node.log_kernel(*_boot_messages(values))


_CLEARED_BY_POWER: Final = (
    "ecc_volatile_corrected", "ecc_volatile_uncorrected", "lost", "recovery_action", "memory_used_mib", "utilisation_percent",
    "persistence",
)  # fmt: skip


def _reset(values: dict[str, str], prefix: str) -> None:
    """What a power cycle clears: volatile ECC, lost state, pending remaps (done now), throttling, processes."""
    values[f"{prefix}ecc"] = values[f"{prefix}ecc_pending"]
    cleared = dict.fromkeys(_CLEARED_BY_POWER, "0") | {"processes": "", "throttle": "1"}
    values |= {prefix + key: value for key, value in cleared.items()}
    for key in ("remap_pending", "retire_pending"):
        if values.get(prefix + key):
            values[prefix + key] = "0"


def _boot_messages(values: dict[str, str]) -> list[str]:
    messages = [f"Linux version {values['kernel']} (simulated by hostler_sandbox)"]
    loaded = values["module.loaded"]
    for index in range(int(values["gpu.count"])):
        bus = values[f"gpu.{index}.bus_id"][4:].lower()
        if loaded:
            messages.append(f"nvidia {bus}: enabling device (0140 -> 0142)")
        elif values["nouveau"] == "1":
            messages.append(f"nouveau {bus}: driver bound (simulated)")
    if loaded:
        messages.append(f"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  {loaded}  (simulated)")
    return messages
