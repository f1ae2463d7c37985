"""Copy tests: nvbandwidth, CUDA's bandwidthTest and p2pBandwidthLatencyTest, ROCm's and superbench's."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from hostler.health.finding import failed, noted, unknown
from hostler.health.roll_up import accelerator_health, cut, source_health
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.json_text import load
from hostler.health.sources.log_floors import against, floor_for, model_of
from hostler.health.sources.log_training import findings_in
from hostler.health.sources.source import Source
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding, SourceHealth

KIND: Final = "bandwidth-test"
_ROCM: Final = re.compile(
    r"^\s{0,40}(H2D|D2H|D2D)_Bandwidth_?(\w{0,20})\s{1,40}([+\d]\d{0,10})(By|kB|MB)\s{1,40}GB/sec\s{1,40}([\d.]{1,12})",
    re.MULTILINE,
)
_NVB_HEAD: Final = re.compile(r"^Running (\S{3,80}?)\.\s*$", re.MULTILINE)
_NVB_ROW: Final = re.compile(r"^\s{0,8}(\d{1,3})((?:\s{1,12}(?:[\d.]{1,14}|N/A)){1,40})\s*$")
_CUDA_HEAD: Final = re.compile(r"^\s{0,8}(Host to Device|Device to Host|Device to Device) Bandwidth", re.MULTILINE)
_CUDA_WAYS: Final = {"Host to Device": "H2D", "Device to Host": "D2H", "Device to Device": "D2D"}
_CUDA_UNIT: Final = re.compile(r"Bandwidth\(([MG])B/s\)")
_MB_IN_GB: Final = 1000.0
_CUDA_ROW: Final = re.compile(r"^\s{0,12}(\d{1,14})\s{1,40}([\d.]{1,14})\s*$")
_CUDA_LINE: Final = re.compile(r"bandwidthTest-(H2D|D2H|D2D)[^,\n]{0,40}, Bandwidth = ([\d.]{1,14}) ([MG])B/s")
_COPY: Final = re.compile(
    r"^\s{0,8}(cpu|gpu(\d{1,3}))_to_(cpu|gpu(\d{1,3}))(?:_(?:read|write))?_by_(dma|sm)(?:_under_numa\d{1,3})?_uni"
    r"[ :=]{1,8}([\d.]{1,14})\s{0,4}$",
    re.MULTILINE,
)
"""superbench's gpu-copy. Copies both ways at once are left out: no floor is known for them."""
_OF_THE_GPU: Final = frozenset({"training.gpu_ecc", "training.nvlink", "training.gpu_lost"})
"""CUDA errors that name a fault of the GPU, whatever program meets them."""
_UNENDED: Final = re.compile(r"\[CUDA Bandwidth Test\](?:(?!Result =)[\s\S])*\Z")
_DEVICE: Final = re.compile(r"^\s{0,8}Device \d{1,3}: ([^\n(]{2,80})", re.MULTILINE)
_FAILED: Final = re.compile(
    r"\bERROR\b[^\n]{0,200}|CUDA error[^\n]{0,200}|cudaError\w{2,60}|failed with[^\n]{0,120}|no CUDA-capable device",
    re.IGNORECASE,
)
_METRICS: Final = {
    "H2D": "host_to_device_gb_per_s",
    "D2H": "device_to_host_gb_per_s",
    "D2D": "device_to_device_gb_per_s",
    "P2P": "peer_to_peer_gb_per_s",
}
_LEAST_PCIE: Final = 8.0
LEAST_SOURCE: Final = "ours: half of what a PCIe link of the third generation with 16 lanes carries"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """One value in GB/s: of which direction, of which device; device None: not told."""

    way: str
    gb_per_s: float
    device: int | None
    text: str


