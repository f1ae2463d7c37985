"""The long form of ``nvidia-smi``: one tree of tags and values, printed as XML (``-q -x``) or as text (``-q``)."""

import time
from xml.sax.saxutils import escape

from .packages import cuda_of
from .state import NodeState, accelerators

Tree = list[tuple[str, "str | Tree"]]
THROTTLE = (
    ("gpu_idle", 0x1), ("applications_clocks_setting", 0x2), ("sw_power_cap", 0x4), ("hw_slowdown", 0x8),
    ("hw_thermal_slowdown", 0x40), ("hw_power_brake_slowdown", 0x80), ("sync_boost", 0x10), ("sw_thermal_slowdown", 0x20),
    ("display_clocks_setting", 0x100),
)  # fmt: skip
"""Reason and bit, in the order of the output. Source: nvml.h, nvmlClocksEventReasons."""
_REASONS_RENAMED = 535
_SRAM_SPLIT = 550
_RECOVERY_ACTION = 560
"""First driver branches with: reasons called event reasons, SRAM errors by kind, the recovery action. Source: captures."""
RECOVERY = ("None", "Reset", "Reboot", "Drain P2P", "Drain and Reset")


def flag(value: str) -> str:
    """Returns Enabled or Disabled; N/A when the device has no such setting."""
    return {"1": "Enabled", "0": "Disabled"}.get(value, "N/A")


def yes(value: str) -> str:
    """Returns Yes or No; N/A when the device has no such thing."""
    return {"": "N/A", "0": "No"}.get(value, "Yes")


def unit(value: str, name: str) -> str:
    """Returns the value with its unit; N/A for none."""
    return f"{value} {name}" if value else "N/A"


def watts(value: str) -> str:
    """Returns watts with two digits."""
    return f"{float(value):.2f} W" if value else "N/A"


def device_tree(one: dict[str, str], values: dict[str, str]) -> Tree:
    """Returns one device, in the order of DTD v12."""
    branch = int(values["module.loaded"].split(".")[0])
    return [
        ("product_name", one["name"]),
        ("product_brand", one["brand"]),
        ("product_architecture", one["architecture"]),
        ("persistence_mode", flag(one["persistence"])),
        ("mig_mode", [("current_mig", flag(one["mig"])), ("pending_mig", flag(one["mig"]))]),
        ("mig_devices", _mig(one)),
        ("serial", one["serial"]),
        ("uuid", one["uuid"]),
        ("minor_number", one["index"]),
        ("vbios_version", one["vbios"]),
        ("board_part_number", "SIMULATED"),
        ("gsp_firmware_version", values["module.loaded"]),
        ("gpu_virtualization_mode", [("virtualization_mode", "Pass-Through"), ("host_vgpu_mode", "N/A")]),
        *_recovery(one, branch),
        ("pci", _pci(one)),
        ("fan_speed", "N/A"),
        ("performance_state", "P0"),
        ("clocks_event_reasons" if branch >= _REASONS_RENAMED else "clocks_throttle_reasons", _throttle(one, branch)),
        ("fb_memory_usage", _memory(one)),
        ("compute_mode", "Default"),
        ("utilization", _utilization(one)),
        ("ecc_mode", [("current_ecc", flag(one["ecc"])), ("pending_ecc", flag(one["ecc_pending"]))]),
        ("ecc_errors", [("volatile", _ecc(one, "volatile", branch)), ("aggregate", _ecc(one, "aggregate", branch))]),
        ("retired_pages", _retired(one)),
        ("remapped_rows", _remapped(one)),
        ("temperature", _temperature(one)),
        ("gpu_power_readings", _power(one)),
        ("clocks", _clocks(one["sm_clock_mhz"], one["memory_clock_mhz"])),
        ("max_clocks", _clocks(one["sm_clock_max_mhz"], one["memory_clock_mhz"])),
        ("fabric", _fabric(one, values)),
        ("processes", _processes(one)),
    ]  # fmt: skip


def _clocks(processor: str, memory: str) -> Tree:
    return [("graphics_clock", f"{processor} MHz"), ("sm_clock", f"{processor} MHz"), ("mem_clock", f"{memory} MHz")]


