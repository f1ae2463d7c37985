"""The table that plain ``nvidia-smi`` prints, of drivers 325 to 610, Linux and Windows."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from hostler.health.finding import unknown
from hostler.health.roll_up import accelerator_health, source_health, unlisted
from hostler.health.sources.gpu_fields import whole
from hostler.health.sources.gpu_readings import judged, reading_of
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.source import Source
from hostler.health.words import device_finding, lost_devices, node_finding
from hostler.model.enums import Verdict
from hostler.model.health import AcceleratorHealth, Finding, SourceHealth

KIND: Final = "nvidia-smi-table"

_TOP: Final = re.compile(
    r"^\|\s*(?P<index>\d{1,3}|ERR!)\s+(?P<name>\S.*?)\s+(?P<mode>On|Off|N/A|ERR!|WDDM|TCC|MCDM|WDM)\s*"
    r"\|\s*(?P<pci>[0-9A-Fa-f]+:[0-9A-Fa-f:.]+|N/A|ERR!)\s+(?P<display>\S+)?\s*\|\s*(?P<ecc>\S+)\s*\|\s*$"
)
_MIDDLE: Final = re.compile(
    r"^\|\s*(?P<fan>ERR!|N/A|\d+\s?%|\[[^\]]*\])\s*(?P<temperature>ERR!|N/A|\d+\s?C|\[[^\]]*\])\s+(?P<state>\S+|\[[^\]]*\])\s+"
    r"(?P<power>[^/|]+|N/A)\s*/\s*(?P<cap>[^|]+?)\s*\|\s*(?P<used>[^/|]+?)\s*/\s*(?P<total>[^|]+?)\s*\|"
    r"\s*(?P<use>\S+|\[[^\]]*\])\s+(?P<mode>\S[^|]*?)\s*\|\s*$"
)
_ERROR_LINE: Final = re.compile(r"^\|\s*ERR!|\|\s*(?:GPU is lost|Unknown Error)\b", re.IGNORECASE)
_MIG_MODE: Final = re.compile(r"^\|\s*\|\s*\|\s*(?P<mig>Enabled|Disabled|N/A|ERR!)(?P<pending>\*?)\s*\|\s*$")
_MIG_DEVICE: Final = re.compile(r"^\|\s*(\d+)\s+(\S+)\s+(\S+)\s+(\d+)\s*\|[^|]*/[^|]*\|\s*(\S+)\s+(\S+)\s*\|")
_HEAD: Final = re.compile(r"NVIDIA-SMI\s+([\d.]+).*?(?:Driver Version|KMD Version)\s*:\s*([\d.]+)")

_ERROR: Final = "the second line"
"""Key of a second line that tells of an error in place of values."""

Values = dict[str, str]


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 1.0 for the table with its heading, 0.8 for rows of it."""
    if "| NVIDIA-SMI" in text and re.search(r"^\|\s*NVIDIA-SMI\s+\d", text, re.MULTILINE):
        return 1.0
    if "|" not in text:
        return 0.0
    lines = [line for line in text.splitlines() if line.lstrip().startswith("|")]
    return 0.8 if any(_TOP.match(line.strip()) for line in lines) or any(_MIDDLE.match(line.strip()) for line in lines) else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges each GPU's two or three lines."""
    rows, migs = _rows(text)
    lost = lost_devices(text)
    if not rows and not lost:
        return source_health(KIND, findings=[node_finding(text, exit_code) or no_answer(text, command, exit_code)])
    head = _HEAD.search(text)
    accelerators, notes = _accelerators(rows, migs, head[2] if head else None)
    for device in lost:
        if all(device.pci is None or _same(device.pci, one.pci) is False for one in accelerators):
            accelerators.append(accelerator_health(index=device.index, pci=device.pci, findings=(device.finding,)))
    findings = list(_node(text, accelerators, has_head=head is not None))
    return source_health(
        KIND, accelerators, findings=findings, unknown=[*notes, *(f.what for f in findings if f.verdict is Verdict.UNKNOWN)]
    )


def _same(left: str, right: str | None) -> bool:
    return right is not None and left.lstrip("0:").lower() == right.lstrip("0:").lower()


