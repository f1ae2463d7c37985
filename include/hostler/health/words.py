"""Words by which NVML and nvidia-smi tell of faults, as rows of data, and how they are found in an output (pure)."""

import re
from dataclasses import dataclass, replace
from typing import Final

from hostler.health.roll_up import EVIDENCE_CHARS, cut
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding

_NVML: Final = "nvmlReturn_t in nvml.h (driver 580)"
_MAN: Final = "nvidia-smi manual, section RETURN VALUE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One fault text.

    Attributes:
        code: of the finding. pattern: regular expression, searched in any case; keys: lower-case pieces of it, one of which every
            match holds: looking for them is far cheaper than searching.
        what: the meaning in words. source: who says so.
    """

    code: str
    keys: tuple[str, ...]
    pattern: re.Pattern[str]
    what: str
    verdict: Verdict
    action: HealthAction
    source: str

    def search(self, text: str, lower: str) -> re.Match[str] | None:
        """Returns where the text says it; ``lower`` is the text in lower case."""
        return self.pattern.search(text) if any(key in lower for key in self.keys) else None

    def finding(self, evidence: str) -> Finding:
        """Returns the finding, with the text that it was read from."""
        return Finding(
            code=self.code, what=self.what, verdict=self.verdict, action=self.action, evidence=cut(evidence), source=self.source
        )


def _word(  # noqa: PLR0917 - a table reads best without the names in each row
    code: str, keys: str, pattern: str, what: str, verdict: Verdict, action: HealthAction, source: str
) -> Word:
    return Word(
        code=code,
        keys=tuple(keys.split("|")),
        pattern=re.compile(pattern, re.IGNORECASE),
        what=what,
        verdict=verdict,
        action=action,
        source=source,
    )


_F, _U, _D = Verdict.FAILED, Verdict.UNKNOWN, Verdict.DEGRADED
_A = HealthAction

DEVICE_WORDS: Final[tuple[Word, ...]] = (
    _word("device.lost", "gpu is lost|fallen off",
          r"GPU is lost|fallen off the bus", "the GPU is lost: drain, reboot; replace when it repeats", _F,
          _A.REBOOT_NODE, f"{_NVML}, GPU_IS_LOST (15); JosephKJ/OWOD#81"),
    _word("driver.reset_required", "reset",
          r"GPU requires reset|reset required", "the GPU needs a reset before it can be used",
          _F, _A.RESET_GPU, f"{_NVML}, RESET_REQUIRED (16)"),
    _word("device.power_cable", "power",
          r"insufficiently powered|insufficient (external )?power|external power cable",
          "the GPU's power cables are not attached", _F, _A.DRAIN_AND_REPLACE, f"{_MAN}, 8"),
    _word("device.interrupts", "interrupt issue|irq issue",
          r"interrupt issue|IRQ issue", "the kernel sees an interrupt issue with the GPU", _F, _A.REBOOT_NODE,
          f"{_MAN}, 10"),
    _word("device.inforom", "corrupt",
          r"info ?rom is corrupted|corrupted? info ?rom", "the GPU's infoROM is corrupted: drain, reset",
          _D, _A.RESET_GPU, f"{_MAN}, 14; DCGM_FR_CORRUPT_INFOROM"),
    _word("device.reading_error", "err!",
          r"\bERR!", "the driver cannot read the GPU: reset it; reboot when it stays", _F, _A.RESET_GPU,
          "nvidia-smi's ERR!; utkuozdemir/nvidia_gpu_exporter#393"),
    _word("device.unreachable", "unknown error|timeout|not found|gpu error|memory error|no data|uninitialized",
          r"unknown error|timeout|not found|GPU error|memory error|no data|uninitialized",
          "the GPU cannot be reached: drain, reboot; replace when it repeats", _F, _A.REBOOT_NODE,
          f"{_NVML}, UNKNOWN (999); NVIDIA/dcgm-exporter#604"),
)  # fmt: skip
"""What is wrong with one device; the first that matches speaks."""

NODE_WORDS: Final[tuple[Word, ...]] = (
    _word("driver.mismatch", "mismatch",
          r"version mismatch|lib_rm_version_mismatch|API mismatch",
          "driver and library differ: running jobs go on, new ones fail; drain, then reboot", _F, _A.REBOOT_NODE,
          f"{_NVML}, LIB_RM_VERSION_MISMATCH (18); lyulyul/shine-cluster#30"),
    _word("driver.not_loaded", "nvidia driver|loaded",
          r"(could ?n[o']?t|unable to|failed to) communicate with the nvidia driver|driver (is )?not loaded",
          "the driver is not loaded: repeat driver setup and reboot once, else replace the node", _F, _A.REBOOT_NODE,
          f"{_MAN}, 9; lyulyul/shine-cluster#50"),
    _word("driver.not_installed", "nvidia-smi|executable|libnvidia|nvml",
          r"nvidia-smi[^\n]{0,20}(command not found|no such file|not found|is not recognized)"
          r"|executable file not found[^\n]*|(could ?n[o']?t|cannot) (find|open)[^\n]{0,20}(libnvidia-ml|nvml)"
          r"|NVML shared library[^\n]*not|libnvidia-ml\.so[^\n]{0,40}cannot open",
          "the driver or its tools are not installed: repeat driver setup once, else replace the node", _F, _A.REBOOT_NODE,
          f"{_MAN}, 12"),
    _word("count.none", "devices|gpu",
          r"no devices (were )?found|no (nvidia )?gpus? (were )?(found|detected)",
          "the driver runs but finds no GPU: drain, reboot; replace when it repeats", _F, _A.REBOOT_NODE, f"{_MAN}, 6"),
    _word("reading.no_permission", "permi",
          r"insufficient permissions?|operation not permitted|permission denied",
          "the asker may not read the GPUs: nothing is known of them", _U, _A.RECORD, f"{_MAN}, 4"),
    _word("driver.no_access", "initialize nvml",
          r"failed to initialize NVML: unknown error",
          "NVML does not start; in a container its access to the devices was taken away: restart the container", _U,
          _A.RESTART_SERVICE, "NVIDIA/nvidia-container-toolkit#48"),
    _word("reading.blocked", "blocked",
          r"GPU access blocked by the operating system", "the host keeps the GPU from this guest",
          _U, _A.RECORD, _NVML),
    _word("driver.not_started", "initialize nvml",
          r"failed to initialize NVML", "NVML does not start", _F, _A.REBOOT_NODE, _NVML),
)  # fmt: skip
"""What is wrong with the node as a whole; the first that matches speaks."""

EXIT_WORDS: Final[dict[int, str]] = {
    8: "device.power_cable", 9: "driver.not_loaded", 10: "device.interrupts", 12: "driver.not_installed",
    14: "device.inforom", 15: "device.lost", 18: "driver.mismatch", 127: "driver.not_installed",
}  # fmt: skip
"""Exit status of nvidia-smi -> the fault it stands for. Source: nvidia-smi manual; 18: NVML; 127: POSIX shell, not found."""

_HANDLE = re.compile(
    r"(?:Unable to determine the device handle for|Unable to get (?:the )?device handle for|Failed to get (?:the )?device handle for)"
    r"\s*GPU\s*(?P<rest>[^\n]*)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"(?:(?P<index>\d{1,3})\s*:\s+)?(?P<pci>[0-9A-Fa-f]*(?::[0-9A-Fa-f]+){1,2}(?:\.[0-9A-Fa-f]+)?)?\s*:?\s*(?P<why>.*)"
)
_INFOROM = re.compile(r"info ?rom is corrupted at gpu\s*(?P<pci>[0-9A-Fa-f:.]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LostDevice:
    """A device that the tool names only to say that it cannot be read. None: not named."""

    index: int | None
    pci: str | None
    finding: Finding


def device_finding(why: str, evidence: str | None = None) -> Finding | None:
    """Returns what a device's error text means; None when the text is no fault that is known."""
    lower = why.lower()
    for word in DEVICE_WORDS:
        if word.search(why, lower):
            return word.finding(evidence or why)
    return None


