"""Checks of an accelerator's state: heat, clocks, links, power, configuration, the driver's own word (pure)."""

import re
from typing import Final

from hostler.health.catalog import LIMITS, THROTTLE_REASONS, recovery
from hostler.health.catalog.limits import BAD_THROTTLE_BITS
from hostler.health.finding import broken, degraded, failed, needed, noted, unknown
from hostler.health.reading import AcceleratorReading, Expectation
from hostler.model.enums import HealthAction
from hostler.model.health import Finding

RECOVERY_DRIVER: Final = 570
"""First driver branch whose nvidia-smi tells the recovery action. Source: captures of 535 (no) and 575 (yes)."""
_THROTTLE_CODES: Final = {
    0x08: "throttle.hardware",
    0x20: "throttle.software_thermal",
    0x40: "throttle.hardware_thermal",
    0x80: "throttle.power_brake",
}
_HALF_WIDTH: Final = frozenset({"nvidia a10g", "tesla t4"})
"""Sold on machines that give them 8 of their 16 lanes. Source: captures of EC2 g4dn and g5 in influxdata/telegraf."""
_NOT_APPLICABLE: Final = re.compile(r"^\[?(n/?a|not supported|none)\]?$", re.IGNORECASE)
_FABRIC_NAMES: Final = re.compile(r"H100.*HBM3|\bH200$|\bB[23]00|\bGB[23]00|\bGH200", re.IGNORECASE)


def check_temperature(reading: AcceleratorReading, _: Expectation) -> list[Finding]:
    """Judges heat by the device's own limits; the default warning counts where it tells none."""
    value = reading.temperature_c
    findings = needed(reading, "temperature_c") if value is None else _core(reading, value)
    findings += _margin(reading)
    memory, most = reading.memory_temperature_c, reading.memory_temperature_max_c
    if memory is not None and most is not None and memory >= most > 0:
        what = f"memory at {memory:.0f} C, limit {most:.0f} C"
        findings.append(degraded("thermal.memory", what, what, "the device's own limit"))
    return findings


def _margin(reading: AcceleratorReading) -> list[Finding]:
    margin, least = reading.temperature_margin_c, reading.temperature_slowdown_margin_c
    if margin is None:
        return needed(reading, "temperature_margin_c") if least is not None else []
    if least is None:
        least = LIMITS["temperature_slowdown_margin_c"].value
    if margin < least:
        what = f"thermal margin {margin:.0f} C, slows down below {least:.0f} C"
        source = "the device's T.Limit; NVSentinel ADR-042"
        return [failed("thermal.margin", what, HealthAction.DRAIN_AND_DIAG, what, source)]
    if margin < 0:
        what = f"thermal margin {margin:.0f} C: above the highest temperature to work at"
        return [degraded("thermal.margin", what, what, "the device's T.Limit")]
    return []


def _core(reading: AcceleratorReading, value: float) -> list[Finding]:
    slowdown = reading.temperature_slowdown_c
    if slowdown is not None and value >= slowdown > 0:
        what = f"{value:.0f} C, slows down at {slowdown:.0f} C"
        return [failed("thermal.slowdown", what, HealthAction.DRAIN_AND_DIAG, what, "the device's own limit")]
    own = reading.temperature_max_operating_c
    if own is not None and own > 0:
        what = f"{value:.0f} C, limit {own:.0f} C"
        return [degraded("thermal.warning", what, what, "the device's own limit")] if value >= own else []
    warn = broken("temperature_c", value)
    if warn is None:
        return []
    what = f"{value:.0f} C, limit {warn.value:.0f} C"
    return [degraded("thermal.warning", what, what, warn.source)]


def check_throttle(reading: AcceleratorReading, _: Expectation) -> list[Finding]:
    """Judges why the clocks are held down: bits, never equality, since a mask holds several."""
    mask = reading.throttle_mask
    if mask is None:
        return needed(reading, "throttle_mask")
    source = "nvml.h, nvmlClocksEventReasons; Azure/azurehpc-health-checks"
    return [
        degraded(code, f"throttled (mask {mask:#x}): {THROTTLE_REASONS[bit]}", f"clock event reasons {mask:#x}", source)
        for bit, code in _THROTTLE_CODES.items()
        if mask & bit & BAD_THROTTLE_BITS
    ]