def _mig(one: dict[str, str]) -> "str | Tree":
    if one["mig"] != "1" or one["mig_devices"] == "0":
        return "None"
    size = int(one["memory_total_mib"]) // 8
    return [
        ("mig_device", [("index", str(index)), ("gpu_instance_id", str(index + 7)), ("compute_instance_id", "0"),
                        ("fb_memory_usage", [("total", f"{size} MiB"), ("used", "0 MiB"), ("free", f"{size} MiB")])])
        for index in range(int(one["mig_devices"]))
    ]  # fmt: skip


def _recovery(one: dict[str, str], branch: int) -> Tree:
    action = int(one["recovery_action"])
    if branch >= _RECOVERY_ACTION:
        return [("gpu_recovery_action", RECOVERY[action])]
    wanted = {"reset_required": "Reset", "drain_and_reset_recommended": "Drain and Reset"}
    return [("gpu_reset_status", [(tag, "Yes" if RECOVERY[action] == name else "No") for tag, name in wanted.items()])]


def _pci(one: dict[str, str]) -> Tree:
    bus = one["bus_id"]
    return [
        ("pci_bus", bus[9:11]),
        ("pci_device", bus[12:14]),
        ("pci_domain", bus[4:8]),
        ("pci_device_id", f"{one['pci_id'].upper()}10DE"),
        ("pci_bus_id", bus),
        ("pci_gpu_link_info", [
            ("pcie_gen", [("max_link_gen", one["pcie_gen_max"]), ("current_link_gen", one["pcie_gen"])]),
            ("link_widths", [("max_link_width", f"{one['pcie_width_max']}x"), ("current_link_width", f"{one['pcie_width']}x")]),
        ]),
        ("replay_counter", "0"),
    ]  # fmt: skip


def _throttle(one: dict[str, str], branch: int) -> Tree:
    prefix = "clocks_event_reason_" if branch >= _REASONS_RENAMED else "clocks_throttle_reason_"
    mask = int(one["throttle"])
    return [(prefix + name, "Active" if mask & bit else "Not Active") for name, bit in THROTTLE]


def _memory(one: dict[str, str]) -> Tree:
    total, used = int(one["memory_total_mib"]), int(one["memory_used_mib"])
    return [("total", f"{total} MiB"), ("reserved", "0 MiB"), ("used", f"{used} MiB"), ("free", f"{total - used} MiB")]


def _utilization(one: dict[str, str]) -> Tree:
    is_mig = one["mig"] == "1"
    names = (("gpu_util", "utilisation_percent"), ("memory_util", "memory_utilisation_percent"))
    return [(name, "N/A" if is_mig else unit(one[key], "%")) for name, key in names]


def _ecc(one: dict[str, str], span: str, branch: int) -> Tree:
    is_on = one["ecc"] == "1"
    zero = "0" if is_on else "N/A"
    sram = ("sram_uncorrectable_parity", "sram_uncorrectable_secded") if branch >= _SRAM_SPLIT else ("sram_uncorrectable",)
    tree: Tree = [("sram_correctable", zero), *((name, zero) for name in sram)]
    tree += [("dram_correctable", one[f"ecc_{span}_corrected"] if is_on else "N/A"),
             ("dram_uncorrectable", one[f"ecc_{span}_uncorrected"] if is_on else "N/A")]  # fmt: skip
    if span == "aggregate" and branch >= _SRAM_SPLIT:
        tree.append(("sram_threshold_exceeded", yes(one["sram_exceeded"]) if is_on else "N/A"))
    return tree


def _retired(one: dict[str, str]) -> Tree:
    return [
        ("multiple_single_bit_retirement", [("retired_count", one["retired_single"] or "N/A")]),
        ("double_bit_retirement", [("retired_count", one["retired_double"] or "N/A")]),
        ("pending_blacklist", yes(one["retire_pending"])),
        ("pending_retirement", yes(one["retire_pending"])),
    ]


def _remapped(one: dict[str, str]) -> "str | Tree":
    if not one["remapped_corrected"] or one["mig"] == "1":
        return "N/A"
    return [
        ("remapped_row_corr", one["remapped_corrected"]),
        ("remapped_row_unc", one["remapped_uncorrected"]),
        ("remapped_row_pending", yes(one["remap_pending"])),
        ("remapped_row_failure", yes(one["remap_failed"])),
    ]


