"""Reads a node's accelerators and prints one JSON document, version 1. Read-only, at most 20 s, standard library, Python 3.8+.

Run it with plain ``python3 probe.py``. Readings come from NVML (through ``pynvml``, with the interpreter of
``$HOSTLER_HOME/venv`` where there is one), else from ``nvidia-smi -q -x``. NVML is asked in a child process, since a call into
a sick driver may hang for ever; what the child said before it hung is kept.

The document: ``version``, ``probe_version``, ``source`` (``nvml``, ``nvidia-smi`` or ``none``), ``errors`` (word for word),
``driver_version``, ``cuda_version``, ``boot_id``, ``uptime_s``, ``wall_clock_at``, ``elapsed_s``, ``pci_accelerator_count``,
``accelerators`` (one object each: ``index``, the names of ``FIELDS``, ``error``, ``missing``), ``kernel_log``, ``xids``,
``disks``. A value that cannot be read is null and its name stands in ``missing`` with the reason; it is never 0.
Exit status 0 whenever the document was written.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, Callable, Dict

PROBE_VERSION = "1"
BUDGET_S = 18.0
"""All of the reading; the rest of the 20 s is for the interpreters to start."""
NVML_BUDGET_S = 8.0
STARTED = time.monotonic()

UNCORRECTABLE = (
    "sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable", "double_bit/total",
)  # fmt: skip
# Field -> how nvidia-smi's XML tells it: kind, and the spellings of drivers 418 to 595, first found wins.
LINK = "pci/pci_gpu_link_info/"
XML_FIELDS: dict[str, tuple[str, ...]] = {
    "uuid": ("text", "uuid"), "name": ("text", "product_name"), "pci_bus_id": ("text", "pci/pci_bus_id"),
    "memory_total_mib": ("int", "fb_memory_usage/total"), "memory_used_mib": ("int", "fb_memory_usage/used"),
    "temperature_c": ("int", "temperature/gpu_temp"), "temperature_margin_c": ("int", "temperature/gpu_temp_tlimit"),
    "temperature_slowdown_c": ("int", "temperature/gpu_temp_slow_threshold"),
    "temperature_shutdown_c": ("int", "temperature/gpu_temp_max_threshold"),
    "temperature_slowdown_margin_c": ("int", "temperature/gpu_temp_slow_tlimit_threshold"),
    "utilisation_ratio": ("percent", "utilization/gpu_util"), "pcie_generation": ("int", LINK + "pcie_gen/current_link_gen"),
    "is_ecc_enabled": ("flag", "ecc_mode/current_ecc"), "is_ecc_pending": ("flag", "ecc_mode/pending_ecc"),
    "ecc_volatile_uncorrectable_count": ("sum", *("ecc_errors/volatile/" + name for name in UNCORRECTABLE)),
    "ecc_aggregate_uncorrectable_count": ("sum", *("ecc_errors/aggregate/" + name for name in UNCORRECTABLE)),
    "ecc_sram_correctable_count": ("int", "ecc_errors/aggregate/sram_correctable"),
    "ecc_dram_correctable_count": ("int", "ecc_errors/aggregate/dram_correctable"),
    "is_sram_threshold_exceeded": ("flag", "ecc_errors/aggregate/sram_threshold_exceeded"),
    "remapped_correctable_count": ("int", "remapped_rows/remapped_row_corr", "remapped_rows"),
    "remapped_uncorrectable_count": ("int", "remapped_rows/remapped_row_unc", "remapped_rows"),
    "is_remap_pending": ("flag", "remapped_rows/remapped_row_pending", "remapped_rows"),
    "has_remap_failed": ("flag", "remapped_rows/remapped_row_failure", "remapped_rows"),
    "throttle_mask": ("mask", "clocks_event_reasons", "clocks_throttle_reasons"), "recovery_action": ("text", "gpu_recovery_action"),
    "pcie_generation_max": ("int", LINK + "pcie_gen/max_link_gen"),
    "pcie_width": ("int", LINK + "link_widths/current_link_width"),
    "pcie_width_max": ("int", LINK + "link_widths/max_link_width"),
    "is_persistent": ("flag", "persistence_mode"), "is_mig_enabled": ("flag", "mig_mode/current_mig"),
    "mig_instances": ("mig", "mig_devices"), "processes": ("processes", "processes"),
}  # fmt: skip
FIELDS = (*XML_FIELDS, "nvlink_count", "nvlink_active_count")
# Bit of each throttle reason. Source: nvml.h, nvmlClocksEventReasons constants, read 2026-12-01.
THROTTLE_BITS = {
    "gpu_idle": 0x1, "applications_clocks_setting": 0x2, "sw_power_cap": 0x4, "hw_slowdown": 0x8, "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20, "hw_thermal_slowdown": 0x40, "hw_power_brake_slowdown": 0x80, "display_clocks_setting": 0x100,
}  # fmt: skip
# Names of nvmlDeviceGpuRecoveryAction_t. Source: nvml.h of driver 580, read 2026-12-01.
OLD_THROTTLE = "CurrentClocksThrottleReasons"
RECOVERY_ACTIONS = {0: "None", 1: "Reset", 2: "Reboot", 3: "Drain P2P", 4: "Drain and Reset"}
LOST = re.compile(r"Unable to determine the device handle for GPU\s*([0-9A-Fa-f:.]+):\s*(.+)")
XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)")
UPTIME_STAMP = re.compile(r"^\[\s*(\d+\.\d+)\]")

Json = Dict[str, Any]


class UnreadableError(Exception):
    """A value is not to be had; the text says why."""


def run(argv: list[str], timeout_s: float) -> tuple[int | None, str, str]:
    """Returns exit status (None: it did not start or did not end in time), output so far, and error text."""
    timeout_s = min(timeout_s, BUDGET_S - (time.monotonic() - STARTED))
    with tempfile.TemporaryFile() as out:  # a file, not a pipe: a hung child may keep a pipe open for ever
        try:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        except OSError as error:
            return None, "", str(error.strerror or error)
        code, problem = None, ""
        try:
            code = child.wait(timeout=max(timeout_s, 0.1))
        except subprocess.TimeoutExpired:
            problem = f"no answer in {max(timeout_s, 0.1):.1f} s"
            child.kill()  # not waited for: a child that is stuck in the driver cannot be killed
        out.seek(0)
        return code, out.read().decode("utf-8", "replace"), problem


def new_accelerator(index: int | None, error: str | None = None) -> Json:
    """Returns an accelerator with nothing read yet."""
    return {"index": index, **dict.fromkeys(FIELDS), "error": error, "missing": {}}


def fill(entry: Json, name: str, read: Callable[..., Any], *args: Any) -> None:
    """Puts a reading into the entry, or the reason why there is none."""
    try:
        entry[name] = read(*args)
    except Exception as error:  # noqa: BLE001 - whatever a driver raises, the other readings are still wanted
        entry["missing"][name] = str(error) or type(error).__name__


def nvml_readers(nv: Any, handle: Any) -> dict[str, Callable[[], Any]]:
    """Returns how to read each field of one device."""

    def get(name: str, *args: Any) -> Any:
        return getattr(nv, "nvmlDeviceGet" + name)(handle, *args)

    def field(name: str) -> int:
        value = get("FieldValues", [getattr(nv, "NVML_FI_DEV_" + name)])[0]
        if value.nvmlReturn != 0:
            raise UnreadableError(str(nv.NVMLError(value.nvmlReturn)))
        return int(value.value.siVal if "TLIMIT" in name else value.value.uiVal)

    def links() -> list[int]:
        return [get("NvLinkState", link) for link in range(field("NVLINK_LINK_COUNT"))]

    def sram_exceeded() -> bool:
        status = nv.c_nvmlEccSramErrorStatus_v1_t()
        get("SramEccErrorStatus", ctypes.byref(status))  # the binding hands it on as it is: by value would crash
        return bool(status.bThresholdExceeded)

    def processes() -> list[Json]:
        return [
            {"pid": p.pid, "memory_used_mib": p.usedGpuMemory and p.usedGpuMemory >> 20} for p in get("ComputeRunningProcesses")
        ]

    def throttle() -> Any:
        return get("CurrentClocksEventReasons" if hasattr(nv, "nvmlDeviceGetCurrentClocksEventReasons") else OLD_THROTTLE)

    return {
        "uuid": lambda: get("UUID"), "name": lambda: get("Name"), "pci_bus_id": lambda: get("PciInfo").busId,
        "memory_total_mib": lambda: get("MemoryInfo").total >> 20, "memory_used_mib": lambda: get("MemoryInfo").used >> 20,
        "temperature_c": lambda: get("Temperature", nv.NVML_TEMPERATURE_GPU),
        "temperature_slowdown_c": lambda: get("TemperatureThreshold", nv.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
        "temperature_shutdown_c": lambda: get("TemperatureThreshold", nv.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN),
        "temperature_slowdown_margin_c": lambda: field("TEMPERATURE_SLOWDOWN_TLIMIT"),
        "temperature_margin_c": lambda: get("MarginTemperature"), "utilisation_ratio": lambda: get("UtilizationRates").gpu / 100,
        "is_ecc_enabled": lambda: bool(get("EccMode")[0]), "is_ecc_pending": lambda: bool(get("EccMode")[1]),
        "ecc_volatile_uncorrectable_count": lambda: get("TotalEccErrors", 1, nv.NVML_VOLATILE_ECC),
        "ecc_aggregate_uncorrectable_count": lambda: get("TotalEccErrors", 1, nv.NVML_AGGREGATE_ECC),
        "ecc_sram_correctable_count": lambda: get("MemoryErrorCounter", 0, nv.NVML_AGGREGATE_ECC, nv.NVML_MEMORY_LOCATION_SRAM),
        "ecc_dram_correctable_count": lambda: get("MemoryErrorCounter", 0, nv.NVML_AGGREGATE_ECC, nv.NVML_MEMORY_LOCATION_DRAM),
        "is_sram_threshold_exceeded": sram_exceeded, "throttle_mask": throttle,
        "remapped_correctable_count": lambda: get("RemappedRows")[0],
        "remapped_uncorrectable_count": lambda: get("RemappedRows")[1],
        "is_remap_pending": lambda: bool(get("RemappedRows")[2]), "has_remap_failed": lambda: bool(get("RemappedRows")[3]),
        "pcie_generation": lambda: get("CurrPcieLinkGeneration"), "pcie_generation_max": lambda: get("MaxPcieLinkGeneration"),
        "pcie_width": lambda: get("CurrPcieLinkWidth"), "pcie_width_max": lambda: get("MaxPcieLinkWidth"),
        "nvlink_active_count": lambda: sum(links()), "nvlink_count": lambda: len(links()),
        "is_persistent": lambda: bool(get("PersistenceMode")), "is_mig_enabled": lambda: bool(get("MigMode")[0]),
        "mig_instances": lambda: nvml_mig(nv, handle), "processes": processes,
        "recovery_action": lambda: RECOVERY_ACTIONS.get(field("GET_GPU_RECOVERY_ACTION"), "unknown action"),
    }  # fmt: skip


def nvml_mig(nv: Any, handle: Any) -> list[Json]:
    """Returns the MIG instances of a device; empty when it is not in MIG mode."""
    found = []
    count = nv.nvmlDeviceGetMaxMigDeviceCount(handle) if nv.nvmlDeviceGetMigMode(handle)[0] else 0
    for index in range(count):
        try:
            mig = nv.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except nv.NVMLError_NotFound:
            continue
        size = nv.nvmlDeviceGetMemoryInfo(mig).total // (1 << 20)
        found.append({"index": index, "uuid": nv.nvmlDeviceGetUUID(mig), "memory_total_mib": size})
    return found


def nvml_main() -> int:
    """The child: prints one JSON line for the driver, then one a device, as they are read."""
    import pynvml as nv

    nv.nvmlInit()
    cuda = nv.nvmlSystemGetCudaDriverVersion()
    count = nv.nvmlDeviceGetCount()
    version = {"driver_version": nv.nvmlSystemGetDriverVersion(), "cuda_version": f"{cuda // 1000}.{cuda % 1000 // 10}"}
    print(json.dumps({**version, "device_count": count}), flush=True)
    for index in range(count):
        entry = new_accelerator(index)
        try:
            handle = nv.nvmlDeviceGetHandleByIndex(index)
        except nv.NVMLError as error:
            entry["error"] = str(error)
        else:
            for name, read in nvml_readers(nv, handle).items():
                fill(entry, name, read)
            lost = [why for why in entry["missing"].values() if "lost" in why.lower()]
            entry["error"] = lost[0] if lost else None
        print(json.dumps({"accelerator": entry}), flush=True)
    return 0


def read_nvml(document: Json) -> bool:
    """Fills the document from NVML. Returns False when NVML gave nothing."""
    venv = Path(os.environ.get("HOSTLER_HOME", "/opt/hostler")) / "venv" / "bin" / "python"
    python = str(venv) if venv.exists() else sys.executable
    code, output, problem = run([python, str(Path(__file__).resolve()), "--nvml"], NVML_BUDGET_S)
    lines, rest = [], []
    for line in output.splitlines():
        try:
            said = json.loads(line)
            lines.append(said if isinstance(said, dict) else {})
        except ValueError:  # noqa: PERF203 - few lines
            rest.append(line)
    if code != 0:
        document["errors"].append("nvml: " + (problem or (rest[-1] if rest else f"exit status {code}")))
    read = [line["accelerator"] for line in lines[1:] if "accelerator" in line]
    if not read and (not lines or lines[0].get("device_count")):
        return False
    document.update({name: lines[0].get(name) for name in ("driver_version", "cuda_version")}, source="nvml", accelerators=read)
    for index in range(len(read), int(lines[0].get("device_count", 0))):
        document["accelerators"].append(new_accelerator(index))
        document["accelerators"][-1]["missing"] = dict.fromkeys(FIELDS, (document["errors"] or ["nvml: no answer"])[-1])
    return True


def convert(kind: str, raw: str | None) -> Any:
    """Returns ``27 C``, ``16x``, ``Enabled`` and the like as values. Raises UnreadableError with the device's own words."""
    word = (raw or "").strip()
    found = re.match(r"(-?\d+(?:\.\d+)?)\s*[a-zA-Z%]*$", word)
    if kind == "text" and word not in ("", "N/A", "[N/A]"):
        return word
    if kind == "flag" and word.lower() in ("enabled", "yes", "disabled", "no"):
        return word.lower() in ("enabled", "yes")
    if found and kind in ("int", "percent"):
        return int(float(found.group(1))) if kind == "int" else float(found.group(1)) / 100
    raise UnreadableError(word or "not reported")


