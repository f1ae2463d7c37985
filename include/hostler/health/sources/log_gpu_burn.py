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
MAX_REPORT_CHARS: Final = 16 * 1024
_SOURCE: Final = "wilicc/gpu-burn, README and source"
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
    progress = _last_progress(text)
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


def _last_progress(text: str) -> tuple[str, str, str] | None:
    """Returns the device columns of the last whole report (work, errors, temperatures); the reports stand on one long line."""
    end = len(text)
    for _ in range(3):  # the very last one may be cut off
        at = text.rfind("proc'd:", 0, end)
        if at < 0:
            return None
        report = re.split(r"[\r\n]|\d{1,3}\.\d%", text[at + len("proc'd:") : min(end, at + MAX_REPORT_CHARS)], maxsplit=1)[0]
        done, _, rest = report.partition("errors:")
        errors, _, temps = rest.partition("temps:")
        if temps.strip():
            return done, errors, temps
        end = at
    return None


def _progress(parts: tuple[str, str, str]) -> tuple[dict[int, str], dict[int, float], dict[int, int]]:
    done, wrong, warm = parts
    errors = {
        at: (part.split() or ["?"])[0] + (" DIED" if "DIED" in part else "") for at, part in enumerate(wrong.split(" - "))
    }
    rates = {}
    for at, part in enumerate(done.split(" - ")):
        rate = re.search(r"\((\d{1,9}) Gflop/s\)", part)
        if rate and int(rate[1]):
            rates[at] = float(rate[1])
    temps = {at: int(temp) for at, temp in enumerate(re.findall(r"(\d{1,3}|--) C", warm)) if temp.isdigit()}
    return errors, rates, temps


BURN: Final = Source(kind=KIND, detect=detect, parse=parse, command=r"gpu[-_]?burn")
