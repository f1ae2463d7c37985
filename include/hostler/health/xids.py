"""XIDs whose immediate action is a reset or more, as rows of data, and what a kernel log's lines of them add up to (pure).

Source: NVIDIA's XID catalogue for Ampere and newer (https://docs.nvidia.com/deploy/xid-errors/), immediate actions, version of
2025-10-29; 54 and 167 to 172 have no immediate action there and are ours. Others need at most a restarted program.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

SERIOUS_XIDS: Final[dict[int, str]] = {
    46: "GPU stopped processing: reset it",
    48: "uncorrectable ECC error: drain, reset the GPU",
    54: "auxiliary power is not connected: replace the node",
    62: "micro-controller halt: reset the GPU",
    64: "row remapping failed: drain, reset; replace when it repeats",
    74: "NVLink error: drain, reset the GPU",
    79: "GPU has fallen off the bus: drain, reboot; replace when it repeats",
    95: "uncontained memory error: end all its users, reset the GPU",
    109: "context switch timed out: reset the GPU",
    110: "security fault: reset the GPU",
    119: "GSP does not answer: reset the GPU",
    120: "GSP error: reset the GPU",
    136: "link training failed: drain, reset the GPU",
    140: "unrecovered ECC error: drain, reset the GPU",
    143: "GPU initialisation error: drain, reset, reboot",
    151: "key rotation error: reboot",
    155: "NVLink software-defined error: reset the GPU",
    156: "resource retirement: reset the GPU when idle",
    158: "GPU fatal timeout: reset the GPU",
    167: "PCIe fatal timeout: reboot; replace when it repeats",
    168: "reduced memory capacity: replace the node",
    169: "SEC2 halt: reset the GPU",
    171: "uncorrectable DRAM error: drain, reset the GPU",
    172: "uncorrectable SRAM error: drain, reset; replace over the threshold",
}
"""Code -> meaning and action."""

NVLINK5_XIDS: Final = range(144, 151)
"""Their action hangs on a sub-code that is not decoded here: a reason to look, not to end a node."""

RECOVERY_XID: Final = 154
"""The driver tells which recovery the device needs from now on."""

_RECOVERY = re.compile(r"recovery action changed.*\(([^()]*)\)\D*$", re.IGNORECASE)


def recovery_action(line: str) -> str | None:
    """Returns the new action of an XID 154 line, such as ``None`` or ``GPU Reset Required``; None when it names none."""
    found = _RECOVERY.search(line)
    return found.group(1).strip() if found else None


def judge_xids(xids: Iterable[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Returns reasons to call the node failed, and reasons to call it degraded, each device and code once.

    XID 154 is the driver's own word and overrides what the device's earlier lines asked for: ``None`` clears them.

    Args:
        xids: ``code``, ``pci_bus_id`` and ``line`` of each, oldest first, all of this boot.
    """
    failed: dict[tuple[str, int], str] = {}
    degraded: dict[tuple[str, int], str] = {}
    for xid in xids:
        code, device = int(xid["code"]), str(xid["pci_bus_id"]).lower()
        if code in SERIOUS_XIDS:
            failed.setdefault((device, code), f"{device}: XID {code} in this boot: {SERIOUS_XIDS[code]}")
        elif code in NVLINK5_XIDS:
            degraded.setdefault((device, code), f"{device}: XID {code} in this boot: NVLink unit error, needs decoding")
        elif code == RECOVERY_XID:
            action = recovery_action(str(xid.get("line", "")))
            if action is None:
                degraded[device, code] = f"{device}: XID {code} without a readable action"
                continue
            for key in [key for key in (*failed, *degraded) if key[0] == device]:
                failed.pop(key, None)
                degraded.pop(key, None)
            if action.lower() != "none":
                failed[device, code] = f"{device}: XID {code}: the driver asks for {action}"
    return list(failed.values()), list(degraded.values())
