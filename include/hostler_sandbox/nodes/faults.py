"""Hardware faults that a node's accelerators can be given, as rows of data: what each writes into the hardware state.

Each fault is a mapping: ``kind``, ``gpu`` (index, 0 when left out) and what the kind takes. The kernel log lines follow
captures
of real machines. They clear as real ones do: volatile counters and pending remaps by a reboot, the rest not.

Source: https://docs.nvidia.com/deploy/xid-errors/, nvml.h (throttle bits), kernel logs in public issue reports.
"""

from collections.abc import Callable, Mapping
from typing import Final

from hostler_sandbox.nodes.guest.state import XID_EVENTS, NodeState

Fault = Mapping[str, object]
_RESET, _REBOOT = 1, 2
_OFF_THE_BUS, _REMAP, _REMAP_FAILED = 79, 63, 64
_UNCORRECTABLE, _NEEDS_RESET = frozenset({48, 94, 95}), frozenset({74, 95, 119, 120})
_WORDS: Final = {
    31: "pid=1234, name=python, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC0 GPCCLIENT_T1_0 faulted",
    48: "pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been detected on GPU",
    63: "pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping, reset gpu to activate.",
    64: "pid='<unknown>', name=<unknown>, Row Remapper: Failed to write remapping entry",
    74: "pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 0(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
    79: "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    94: "pid='<unknown>', name=<unknown>, Contained: SM (0x1). RST: No, D-RST: No",
    95: "pid='<unknown>', name=<unknown>, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",
    119: "pid=1234, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76",
}


def _xid(node: NodeState, values: dict[str, str], index: int, fault: Fault) -> None:
    """``xid``: the number. Logs it, tells waiting programs, and does what that XID means for the device."""
    number = int(str(fault["xid"]))
    bus = values[f"gpu.{index}.bus_id"][4:-2].lower()
    node.log_kernel(f"NVRM: Xid (PCI:{bus}): {number}, {_WORDS.get(number, 'pid=1234, name=python, (simulated)')}")
    with (node.folder / XID_EVENTS).open("a", encoding="utf-8") as events:
        events.write(f"{index} {number}\n")
    prefix = f"gpu.{index}."
    if number == _OFF_THE_BUS:
        values |= {f"{prefix}lost": "1", f"{prefix}recovery_action": str(_REBOOT)}
    elif number in _UNCORRECTABLE:
        _add(values, f"{prefix}ecc_volatile_uncorrected", 1)
        _add(values, f"{prefix}ecc_aggregate_uncorrected", 1)
    elif number == _REMAP and values[f"{prefix}remap_pending"]:
        values |= {f"{prefix}remap_pending": "1"}
        _add(values, f"{prefix}remapped_uncorrected", 1)
    elif number == _REMAP_FAILED and values[f"{prefix}remap_failed"]:
        values[f"{prefix}remap_failed"] = "1"
    if number in _NEEDS_RESET:
        values[f"{prefix}recovery_action"] = str(_RESET)


def _add(values: dict[str, str], key: str, count: int) -> None:
    values[key] = str(int(values[key] or "0") + count)


def _lost(node: NodeState, values: dict[str, str], index: int, _fault: Fault) -> None:
    """The device stops to answer, with XID 79; a reboot brings it back."""
    _xid(node, values, index, {"xid": 79})


def _missing(_node: NodeState, values: dict[str, str], index: int, _fault: Fault) -> None:
    """The device is not on the bus at all, also after a reboot: fewer devices are counted."""
    values[f"gpu.{index}.absent"] = "1"


def _ecc(node: NodeState, values: dict[str, str], index: int, fault: Fault) -> None:
    """``count`` (1): uncorrectable errors, the first with XID 94."""
    _xid(node, values, index, {"xid": 94})
    more = int(str(fault.get("count", 1))) - 1
    _add(values, f"gpu.{index}.ecc_volatile_uncorrected", more)
    _add(values, f"gpu.{index}.ecc_aggregate_uncorrected", more)


def _ecc_off(_node: NodeState, values: dict[str, str], index: int, _fault: Fault) -> None:
    """ECC is switched off."""
    values |= {f"gpu.{index}.ecc": "0", f"gpu.{index}.ecc_pending": "0"}


def _remap_pending(node: NodeState, values: dict[str, str], index: int, _fault: Fault) -> None:
    """A row waits for its remap, with XID 63; a reset or reboot does it."""
    _xid(node, values, index, {"xid": 63})


def _remap_failed(node: NodeState, values: dict[str, str], index: int, _fault: Fault) -> None:
    """No spare row is left, with XID 64; stays."""
    _xid(node, values, index, {"xid": 64})