def mib(raw: str | None) -> int | None:
    """Returns the number of ``22 MiB``; None for N/A."""
    return int(raw.split()[0]) if raw and raw.split()[0].isdigit() else None


def xml_value(gpu: ET.Element, kind: str, paths: tuple[str, ...]) -> Any:
    """Returns one field of a ``<gpu>`` element. Raises UnreadableError."""
    found = [element for element in (gpu.find(path) for path in paths) if element is not None]
    texts = [(element.text or "").strip() for element in found]
    if not found or (texts[0] and kind in ("mig", "processes", "mask")):
        raise UnreadableError(texts[0] if found else "not reported")
    if kind == "sum":
        return sum([int(text) for text in texts if text.isdigit()] or [convert("int", texts[0])])
    if kind == "mask":
        names = [re.sub("^clocks_(event|throttle)_reason_", "", reason.tag) for reason in found[0]]
        states = [convert("text", reason.text) for reason in found[0]]
        return sum(THROTTLE_BITS.get(name, 0) for name, state in zip(names, states) if state == "Active")
    if kind == "mig":
        sizes = [convert("int", mig.findtext("fb_memory_usage/total")) for mig in found[0]]
        return [{"index": index, "memory_total_mib": size} for index, size in enumerate(sizes)]
    if kind == "processes":
        return [{"pid": convert("int", p.findtext("pid")), "memory_used_mib": mib(p.findtext("used_memory"))} for p in found[0]]
    return convert(kind, texts[0])


