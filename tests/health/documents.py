"""Probe documents of healthy nodes, to be spoiled by tests."""

from hostler.recipes.probe import probe


def device(index=0, **changes):
    """An H100 as utkuozdemir/nvidia_gpu_exporter captured it under load (driver 590.48.01, MIT), eight NVLinks kept short."""
    healthy = {
        **dict.fromkeys(probe.FIELDS),
        "index": index,
        "name": "NVIDIA H100 80GB HBM3",
        "pci_bus_id": f"00000000:{index:02d}:09.0",
        "temperature_c": 59,
        "temperature_margin_c": 26,
        "temperature_slowdown_margin_c": -2,
        "utilisation_ratio": 1.0,
        "is_ecc_enabled": True,
        "is_ecc_pending": True,
        "ecc_volatile_uncorrectable_count": 0,
        "ecc_aggregate_uncorrectable_count": 0,
        "is_sram_threshold_exceeded": False,
        "remapped_correctable_count": 0,
        "remapped_uncorrectable_count": 0,
        "is_remap_pending": False,
        "has_remap_failed": False,
        "throttle_mask": 0,
        "pcie_width": 16,
        "pcie_width_max": 16,
        "nvlink_active_count": 18,
        "nvlink_count": 18,
        "is_persistent": True,
        "is_mig_enabled": False,
        "recovery_action": "None",
        "error": None,
        "missing": {},
    }
    return {**healthy, **changes}


def document(*devices, **changes):
    return {
        "version": 1,
        "source": "nvml",
        "errors": [],
        "driver_version": "590.48.01",
        "wall_clock_at": "2026-12-01T11:59:30Z",
        "accelerators": list(devices),
        "kernel_log": {"is_readable": True},
        "xids": [],
        **changes,
    }
