"""Output of gpu-burn: errors of arithmetic, devices that died, speed of one device against the others."""

import re
from statistics import median
from typing import Final

from hostler.health.finding import degraded, failed, unknown
from hostler.health.roll_up import accelerator_health, cut, source_health
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.source import Source
from hostler.model.enums import HealthAction
from hostler.model.health import Finding, SourceHealth

KIND: Final = "gpu-burn"
SLOWER_RATIO: Final = 0.9
HOT_C: Final = 85
_SOURCE: Final = "wilicc/gpu-burn, README and source"
_PROGRESS: Final = re.compile(
    (
        r"(\d{1,3}\.\d)%\s{1,8}proc'd: ([^\r\n]{1,4000}?)\s{2,8}errors: ([^\r\n]{1,2000}?)"
        r"\s{2,8}temps: ([^\r\n]{1,2000}?)(?=\s{0,4}\d{1,3}\.\d%|\s*$|\r|\n)"
    ),
    re.MULTILINE,
)
_RESULT: Final = re.compile(r"^\s{0,8}GPU (\d{1,3}): (OK|FAULTY)\s*$", re.MULTILINE)
_UUID: Final = re.compile(r"^GPU (\d{1,3}): [^\n]{0,120}\(UUID: (GPU-[0-9a-fA-F-]{36})\)", re.MULTILINE)
_TESTED: Final = re.compile(r"Tested (\d{1,3}) GPUs?:")
_BROKE: Final = re.compile(
    (
        r"No clients are alive|Couldn't init a GPU test|Could not load|error \d{1,4} .{0,40}(?:cu|gpu_burn)"
        r"|Error in \"?[^\n]{1,80}|No CUDA devices"
    ),
    re.IGNORECASE,
)


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.95 for its progress or its result."""
    if re.search(r"proc'd: \d", text) or (_TESTED.search(text) and _RESULT.search(text)):
        return 0.95
    return 0.6 if re.search(r"gpu.?burn|Burning for|No clients are alive", text, re.IGNORECASE) else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges each device by its last word; a run without results is unknown, whatever its progress looked like."""
    results = {int(gpu): word for gpu, word in _RESULT.findall(text)}
    progress = None
    for progress in _PROGRESS.finditer(text):  # noqa: B007 - the last one is wanted, without a list of thousands
        pass
    errors, rates, temps = _progress(progress) if progress else ({}, {}, {})
    broke = _BROKE.search(text)
    if not results and not progress and not broke:
        return source_health(KIND, findings=[no_answer(text, command, exit_code)])
    uuids = {int(gpu): uuid for gpu, uuid in _UUID.findall(text)}
    gpus = sorted({*results, *errors})
    usual = median(rates.values()) if rates else 0.0
    accelerators = [
        accelerator_health(
            index=gpu,
            uuid=uuids.get(gpu),
            findings=_device(results.get(gpu), errors.get(gpu, "0"), rates.get(gpu), usual, temps.get(gpu)),
        )
        for gpu in gpus
    ]
    return source_health(KIND, accelerators, findings=_node(text, results, broke))


def _node(text: str, results: dict[int, str], broke: "re.Match[str] | None") -> list[Finding]:
    findings = []
    tested = _TESTED.search(text)
    if broke:
        findings.append(
            failed("burn.broke", f"the load test broke: {cut(broke[0])}", HealthAction.DRAIN_AND_DIAG, cut(broke[0]), _SOURCE)
        )
    if not results:
        findings.append(unknown("burn.no_result", "the load test has no result: it was cut off or broken off"))
    elif tested and int(tested[1]) != len(results):
        findings.append(unknown("burn.count", f"{tested[1]} GPUs tested, results of {len(results)}"))
    return findings


def _device(result: str | None, errors: str, rate: float | None, usual: float, temp_c: int | None) -> list[Finding]:
    findings = []
    if result == "FAULTY" or "DIED" in errors or (errors.isdigit() and int(errors)):
        what = (
            "the GPU died under load"
            if "DIED" in errors
            else f"wrong results under load ({errors} errors, {result or 'no result'})"
        )
        findings.append(failed("burn.faulty", what, HealthAction.DRAIN_AND_REPLACE, f"errors: {errors}; {result}", _SOURCE))
    elif result is None:
        findings.append(unknown("burn.no_result", "no result of this GPU"))
    if rate is not None and usual and rate < SLOWER_RATIO * usual:
        what = f"{rate:g} Gflop/s, the median of its neighbours is {usual:g}"
        findings.append(degraded("burn.slow", what, what, "microsoft/superbenchmark: 10 % below is too slow"))
    if temp_c is not None and temp_c >= HOT_C:
        findings.append(
            degraded("temperature.high", f"{temp_c} C under load, limit {HOT_C}", f"{temp_c} C", "ours: warn at 85 C")
        )
    return findings


def _progress(found: "re.Match[str]") -> tuple[dict[int, str], dict[int, float], dict[int, int]]:
    errors = {at: part.strip().split()[0] if part.strip() else "?" for at, part in enumerate(found[3].split(" - "))}
    for at, part in enumerate(found[3].split(" - ")):
        if "WARNING" in part:
            errors[at] = part.strip().split()[0]
    rates = {}
    for at, part in enumerate(found[2].split(" - ")):
        rate = re.search(r"\((\d{1,9}) Gflop/s\)", part)
        if rate and int(rate[1]):
            rates[at] = float(rate[1])
    temps = {at: int(temp) for at, temp in enumerate(re.findall(r"(\d{1,3}|--) C", found[4])) if temp.isdigit()}
    return errors, rates, temps


BURN: Final = Source(kind=KIND, detect=detect, parse=parse, command=r"gpu[-_]?burn")