def parse_xml(output: str) -> Json:
    """Returns driver, CUDA version and accelerators of an ``nvidia-smi -q -x`` output, with the errors printed around it.

    Raises:
        UnreadableError: there is no such document in the output; the text is the output's last line.
    """
    lost = [new_accelerator(None, why.strip()) for _, why in LOST.findall(output)]
    for entry, (bus, _) in zip(lost, LOST.findall(output)):
        entry["pci_bus_id"] = bus
    start, end = output.find("<nvidia_smi_log"), output.find("</nvidia_smi_log>")
    found: Json = {"driver_version": None, "cuda_version": None, "accelerators": lost}
    if start < 0 or end < 0:
        if lost:
            return found
        raise UnreadableError((output.strip().splitlines() or ["printed nothing"])[0][:300])
    body = "\n".join(line for line in output[start:end].splitlines() if not LOST.search(line))
    try:
        root = ET.fromstring(body + "</nvidia_smi_log>")  # noqa: S314 - the driver's own tool wrote it; no entities are declared
    except ET.ParseError as error:
        raise UnreadableError(f"malformed XML: {error}") from error
    for index, gpu in enumerate(root.iterfind("gpu")):
        entry = new_accelerator(index)
        for name, (kind, *paths) in XML_FIELDS.items():
            fill(entry, name, xml_value, gpu, kind, tuple(paths))
        dead = [why for why in entry["missing"].values() if "lost" in why.lower() or "unknown error" in why.lower()]
        entry["error"] = dead[0] if dead else None
        found["accelerators"].insert(index, entry)
    found.update({name: root.findtext(name) for name in ("driver_version", "cuda_version")})
    return found