def _rows(text: str) -> tuple[list[Values], dict[str, list[str]]]:
    """Returns each GPU's values by CSV column, and per GPU index the error counts of its MIG devices."""
    rows: list[Values] = []
    migs: dict[str, list[str]] = {}
    for raw in text.splitlines():
        line = raw.strip()
        top = _TOP.match(line)
        if top:
            rows.append(_top(top))
            continue
        device = _MIG_DEVICE.match(line)
        if device:
            migs.setdefault(device[1], []).append(device[6])
            continue
        if not rows:
            continue
        middle, mode = _MIDDLE.match(line), _MIG_MODE.match(line)
        if middle and "temperature.gpu" not in rows[-1]:
            rows[-1].update(_middle(middle))
        elif mode and "mig.mode.current" not in rows[-1]:
            rows[-1]["mig.mode.current"] = mode["mig"]
            if mode["pending"]:
                rows[-1]["mig.mode.pending"] = "Disabled" if mode["mig"] == "Enabled" else "Enabled"
        elif not middle and _ERROR_LINE.search(line):
            rows[-1].setdefault(_ERROR, line)
    return rows, migs


def _top(top: re.Match[str]) -> Values:
    values = {"index": top["index"], "name": top["name"], "pci.bus_id": top["pci"]}
    if top["mode"] in {"On", "Off", "ERR!"}:
        values["persistence_mode"] = top["mode"]
    ecc = top["ecc"]
    if ecc == "Off":
        values["ecc.mode.current"] = "Disabled"
    elif ecc == "On":  # in MIG mode the counts stand in the table of MIG devices
        values["ecc.mode.current"] = "Enabled"
    else:
        values["ecc.errors.uncorrected.volatile.total"] = ecc
    return values


def _middle(middle: re.Match[str]) -> Values:
    return {
        "fan.speed": middle["fan"],
        "temperature.gpu": middle["temperature"],
        "pstate": middle["state"],
        "power.draw": middle["power"].strip(),
        "power.limit": middle["cap"],
        "memory.used": middle["used"],
        "memory.total": middle["total"],
        "utilization.gpu": middle["use"],
    }


def _accelerators(
    rows: list[Values], migs: dict[str, list[str]], driver: str | None
) -> tuple[list[AcceleratorHealth], list[str]]:
    accelerators, notes = [], []
    for values in rows:
        index = whole(values["index"])
        counts = migs.get(values["index"])
        if values.get("ecc.mode.current") == "Enabled":
            values["ecc.errors.uncorrected.volatile.total"] = _mig_errors(counts)
        pci = values["pci.bus_id"]
        reading = reading_of(values, "csv", index=index, pci=pci if ":" in pci else None, driver=driver)
        reading = replace(reading, driver_major=None)  # the table never has what only newer drivers tell
        if reading.is_mig_enabled:
            reading = replace(reading, mig_instance_count=len(counts or ()))
        extra = [] if "temperature.gpu" in values else [_no_values(values)]
        health, unread = judged(reading, extra=extra)
        accelerators.append(health)
        notes += unread
    return accelerators, notes


def _no_values(values: Values) -> Finding:
    told = device_finding(values[_ERROR]) if _ERROR in values else None
    return told or unknown("reading.row", "its second line is missing or malformed")


def _mig_errors(counts: list[str] | None) -> str:
    """Returns the sum over the MIG devices; words when there is none to be had, since no devices are no zero."""
    if not counts:
        return "no MIG device tells of it"
    numbers = [number for number in map(whole, counts) if number is not None]
    return str(sum(numbers)) if sum(numbers) or len(numbers) == len(counts) else "N/A"


def _node(text: str, accelerators: list[AcceleratorHealth], *, has_head: bool) -> Iterator[Finding]:
    if not has_head:
        yield unknown("reading.heading", "the table has no heading with the driver's version")
    gaps = unlisted(accelerators)
    if gaps:
        yield unknown("reading.gpus", f"GPU {gaps} is not listed: nothing is known of it")
    if "rocesses" not in text:
        yield unknown("reading.table", "the table ends before its list of processes: more GPUs may have stood there")


TABLE: Final = Source(kind=KIND, detect=detect, parse=parse, command=r"nvidia-smi\s*$")