def _hot(_node: NodeState, values: dict[str, str], index: int, fault: Fault) -> None:
    """``temperature_c`` (91): too hot; the hardware slows down (bits 0x8 and 0x40)."""
    clock = int(values[f"gpu.{index}.sm_clock_max_mhz"]) // 2
    values |= {f"gpu.{index}.temperature_c": str(fault.get("temperature_c", 91)), f"gpu.{index}.throttle": str(0x48),
               f"gpu.{index}.sm_clock_mhz": str(clock)}  # fmt: skip


def _throttle(_node: NodeState, values: dict[str, str], index: int, fault: Fault) -> None:
    """``mask``: throttle reasons as NVML's bits, 0x80 (power brake) when left out."""
    values[f"gpu.{index}.throttle"] = str(int(str(fault.get("mask", 0x80)), 0))


def _nvlink(node: NodeState, values: dict[str, str], index: int, fault: Fault) -> None:
    """``link`` (0): this NVLink goes down, with XID 74."""
    key = f"gpu.{index}.nvlinks_down"
    values[key] = str(int(values[key]) | 1 << int(str(fault.get("link", 0))))
    _xid(node, values, index, {"xid": 74})


def _pcie(_node: NodeState, values: dict[str, str], index: int, fault: Fault) -> None:
    """``width`` (8) and ``generation``: the link to the host trains lower."""
    values[f"gpu.{index}.pcie_width"] = str(fault.get("width", 8))
    if "generation" in fault:
        values[f"gpu.{index}.pcie_gen"] = str(fault["generation"])


def _driver_mismatch(_node: NodeState, values: dict[str, str], _index: int, fault: Fault) -> None:
    """``version``: the driver's libraries were upgraded under the loaded module (what an unattended upgrade does)."""
    values["lib.version"] = str(fault.get("version", "580.105.08"))


def _driver_unloaded(node: NodeState, values: dict[str, str], _index: int, _fault: Fault) -> None:
    """The kernel module is gone."""
    values["module.loaded"] = ""
    node.log_kernel("NVRM: unloading (simulated)")


def _driver_hangs(_node: NodeState, values: dict[str, str], _index: int, _fault: Fault) -> None:
    """Every call to the driver hangs, until the next boot."""
    values["driver.hangs"] = "1"


def _process(_node: NodeState, values: dict[str, str], index: int, fault: Fault) -> None:
    """``pid``, ``memory_mib`` (1024): a process holds the device."""
    mib = int(str(fault.get("memory_mib", 1024)))
    values |= {f"gpu.{index}.processes": f"{fault.get('pid', 4242)}:{mib}", f"gpu.{index}.memory_used_mib": str(mib)}


def _mig(_node: NodeState, values: dict[str, str], index: int, fault: Fault) -> None:
    """``devices`` (7): the device is split; utilisation is then not to be had."""
    values |= {f"gpu.{index}.mig": "1", f"gpu.{index}.mig_devices": str(fault.get("devices", 7))}


def _set(_node: NodeState, values: dict[str, str], index: int, fault: Fault) -> None:
    """``key``, ``value``: any reading of the state file, for what no row here covers."""
    key = f"gpu.{index}.{fault['key']}"
    if key not in values:
        raise ValueError(f"key: {fault['key']!r}: no such reading")
    values[key] = str(fault["value"])


KINDS: Final[dict[str, Callable[[NodeState, dict[str, str], int, Fault], None]]] = {
    "xid": _xid, "lost": _lost, "missing": _missing, "ecc": _ecc, "ecc_off": _ecc_off, "remap_pending": _remap_pending,
    "remap_failed": _remap_failed, "hot": _hot, "throttle": _throttle, "nvlink_down": _nvlink, "pcie": _pcie,
    "driver_mismatch": _driver_mismatch, "driver_unloaded": _driver_unloaded, "driver_hangs": _driver_hangs,
    "process": _process, "mig": _mig, "set": _set,
}  # fmt: skip


def inject(node: NodeState, fault: Fault) -> None:
    """Writes one fault into the state.

    Raises:
        ValueError: unknown kind, no such accelerator, or a detail is missing or no number; nothing was changed.
    """
    kind = str(fault.get("kind"))
    if kind not in KINDS:
        raise ValueError(f"kind: {kind!r}: allowed: {', '.join(KINDS)}")
    index = int(str(fault.get("gpu", 0)))
    with node.change() as values:
        if not kind.startswith("driver_") and not 0 <= index < int(values["gpu.count"]):
            raise ValueError(f"gpu: {index}: this node has {values['gpu.count']}")
        try:
            KINDS[kind](node, values, index, fault)
        except KeyError as error:
            raise ValueError(f"{error.args[0]}: missing in a fault of kind {kind!r}") from error