def add_nvlinks(accelerators: list[Json], output: str) -> None:
    """Fills link counts from ``nvidia-smi nvlink -s``; its words for devices without links become the reason."""
    blocks = re.split(r"^GPU (\d+):", output, flags=re.MULTILINE)
    by_index = {int(blocks[i]): blocks[i + 1] for i in range(1, len(blocks) - 1, 2)}
    for entry in accelerators:
        block = by_index.get(entry["index"], "")
        links = re.findall(r"^\s*Link \d+: (.+)$", block, flags=re.MULTILINE)
        if links:
            entry["nvlink_count"] = len(links)
            entry["nvlink_active_count"] = sum("inactive" not in link.lower() for link in links)
            continue
        why = (block.strip().splitlines() or ["not reported"])[-1].strip()
        entry["missing"].update(nvlink_count=why, nvlink_active_count=why)


def read_smi(document: Json) -> None:
    """Fills the document from nvidia-smi; when one device spoils the whole answer, the others are asked one by one."""
    code, output, problem = run(["nvidia-smi", "-q", "-x"], 8)
    try:
        found = parse_xml(output)
    except UnreadableError as error:
        document["errors"].append(f"nvidia-smi: {problem or error}" + ("" if code in (0, None) else f" (exit status {code})"))
        return
    if problem:
        document["errors"].append("nvidia-smi: " + problem)
    if not any(entry["index"] is not None for entry in found["accelerators"]):
        for index in range(document["pci_accelerator_count"] or 0):
            try:
                one = parse_xml(run(["nvidia-smi", "-q", "-x", "-i", str(index)], 3)[1])
            except UnreadableError:
                continue
            healthy = [dict(entry, index=index) for entry in one["accelerators"] if entry["index"] is not None]
            found.update({name: one[name] or found[name] for name in ("driver_version", "cuda_version")})
            found["accelerators"].extend(healthy)
    add_nvlinks(found["accelerators"], run(["nvidia-smi", "nvlink", "-s"], 3)[1])
    document.update(found, source="nvidia-smi")