def check_pcie(reading: AcceleratorReading, _: Expectation) -> list[Finding]:
    """Judges the PCIe link while the accelerator is busy: an idle one downshifts by design."""
    lacks = [
        (words, value, most)
        for words, value, most in (
            ("width x", reading.pcie_width, _lanes(reading)),
            ("generation ", reading.pcie_generation, reading.pcie_generation_max),
        )
        if value is not None and most is not None and 0 < value < most
    ]
    busy, limit = reading.utilisation_ratio, LIMITS["busy_utilisation_ratio"]
    if busy is None:
        # Idle links lower their generation, seldom their width: a narrow one needs the utilisation to be judged.
        if lacks and lacks[0][0] == "width x" and "utilisation_ratio" in reading.missing:
            what = f"PCIe width x{lacks[0][1]}, x{lacks[0][2]} expected, and whether it is busy could not be read"
            return [unknown("reading.pcie", what)]
        return []
    if not limit.is_broken_by(busy):
        return []
    if reading.pcie_width is None and not reading.is_workstation:
        return needed(reading, "pcie_width")
    return [
        degraded(
            f"pcie.{words.split()[0]}",
            f"PCIe {words}{value} while busy, {'x' * words.endswith('x')}{most} expected",
            f"PCIe {words}{value} of {most} at {busy:.0%} utilisation",
            limit.source,
            HealthAction.DRAIN_AND_DIAG,
        )
        for words, value, most in lacks
    ]


def _lanes(reading: AcceleratorReading) -> int | None:
    """Returns how many lanes the link must have: all that it has, or half where it is sold so."""
    most = reading.pcie_width_max
    return most // 2 if most and (reading.name or "").lower() in _HALF_WIDTH else most


def check_recovery(reading: AcceleratorReading, _: Expectation) -> list[Finding]:
    """Follows the driver's own word on which recovery the device needs; DCGM may still say healthy."""
    action = reading.recovery_action
    findings: list[Finding] = []
    if action is None and (reading.driver_major or 0) >= RECOVERY_DRIVER:
        findings += needed(reading, "recovery_action")
    if action is not None and action.strip().lower() != "none":
        row = recovery(action)
        what = f"the driver asks for recovery: {action} ({row.words})"
        findings.append(failed("device.recovery", what, row.action, f"recovery action: {action}", row.source))
    source = "nvidia-smi manual, GPU Reset Status"
    if reading.is_reset_required:
        what = "the driver says that the GPU must be reset"
        findings.append(failed("driver.reset_required", what, HealthAction.RESET_GPU, "reset required: yes", source))
    elif reading.is_drain_recommended:
        what = "the driver recommends to drain the GPU and to reset it"
        findings.append(degraded("driver.drain_recommended", what, "drain and reset: yes", source, HealthAction.RESET_GPU))
    return findings


def check_inforom(reading: AcceleratorReading, _: Expectation) -> list[Finding]:
    """Judges the checksum of the device's own configuration memory."""
    if reading.is_inforom_valid is not False:
        return []
    what = "the GPU's infoROM is corrupted: drain, reset"
    return [degraded("device.inforom", what, what, "NVIDIA/DCGM, DCGM_FR_CORRUPT_INFOROM", HealthAction.RESET_GPU)]


def check_persistence(reading: AcceleratorReading, expectation: Expectation) -> list[Finding]:
    """Judges persistence mode: a matter of set-up, so only where it was set up by us does it count against the device."""
    if reading.is_persistent is not False:
        return []
    source = "Azure/azurehpc-health-checks, persistence mode check"
    if expectation.is_persistent:
        return [degraded("persistence.off", "persistence mode is off", "persistence mode: disabled", source)]
    return [noted("persistence.off", "persistence mode is off", "persistence mode: disabled", source)]