def lost_devices(text: str) -> list[LostDevice]:
    """Returns the devices that the tool could not get hold of, in the order of the text."""
    lower = text.lower()
    if "device handle for" not in lower and "corrupted at gpu" not in lower:
        return []
    found = []
    for match in _HANDLE.finditer(text):
        parts = _ADDRESS.match(match["rest"].strip())
        why = parts["why"] if parts else match["rest"]
        index = int(parts["index"]) if parts and parts["index"] else None
        finding = device_finding(why, match[0]) or DEVICE_WORDS[-1].finding(match[0])
        found.append(LostDevice(index=index, pci=(parts["pci"] if parts else None) or None, finding=finding))
    for match in _INFOROM.finditer(text):
        corrupt = device_finding(match[0])
        if corrupt:
            found.append(LostDevice(index=None, pci=match["pci"].rstrip(".:"), finding=corrupt))
    return found


def node_finding(text: str, exit_code: int | None = None) -> Finding | None:
    """Returns what the tool's words, else its exit status, say of the node as a whole; None: nothing that is known."""
    lower = text.lower()
    for word in NODE_WORDS:
        match = word.search(text, lower)
        if match:
            return word.finding(line_of(text, match.start()))
    code = EXIT_WORDS.get(exit_code) if exit_code is not None else None
    row = next((word for word in (*NODE_WORDS, *DEVICE_WORDS) if word.code == code), None)
    return row.finding(f"exit status {exit_code}") if row else None


def explain_error(text: str) -> Finding | None:
    """Returns what an error text proves of a node or of a device; None when it proves nothing."""
    lower = text.lower()
    found = node_finding(text) or next((word.finding(text) for word in DEVICE_WORDS[:-1] if word.search(text, lower)), None)
    return None if found is None else replace(found, what=f"{found.what} ({text[:EVIDENCE_CHARS]})")


def line_of(text: str, at: int) -> str:
    """Returns the line of the text that holds the place ``at``."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return text[start : end if end >= 0 else len(text)].strip()
