"""``nvidia-smi --query-gpu`` and ``--query-compute-apps``: comma-separated values."""

import sys
import time

from .smi_tree import RECOVERY, flag, unit, watts, yes

_RENAMED = {
    "gpu_name": "name",
    "gpu_uuid": "uuid",
    "gpu_serial": "serial",
    "gpu_bus_id": "pci.bus_id",
    "pcie.link.gen.gpucurrent": "pcie.link.gen.current",
    "clocks.gr": "clocks.current.graphics",
    "clocks.sm": "clocks.current.sm",
    "clocks.mem": "clocks.current.memory",
    "clocks.max.gr": "clocks.max.graphics",
}
"""Other name of a field -> its name here."""


def _fields(one: dict[str, str], values: dict[str, str], count: int) -> dict[str, str]:
    """Returns every field that is known, with its unit."""
    is_mig = one["mig"] == "1"
    total, used = int(one["memory_total_mib"]), int(one["memory_used_mib"])
    mask = int(one["throttle"])
    ecc = {
        f"ecc.errors.{kind}.{span}.{where}": one[f"ecc_{span}_{kind}"] if one["ecc"] == "1" else ""
        for kind in ("corrected", "uncorrected")
        for span in ("volatile", "aggregate")
        for where in ("total", "dram", "device_memory")
    }
    throttle = {
        f"clocks_{word}_reasons.{name}": "Active" if mask & bit else "Not Active"
        for word in ("throttle", "event")
        for name, bit in (("gpu_idle", 1), ("sw_power_cap", 4), ("hw_slowdown", 8), ("hw_thermal_slowdown", 0x40),
                          ("hw_power_brake_slowdown", 0x80), ("sw_thermal_slowdown", 0x20))
    }  # fmt: skip
    return {
        "timestamp": time.strftime("%Y/%m/%d %H:%M:%S.000"),
        "driver_version": values["module.loaded"],
        "count": str(count),
        "index": one["number"],
        "name": one["name"],
        "serial": one["serial"],
        "uuid": one["uuid"],
        "pci.bus_id": one["bus_id"],
        "pci.device_id": f"0x{one['pci_id'].upper()}10DE",
        "pcie.link.gen.current": one["pcie_gen"],
        "pcie.link.gen.max": one["pcie_gen_max"],
        "pcie.link.width.current": one["pcie_width"],
        "pcie.link.width.max": one["pcie_width_max"],
        "persistence_mode": flag(one["persistence"]).replace("N/A", ""),
        "pstate": "P0",
        "memory.total": f"{total} MiB",
        "memory.used": f"{used} MiB",
        "memory.free": f"{total - used} MiB",
        "memory.reserved": "0 MiB",
        "compute_mode": "Default",
        "compute_cap": {
            "Volta": "7.0",
            "Turing": "7.5",
            "Ampere": "8.0",
            "Ada Lovelace": "8.9",
            "Hopper": "9.0",
            "Blackwell": "10.0",
        }[one["architecture"]],
        "utilization.gpu": "" if is_mig else unit(one["utilisation_percent"], "%"),
        "utilization.memory": "" if is_mig else unit(one["memory_utilisation_percent"], "%"),
        "temperature.gpu": one["temperature_c"],
        "temperature.gpu.tlimit": str(int(one["limit_c"]) - int(one["temperature_c"])) if one["limit_c"] else "",
        "temperature.memory": one["memory_temperature_c"],
        "power.draw": watts(one["power_watts"]),
        "power.limit": watts(one["power_limit_watts"]),
        "clocks.current.graphics": unit(one["sm_clock_mhz"], "MHz"),
        "clocks.current.sm": unit(one["sm_clock_mhz"], "MHz"),
        "clocks.current.memory": unit(one["memory_clock_mhz"], "MHz"),
        "clocks.max.graphics": unit(one["sm_clock_max_mhz"], "MHz"),
        "clocks.max.sm": unit(one["sm_clock_max_mhz"], "MHz"),
        "ecc.mode.current": flag(one["ecc"]),
        "ecc.mode.pending": flag(one["ecc_pending"]),
        "mig.mode.current": flag(one["mig"]).replace("N/A", ""),
        "mig.mode.pending": flag(one["mig"]).replace("N/A", ""),
        "retired_pages.single_bit_ecc.count": one["retired_single"],
        "retired_pages.double_bit.count": one["retired_double"],
        "retired_pages.pending": yes(one["retire_pending"]).replace("N/A", ""),
        "remapped_rows.correctable": one["remapped_corrected"],
        "remapped_rows.uncorrectable": one["remapped_uncorrected"],
        "remapped_rows.pending": yes(one["remap_pending"]).replace("N/A", ""),
        "remapped_rows.failure": yes(one["remap_failed"]).replace("N/A", ""),
        "gpu_recovery_action": RECOVERY[int(one["recovery_action"])],
        "clocks_throttle_reasons.active": f"0x{mask:016X}",
        "clocks_event_reasons.active": f"0x{mask:016X}",
        "vbios_version": one["vbios"],
        **ecc,
        **throttle,
    }


def print_csv(values: dict[str, str], chosen: list[dict[str, str]], query: str, form: str) -> int:
    """Prints one line a device. A lost one prints errors in its place, never a number, and the exit status tells it."""
    names = [name.strip() for name in query.split(",")]
    options = {word.strip() for word in form.split(",")}
    known = _fields(chosen[0], values, len(chosen))
    for name in names:
        if _RENAMED.get(name, name) not in known:
            sys.stdout.write(f'Field "{name}" is not a valid field to query.\n\n')
            return 2
    if "noheader" not in options:
        sys.stdout.write(", ".join(_head(name, known, options) for name in names) + "\n")
    status = 0
    for one in chosen:
        if one["lost"] == "1":
            status = 15
            sys.stdout.write(", ".join("[GPU is lost]" for _ in names) + "\n")
            continue
        fields = _fields(one, values, len(chosen))
        sys.stdout.write(", ".join(_cell(fields[_RENAMED.get(name, name)], options) for name in names) + "\n")
    return status


def _head(name: str, known: dict[str, str], options: set[str]) -> str:
    value = known[_RENAMED.get(name, name)]
    for suffix in ("MiB", "MHz", "W", "%"):
        if value.endswith(f" {suffix}"):
            return f"{name} [{suffix}]"
    return name if options else ""


def _cell(value: str, options: set[str]) -> str:
    if value in {"", "N/A"}:
        return "[N/A]"
    return value.split(" ", maxsplit=1)[0] if "nounits" in options and value.endswith((" MiB", " MHz", " W", " %")) else value


def print_apps(chosen: list[dict[str, str]], query: str, form: str) -> int:
    """Prints one line a process that holds a device."""
    names = [name.strip() for name in query.split(",")]
    options = {word.strip() for word in form.split(",")}
    if "noheader" not in options:
        sys.stdout.write(", ".join(names) + "\n")
    for one in chosen:
        for word in one["processes"].split(","):
            pid, _, mib = word.partition(":")
            fields = dict.fromkeys(("used_gpu_memory", "used_memory"), f"{mib} MiB")
            fields |= dict.fromkeys(("process_name", "name"), "[simulated]")
            fields |= {"pid": pid, "gpu_uuid": one["uuid"], "gpu_bus_id": one["bus_id"], "gpu_name": one["name"]}
            if mib:
                sys.stdout.write(", ".join(_cell(fields.get(name, ""), options) for name in names) + "\n")
    return 0
