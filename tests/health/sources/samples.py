"""Real captures, and what they look like with one fault planted; no own reading of them."""

import json
from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "data"
SHARED = next(
    (found for folder in Path(__file__).parents if (found := folder / "shared" / "data" / "gpu-health").is_dir()), None
)
needs_shared = pytest.mark.skipif(SHARED is None, reason="shared/data/gpu-health is not here; parts may not be redistributed")


def xml(name):
    return (DATA / "nvidia-smi" / f"{name}.xml").read_text(encoding="utf-8")


def capture(word):
    (path,) = (DATA / "gpu-captures").glob(f"*{word}*")
    return path.read_text(encoding="utf-8")


def section(word, title):
    """Command and output of one section of a capture; ``title`` such as ``idle :: query (-q)``."""
    sections = json.loads(capture(word))["sections"]
    return next((entry["command"], entry["stdout"]) for name, entry in sections.items() if name.startswith(title))


def rocm(name):
    return (DATA / "rocm-smi" / f"{name}.json").read_text(encoding="utf-8")


def planted(text, old, new):
    assert text.count(old) >= 1, old
    return text.replace(old, new, 1)


def with_cells(table, **cells):
    """The CSV with cells of its first row set, by column (a double underscore stands for a dot)."""
    heading, row, *rest = table.splitlines()
    names = [name.split(" [")[0] for name in heading.split(", ")]
    values = row.split(", ")
    for column, value in cells.items():
        values[names.index(column.replace("__", "."))] = value
    return "\n".join([heading, ", ".join(values), *rest]) + "\n"


def without_columns(table, *columns):
    heading, *rows = table.splitlines()
    kept = [at for at, name in enumerate(heading.split(", ")) if name.split(" [")[0] not in columns]
    return "\n".join(", ".join(line.split(", ")[at] for at in kept) for line in (heading, *rows)) + "\n"


NVLINKS = "".join(
    f"GPU {gpu}: NVIDIA A100-SXM4-80GB (UUID: GPU-{gpu})\n" + "".join(f"\t Link {link}: 25 GB/s\n" for link in range(12))
    for gpu in range(2)
)

AMD = json.dumps(
    [
        {
            "gpu": gpu,
            "usage": {"gfx_activity": {"value": 87, "unit": "%"}, "umc_activity": {"value": 41, "unit": "%"}},
            "power": {"socket_power": {"value": 542, "unit": "W"}, "throttle_status": "UNTHROTTLED"},
            "temperature": {
                "edge": "N/A",
                "hotspot": {"value": 71, "unit": "C"},
                "mem": {"value": 52, "unit": "C"},
            },
            "ecc": {"total_correctable_count": 0, "total_uncorrectable_count": 0, "total_deferred_count": 0},
        }
        for gpu in range(2)
    ],
    indent=4,
)
"""Shape of ``amd-smi metric --json`` (ROCm 6.2), from ROCm/amdsmi documentation."""

TPU = json.dumps(
    {
        "name": "projects/p/locations/us-central2-b/nodes/n",
        "acceleratorType": "v4-8",
        "state": "READY",
        "health": "HEALTHY",
        "runtimeVersion": "tpu-ubuntu2204-base",
    },
    indent=2,
)

PROBE = json.dumps(
    {
        "version": 1, "probe_version": "1", "source": "nvml", "errors": [], "driver_version": "590.48.01", "cuda_version": "13.1",
        "boot_id": "b", "uptime_s": 100.0, "wall_clock_at": "2026-12-01T12:00:00Z", "elapsed_s": 1.0,
        "pci_accelerator_count": 1, "disks": [], "xids": [], "kernel_log": {"is_readable": True, "source": "dmesg", "reason": None},
        "accelerators": [{
            "index": 0, "uuid": "GPU-0", "name": "NVIDIA H100 80GB HBM3", "pci_bus_id": "00000000:00:09.0",
            "memory_total_mib": 81559, "memory_used_mib": 0, "temperature_c": 59, "temperature_margin_c": 26,
            "temperature_slowdown_c": None, "temperature_shutdown_c": None, "temperature_slowdown_margin_c": -2,
            "utilisation_ratio": 1.0, "is_ecc_enabled": True, "is_ecc_pending": True, "ecc_volatile_uncorrectable_count": 0,
            "ecc_aggregate_uncorrectable_count": 0, "is_sram_threshold_exceeded": False, "remapped_correctable_count": 0,
            "remapped_uncorrectable_count": 0, "is_remap_pending": False, "has_remap_failed": False, "throttle_mask": 0,
            "pcie_generation": 5, "pcie_generation_max": 5, "pcie_width": 16, "pcie_width_max": 16, "is_persistent": True,
            "is_mig_enabled": False, "mig_instances": [], "processes": [], "recovery_action": "None", "nvlink_count": 18,
            "nvlink_active_count": 18, "error": None, "missing": {},
        }],
    },
    indent=1,
)  # fmt: skip