def proc(path: str) -> str | None:
    """Returns a kernel file's text; None when it cannot be read. A node with a root of its own has its own boot there."""
    own = Path(os.environ.get("HOSTLER_ROOT") or "/", "proc", path)
    try:
        return (own if own.exists() else Path("/proc", path)).read_text(encoding="utf-8").strip()
    except OSError:
        return None


def read_kernel_log(document: Json) -> None:
    """Finds XID lines of this boot. The kernel's own seconds date them: wall-clock stamps lack the year and drift."""
    attempts = (["dmesg"], ["sudo", "-n", "dmesg"], ["journalctl", "-k", "-b", "-o", "short-monotonic", "--no-pager", "-q"])
    reasons = []
    for argv in attempts:
        code, output, problem = run(argv, 3)
        if code == 0:
            document["kernel_log"] = {"is_readable": True, "source": " ".join(argv), "reason": None}
            for line in output.splitlines():
                match, stamp = XID.search(line), UPTIME_STAMP.match(line)
                if match:
                    at_s = float(stamp.group(1)) if stamp else None
                    bus, code = match.group(1), int(match.group(2))
                    document["xids"].append({"code": code, "pci_bus_id": bus, "at_uptime_s": at_s, "line": line[:400]})
            document["xids"] = document["xids"][-200:]
            return
        reasons.append(argv[0] + ": " + (problem or (output.strip().splitlines() or [f"exit status {code}"])[-1]))
    document["kernel_log"] = {"is_readable": False, "source": None, "reason": "; ".join(reasons)}


