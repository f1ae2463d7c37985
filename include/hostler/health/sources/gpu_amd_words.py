"""Error texts of rocm-smi and amd-smi, as rows of data (pure)."""

import re
from typing import Final

from hostler.health.finding import failed, unknown
from hostler.health.roll_up import cut, source_health
from hostler.health.sources.source import Source
from hostler.health.words import line_of
from hostler.model.enums import HealthAction
from hostler.model.health import Finding, SourceHealth

KIND: Final = "amd-smi-error"
_NOT_LOADED: Final = (
    r"amdgpu not found in modules|driver not initiali[sz]ed|module status|AMDSMI_STATUS_(NOT_INIT|DRIVER_NOT_LOADED)"
    r"|modprobe amdgpu|rsmi_init\(\) failed|driver (is )?not loaded|unable to open /dev/kfd"
)
_NONE_FOUND: Final = (
    r"unable to detect any gpu|no (amd )?gpus? (were )?(found|detected|specified)|AMDSMI_STATUS_NO_(DEVICE|DRV)"
    r"|no devices found"
)
_NO_ANSWER: Final = r"AMDSMI_STATUS_(BUSY|TIMEOUT|IO|INTERRUPT)|RSMI_STATUS_(BUSY|UNKNOWN_ERROR)"
_NO_TOOL: Final = r"(rocm-smi|amd-smi)[^\n]{0,20}(command not found|no such file|not found)|librocm_smi64[^\n]*cannot open"
_NO_RIGHT: Final = r"AMDSMI_STATUS_NO_PERM|permission denied|not in (the )?(render|video) group"

_WORDS: Final[tuple[tuple[str, str, str, HealthAction | None, str], ...]] = (
    ("driver.not_loaded", _NOT_LOADED, "the amdgpu driver is not loaded: repeat driver setup and reboot once, else replace the node",
     HealthAction.REBOOT_NODE, "ROCm/rocm_smi_lib and ROCm/amdsmi, initialisation errors"),
    ("driver.not_installed", _NO_TOOL, "the driver's tools are not installed: repeat driver setup once, else replace the node",
     HealthAction.REBOOT_NODE, "POSIX shell"),
    ("count.none", _NONE_FOUND, "the driver runs but finds no GPU: drain, reboot; replace when it repeats",
     HealthAction.REBOOT_NODE, "ROCm/amdsmi"),
    ("device.not_answering", _NO_ANSWER, "the GPU does not answer: drain, reboot; replace when it repeats",
     HealthAction.REBOOT_NODE, "amdsmi.h, amdsmi_status_t"),
    ("reading.no_permission", _NO_RIGHT, "the asker may not read the GPUs: nothing is known of them",
     None, "amdsmi.h, amdsmi_status_t"),
)  # fmt: skip
"""Code, pattern, meaning, action (None: unknown), source; the first that matches speaks."""
_DEVICE: Final = re.compile(r"ERROR:?\s*(\d+)?\s*GPU\[(\d{1,4})\]\s*:?\s*([^\n]*)", re.IGNORECASE)
_HARMLESS: Final = re.compile(r"not supported|not available on|requested function is not implemented", re.IGNORECASE)


def amd_error(text: str) -> Finding | None:
    """Returns what an error text says of the node; None when it has no word that is known."""
    for code, pattern, what, action, source in _WORDS:
        found = re.search(pattern, text, re.IGNORECASE)
        if found and action is None:
            return unknown(
                code, "the asker may not read the GPUs: nothing is known of them", cut(line_of(text, found.start())), source
            )
        if found and action is not None:
            return failed(code, what, action, cut(line_of(text, found.start())), source)
    return None


def error_devices(text: str) -> dict[int, Finding]:
    """Returns the findings of devices that the text has error lines of, by index."""
    found: dict[int, Finding] = {}
    if "GPU[" not in text and "gpu[" not in text:
        return found
    for match in _DEVICE.finditer(text):
        if not _HARMLESS.search(match[3]):
            what = f"it could not be read: {match[3].strip() or 'error'}: reset it; reboot when it stays"
            found[int(match[2])] = failed(
                "device.reading_error", what, HealthAction.RESET_GPU, cut(match[0]), "ROCm/rocm_smi_lib#85"
            )
    return found


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.6 for a text with an error text of AMD's tools."""
    if "GPU[" not in text and not any(word in text for word in ("amd", "AMD", "rocm", "ROCm", "rsmi", "RSMI", "kfd")):
        return 0.0
    is_theirs = re.search(r"amdgpu|amd-smi|amdsmi|rocm|rsmi|/dev/kfd", text, re.IGNORECASE)
    return 0.6 if (is_theirs and amd_error(text)) or error_devices(text) else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Names the node's fault, or the devices that could not be read."""
    from hostler.health.roll_up import accelerator_health
    from hostler.health.sources.gpu_smi_errors import no_answer

    devices = [accelerator_health(index=index, findings=(finding,)) for index, finding in sorted(error_devices(text).items())]
    known = amd_error(text)
    if devices:
        return source_health(KIND, devices, findings=[known] if known else [])
    return source_health(KIND, findings=[known or no_answer(text, command, exit_code)])


AMD_ERRORS: Final = Source(kind=KIND, detect=detect, parse=parse, command=r"\b(rocm|amd)-smi\b")