def _temperature(one: dict[str, str]) -> Tree:
    memory: Tree = [("memory_temp", unit(one["memory_temperature_c"], "C"))]
    if not one["limit_c"]:
        limits: Tree = [("gpu_temp_tlimit", "N/A"), ("gpu_temp_max_threshold", f"{one['shutdown_c']} C"),
                        ("gpu_temp_slow_threshold", f"{one['slowdown_c']} C")]  # fmt: skip
    else:
        limits = [("gpu_temp_tlimit", f"{int(one['limit_c']) - int(one['temperature_c'])} C"),
                  ("gpu_temp_max_tlimit_threshold", f"{one['shutdown_margin_c']} C"),
                  ("gpu_temp_slow_tlimit_threshold", f"{one['slowdown_margin_c']} C")]  # fmt: skip
    return [("gpu_temp", f"{one['temperature_c']} C"), *limits, *memory]


def _power(one: dict[str, str]) -> Tree:
    limit, draw = watts(one["power_limit_watts"]), watts(one["power_watts"])
    draws: Tree = [(tag, draw) for tag in ("average_power_draw", "instant_power_draw", "power_draw")]
    return [("power_state", "P0"), *draws, ("current_power_limit", limit), ("default_power_limit", limit)]


def _fabric(one: dict[str, str], values: dict[str, str]) -> Tree:
    if one["needs_fabric"] != "1" or one["architecture"] == "Ampere":
        return [("state", "N/A"), ("status", "N/A")]
    is_up = values.get("svc.nvidia-fabricmanager", "").endswith(",active")
    return [("state", "Completed" if is_up else "In Progress"), ("status", "Success" if is_up else "N/A")]


def _processes(one: dict[str, str]) -> Tree:
    pairs = [word.split(":") for word in one["processes"].split(",") if ":" in word]
    return [("process_info", [("pid", pid), ("type", "C"), ("process_name", "[simulated]"), ("used_memory", f"{mib} MiB")])
            for pid, mib in pairs]  # fmt: skip


def _head(node: NodeState, values: dict[str, str]) -> Tree:
    return [
        ("timestamp", time.strftime("%a %b %e %H:%M:%S %Y")),
        ("driver_version", values["module.loaded"]),
        ("cuda_version", cuda_of(values["module.loaded"])),
        ("attached_gpus", str(len(accelerators(node.read())))),
    ]


def as_xml(node: NodeState, values: dict[str, str], chosen: list[dict[str, str]]) -> str:
    """Returns the document of ``-q -x``."""
    lines = ['<?xml version="1.0" ?>', '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">', "<nvidia_smi_log>"]
    lines.append("\t<!-- simulated by hostler_sandbox -->")
    lines += _xml(_head(node, values), 1)
    for one in chosen:
        lines += [f'\t<gpu id="{one["bus_id"]}">', *_xml(device_tree(one, values), 2), "\t</gpu>"]
    return "\n".join([*lines, "</nvidia_smi_log>"]) + "\n"


def _xml(tree: Tree, depth: int) -> list[str]:
    lines, tabs = [], "\t" * depth
    for tag, value in tree:
        if isinstance(value, str):
            lines.append(f"{tabs}<{tag}>{escape(value)}</{tag}>")
        else:
            lines += [f"{tabs}<{tag}>", *_xml(value, depth + 1), f"{tabs}</{tag}>"]
    return lines


def as_text(node: NodeState, values: dict[str, str], chosen: list[dict[str, str]]) -> str:
    """Returns the text of ``-q``. Labels are made from the tags, so some differ from the real ones in wording."""
    lines = ["", "==============NVSMI LOG (simulated by hostler_sandbox)==============", "", *_text(_head(node, values), 0)]
    for one in chosen:
        lines += [f"GPU {one['bus_id']}", *_text(device_tree(one, values), 1)]
    return "\n".join(lines) + "\n"


def _text(tree: Tree, depth: int) -> list[str]:
    lines = []
    for tag, value in tree:
        label = "    " * depth + tag.replace("_", " ").title()
        if isinstance(value, str):
            lines.append(f"{label:<51}: {value}")
        else:
            lines += [label, *_text(value, depth + 1)]
    return lines