def read_host(document: Json) -> None:
    """Fills boot id, uptime, disks, and how many NVIDIA 3D or VGA controllers the bus has."""
    document["boot_id"], uptime = proc("sys/kernel/random/boot_id"), proc("uptime")
    document["uptime_s"] = float(uptime.split()[0]) if uptime else None
    code, output, problem = run(["lspci", "-nn"], 3)
    document["pci_accelerator_count"] = len(re.findall(r"\[030[02]\]: .*\[10de:", output)) if code == 0 else None
    if code != 0:
        document["errors"].append("lspci: " + (problem or f"exit status {code}"))
    home = os.environ.get("HOSTLER_HOME", "/opt/hostler")
    for path in dict.fromkeys([os.environ.get("HOSTLER_ROOT") or "/", home if Path(home).is_dir() else "/"]):
        size = os.statvfs(path)
        total, free = size.f_blocks * size.f_frsize, size.f_bavail * size.f_frsize
        document["disks"].append({"path": path, "total_mib": total >> 20, "free_mib": free >> 20})


def main() -> int:
    """Prints the document."""
    document: Json = {
        "version": 1, "probe_version": PROBE_VERSION, "source": "none", "errors": [], "driver_version": None,
        "cuda_version": None, "boot_id": None, "uptime_s": None, "wall_clock_at": None, "elapsed_s": None,
        "pci_accelerator_count": None, "accelerators": [], "kernel_log": None, "xids": [], "disks": [],
    }  # fmt: skip
    read_host(document)
    if not read_nvml(document):
        read_smi(document)
    read_kernel_log(document)
    document["wall_clock_at"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    document["elapsed_s"] = round(time.monotonic() - STARTED, 3)
    print(json.dumps(document))
    return 0


if __name__ == "__main__":
    sys.exit(nvml_main() if sys.argv[1:] == ["--nvml"] else main())