def check_mig(reading: AcceleratorReading, _: Expectation) -> list[Finding]:
    """Notes MIG mode, in which utilisation is not to be had and NVLink does not apply; judges a change of it that waits."""
    source = "NVIDIA MIG user guide"
    findings = []
    if reading.is_mig_enabled:
        count = reading.mig_instance_count
        text = "MIG is on" if count is None else f"MIG is on, {count} instances"
        findings.append(noted("mig.on", f"{text}: utilisation is not told, NVLink does not apply", text, source))
    pending = reading.is_mig_pending
    if pending is not None and reading.is_mig_enabled is not None and pending != reading.is_mig_enabled:
        what = f"MIG mode is turned {'on' if pending else 'off'} by the next reset of the GPU"
        findings.append(degraded("mig.mode_pending", what, what, source))
    return findings


def check_nvlink(reading: AcceleratorReading, expectation: Expectation) -> list[Finding]:
    """Judges the links that the device told of. In MIG mode they do not apply."""
    if reading.is_mig_enabled:
        return []
    active, total = reading.nvlink_active_count, reading.nvlink_count
    source = "NVIDIA/DCGM#198; NVIDIA/NVSentinel dcgmerrorsmapping.csv"
    if active is None:
        return needed(reading, "nvlink_active_count") if expectation.has_nvlink else []
    if not total:
        if not expectation.has_nvlink:
            return []
        what = "no NVLink found on an NVLink machine: check the fabric manager"
        return [failed("nvlink.inactive", what, HealthAction.RESTART_SERVICE, what, source)]
    if active >= total:
        return []
    what = f"{active} of {total} NVLinks active: check the fabric manager"
    return [failed("nvlink.inactive", what, HealthAction.RESTART_SERVICE, what, source)]


def check_fabric(reading: AcceleratorReading, _: Expectation) -> list[Finding]:
    """Judges whether the device joined the NVLink fabric; without one the fields say N/A."""
    state, status = reading.fabric_state, reading.fabric_status
    source = "nvidia-smi manual, Fabric"
    if state is None:
        says = reading.missing.get("fabric_state", "")
        has_one = bool(_FABRIC_NAMES.search(reading.name or "")) and (reading.driver_major or 0) >= RECOVERY_DRIVER
        return needed(reading, "fabric_state") if has_one and says and not reading.is_workstation else []
    if state.lower() != "completed" and not _NOT_APPLICABLE.match(state):
        what = f"the NVLink fabric is not ready: {state}{f', {status}' if status else ''}: check the fabric manager"
        return [failed("fabric.not_ready", what, HealthAction.RESTART_SERVICE, f"fabric state: {state}", source)]
    if status is not None and status.lower() != "success" and not _NOT_APPLICABLE.match(status):
        what = f"the NVLink fabric failed: {status}: check the fabric manager"
        return [failed("fabric.failed", what, HealthAction.RESTART_SERVICE, f"fabric status: {status}", source)]
    if status is None and "fabric_status" in reading.missing:
        return needed(reading, "fabric_status")
    if reading.fabric_health:
        what = f"the NVLink fabric is not healthy: {reading.fabric_health}"
        return [degraded("fabric.unhealthy", what, reading.fabric_health, source, HealthAction.DRAIN_AND_DIAG)]
    return []


def check_power(reading: AcceleratorReading, _: Expectation) -> list[Finding]:
    """Notes a power limit below the default: somebody set it, and slow work has its reason there."""
    now, default = reading.power_limit_w, reading.power_default_limit_w
    if now is None or default is None or not 0 < now < default:
        return []
    what = f"power limit {now:.0f} W, default {default:.0f} W"
    return [noted("power.limited", what, what, "nvidia-smi manual, Power Readings")]


def check_fan(reading: AcceleratorReading, _: Expectation) -> list[Finding]:
    """Judges a hot desk card whose fan stands still; data-centre cards have none of their own, and some say 0 %."""
    if reading.fan_ratio != 0.0 or reading.temperature_c is None or not reading.is_workstation:
        return []
    hot = broken("temperature_c", reading.temperature_c)
    if hot is None:
        return []
    what = f"the fan stands still at {reading.temperature_c:.0f} C"
    return [degraded("fan.stopped", what, what, hot.source, HealthAction.DRAIN_AND_DIAG)]