def detect(text: str, name: str) -> float:
    """Returns 0.9 for the table of a known test."""
    if (
        _ROCM.search(text)
        or _CUDA_LINE.search(text)
        or _COPY.search(text)
        or (_NVB_HEAD.search(text) and re.search(r"memcpy|bandwidth", text))
    ):
        return 0.9
    if re.search(r"\[CUDA Bandwidth Test\]|nvbandwidth Version|P2P \(Peer-to-Peer\) GPU Bandwidth Latency Test", text):
        return 0.9
    if re.search(r'"nvbandwidth"|(?:cpu_to_gpu|gpu_to_cpu)\S{0,60}bw"?\s{0,4}[:,]', text):
        return 0.85
    return 0.2 if re.search(r"bandwidth|_bw\b", name, re.IGNORECASE) and re.search(r"GB/s", text) else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges each direction at its best size against its floor; a value without a floor is noted, and unknown when all are."""
    measured = list(_measured(text))
    broke = _FAILED.search(text)
    findings = [found for found in findings_in(text) if found.code in _OF_THE_GPU]
    if "Result = FAIL" in text:
        findings.append(
            failed(
                "bandwidth.failed",
                "the copy test failed: repeat it once, alone",
                HealthAction.DRAIN_AND_DIAG,
                "Result = FAIL",
                "NVIDIA bandwidthTest: its own verdict",
            )
        )
    elif _UNENDED.search(text):
        findings.append(unknown("bandwidth.cut", "the test has no result at its end: it was cut off or broken off"))
    if broke and not findings:
        findings.append(
            unknown("bandwidth.broke", f"the copy test broke: {cut(broke[0])}: run it again; it says nothing of the speed")
        )
    if not measured and not findings:
        return source_health(KIND, findings=[no_answer(text, command, exit_code)])
    named = _DEVICE.search(text)
    model = model_of(named[1]) if named else ""
    judged = [(one, _judge(one, model)) for one in _best(measured)]
    gpus: dict[int, list[Finding]] = {}
    for one, found in judged:
        if one.device is None:
            findings.append(found)
        else:
            gpus.setdefault(one.device, []).append(found)
    accelerators = [accelerator_health(index=gpu, findings=found) for gpu, found in sorted(gpus.items())]
    if judged and all(found.verdict is Verdict.UNKNOWN for _, found in judged):
        return source_health(KIND, accelerators, findings=findings)
    return source_health(KIND, accelerators, findings=findings, silent=Verdict.UNKNOWN)


def _best(measured: list[_Measured]) -> list[_Measured]:
    """Small sizes measure the start of a copy, not the link: the best of a direction and device counts."""
    best: dict[tuple[str, int | None], _Measured] = {}
    for one in measured:
        key = (one.way, one.device)
        if key not in best or one.gb_per_s > best[key].gb_per_s:
            best[key] = one
    return list(best.values())


def _judge(one: _Measured, model: str) -> Finding:
    metric = _METRICS[one.way]
    limit = floor_for(metric, accelerator=model, joined=True) if model else None
    where = f"{one.way} copy"
    if limit is None and one.way in {"H2D", "D2H"}:
        if one.gb_per_s < _LEAST_PCIE:
            what = f"{where}: {one.gb_per_s:g} GB/s: below {_LEAST_PCIE:g} whatever the card; look at the PCIe link"
            return Finding(
                code=f"performance.{metric}",
                what=what,
                verdict=Verdict.DEGRADED,
                action=HealthAction.RECORD,
                evidence=cut(one.text),
                source=LEAST_SOURCE,
            )
        return noted(
            f"performance.{metric}", f"{where}: {one.gb_per_s:g} GB/s; compare it with the fleet", cut(one.text), LEAST_SOURCE
        )
    if limit is None:
        return noted(
            f"performance.{metric}",
            f"{where}: {one.gb_per_s:g} GB/s; no floor is known",
            cut(one.text),
            "hostler.health.catalog floors",
        )
    return against(metric, one.gb_per_s, limit, where=where, evidence=one.text)


def _measured(text: str) -> Iterator[_Measured]:
    for found in _ROCM.finditer(text):
        yield _Measured(way=found[1], gb_per_s=_number(found[5]), device=None, text=found[0])
    for found in _CUDA_LINE.finditer(text):
        yield _Measured(way=found[1], gb_per_s=_number(found[2]) / (1 if found[3] == "G" else 1000), device=None, text=found[0])
    yield from _copies(text)
    yield from _tables(text)
    document = load(text)
    if document is not None:
        yield from _of_json(document)


def _copies(text: str) -> Iterator[_Measured]:
    found = list(_COPY.finditer(text))
    engine = "dma" if any(one[5] == "dma" for one in found) else "sm"  # copies by kernels measure the kernel too
    for one in found:
        if one[5] == engine and (one[1] != "cpu" or one[3] != "cpu"):
            way = "H2D" if one[1] == "cpu" else "D2H" if one[3] == "cpu" else "D2D" if one[1] == one[3] else "P2P"
            yield _Measured(way=way, gb_per_s=_number(one[6]), device=int(one[2] or one[4]), text=one[0])


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _tables(text: str) -> Iterator[_Measured]:
    way, scale, is_nvb = "", 1.0, False
    for line in text.splitlines():
        if found := _NVB_HEAD.match(line):
            way, is_nvb = _way(found[1]), True
        elif found := _CUDA_HEAD.match(line):
            way, is_nvb = _CUDA_WAYS[found[1]], False
        elif found := _CUDA_UNIT.search(line):
            scale = _MB_IN_GB if found[1] == "M" else 1.0
        elif way and is_nvb:
            yield from _nvb_row(way, line)
        elif way and (row := _CUDA_ROW.match(line)):
            yield _Measured(way=way, gb_per_s=_number(row[2]) / scale, device=None, text=line)


def _nvb_row(way: str, line: str) -> Iterator[_Measured]:
    row = _NVB_ROW.match(line)
    cells = [_number(cell) for cell in row[2].split() if cell != "N/A"] if row else []
    if row is None or not any(cells):
        return
    if way in {"H2D", "D2H"}:
        # One row, a column a GPU; the row's own number is that of the processor.
        for gpu, cell in enumerate(cells):
            yield _Measured(way=way, gb_per_s=cell, device=gpu, text=line)
    else:
        yield _Measured(way=way, gb_per_s=min(filter(None, cells)), device=int(row[1]), text=line)


def _way(test: str) -> str:
    if "latency" in test or "sm" in test.rsplit("_", maxsplit=1)[-1]:
        return ""
    if test.startswith("host_to_device") and "bidir" not in test and "all" not in test:
        return "H2D"
    if test.startswith("device_to_host") and "bidir" not in test and "all" not in test:
        return "D2H"
    return "P2P" if test.startswith("device_to_device_memcpy_read") else ""


def _of_json(document: Any) -> Iterator[_Measured]:
    tests = (
        document.get("nvbandwidth", {}).get("testcases")
        if isinstance(document, dict) and isinstance(document.get("nvbandwidth"), dict)
        else None
    )
    for test in tests if isinstance(tests, list) else ():
        if not isinstance(test, dict) or not isinstance(test.get("name"), str) or not _way(test["name"]):
            continue
        way = _way(test["name"])
        matrix = test.get("bandwidth_matrix")
        for at, row in enumerate(matrix if isinstance(matrix, list) else ()):
            cells = [_number(str(cell)) for cell in row if str(cell) != "N/A"] if isinstance(row, list) else []
            for gpu, cell in enumerate(cells) if way != "P2P" else [(at, min(filter(None, cells), default=0.0))]:
                yield _Measured(way=way, gb_per_s=cell, device=gpu, text=json.dumps(row)[:200])


BANDWIDTH: Final = Source(
    kind=KIND,
    detect=detect,
    parse=parse,
    command=r"nvbandwidth|bandwidthTest|gpu_copy|rocm.?bandwidth|hipBusBandwidth|p2pBandwidth",
)
