"""Output of nccl-tests and rccl-tests: judged at the largest size, since an average hides how sizes differ."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import mode
from typing import Final

from hostler.health.finding import degraded, failed, noted, unknown
from hostler.health.roll_up import cut, source_health
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.log_floors import against, floor_for, is_joined, model_of
from hostler.health.sources.log_words import LogWord
from hostler.health.sources.source import Source
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding, SourceHealth

KIND: Final = "nccl-tests"
_MOST_GB_PER_S: Final = 1e6
LARGE_BYTES: Final = 512 * 1024 * 1024
"""Below this the largest size does not yet show the bandwidth of the links. Source: superbench all-reduce, 223 of 235 GB/s there."""
USUAL_GB_PER_S: Final = {"A100": 228.0, "A100-80GB": 228.0, "H100": 460.0, "H200": 431.0}
"""Floors of one cloud's nodes with eight such GPUs; others' nodes reach a little less."""
USUAL_SHARE_RATIO: Final = 0.75
USUAL_SOURCE: Final = "Azure/azurehpc-health-checks floors; the share is ours"
GPUS_OF_A_BOARD: Final = 8
WATCH_GB_PER_S: Final = 200.0
WATCH_SOURCE: Final = "facebookresearch/gcm, NCCL cases on two nodes of eight NVLink GPUs: 181 GB/s is low (read 2026-12-01)"

_HEAD: Final = re.compile(r"^#\s{1,20}size\s{1,20}count\s{1,20}type", re.MULTILINE)
_ROW: Final = re.compile(
    r"^\s{0,20}(\d{1,16})\s{1,20}(\d{1,16})\s{1,20}([a-z]\w{2,12})\s{1,20}([a-z]\w{1,12})?\s{0,20}(\S.{10,200})$"
)
_RANK: Final = re.compile(
    (
        r"^#\s{1,8}Rank\s{1,8}\d{1,6}\s{1,8}(?:Group\s{1,8}\d{1,6}\s{1,8})?Pid\s{1,12}\d{1,10} on"
        r"\s{1,4}(\S{1,80}) device\s{1,4}\d{1,4} \[[^\]\n]{1,20}\] ?([^\n]{0,80})$"
    ),
    re.MULTILINE,
)
_BOUNDS: Final = re.compile(r"^# Out of bounds values : (\d{1,12}) (OK|FAILED)", re.MULTILINE)
_AVERAGE: Final = re.compile(r"^# Avg bus bandwidth\s{1,8}: ([\d.]{1,20})", re.MULTILINE)
_TEST: Final = re.compile(
    r"(all_?reduce|all_?gather|reduce_?scatter|broadcast|reduce|all_?to_?all|sendrecv|gather|scatter|hypercube)(?:_perf|\b|\.)",
    re.IGNORECASE,
)
_SAME_LIMIT: Final = frozenset({"", "allreduce", "allgather", "reducescatter", "broadcast", "reduce"})
"""Tests whose bus bandwidth is that of the links, whatever the operation. Source: NVIDIA/nccl-tests doc/PERFORMANCE.md."""

_FAULTS: Final = (
    LogWord(
        code="nccl.no_memory",
        patterns=("out of memory",),
        verdict=Verdict.UNKNOWN,
        action=HealthAction.RECORD,
        what="the GPUs' memory was in use: the test did not run",
    ),
    LogWord(
        code="nccl.ecc",
        patterns=("uncorrectable ECC", "ECC error"),
        verdict=Verdict.FAILED,
        action=HealthAction.RESET_GPU,
        what="an ECC error ended the test",
    ),
    LogWord(
        code="nccl.cuda",
        patterns=("illegal memory access", "unspecified launch failure", "device-side assert"),
        verdict=Verdict.FAILED,
        action=HealthAction.DRAIN_AND_DIAG,
        what="a CUDA error ended the test",
    ),
    LogWord(
        code="nccl.failure",
        patterns=(
            r"Test (?:NCCL|CUDA) failure",
            r"unhandled (?:system|cuda) error",
            r"NCCL failure",
            r"remote process (?:exited|has terminated)",
            r"ibv_\w{2,20} (?:failed|error)",
            r"Got completion .{0,60}(?:error|status)",
            r"Call to \w{2,30} failed",
            r"socket .{0,40}(?:refused|timed out)",
            r"NET/IB .{0,60}(?:error|failed)",
            r"watchdog .{0,60}timeout",
        ),
        verdict=Verdict.FAILED,
        action=HealthAction.DRAIN_AND_DIAG,
        what="NCCL failed: repeat the test once, alone",
    ),
)
_FAULT_SOURCE: Final = "NVIDIA/nccl-tests src/common.h; NCCL error codes"


@dataclass(slots=True)
class _Run:
    """What one run of a test says. busbw_gb_per_s: the lower of out-of-place and in-place."""

    size_bytes: int = 0
    busbw_gb_per_s: float | None = None
    wrong_count: int = 0
    row_count: int = 0
    unread: list[str] = field(default_factory=list)


def detect(text: str, name: str) -> float:
    """Returns 0.95 for the table, 0.7 for its other parts; the name of a file hints."""
    if _HEAD.search(text) and re.search(r"busbw", text):
        return 0.95
    if re.search(r"# nThread \d+ nGpus|# Avg bus bandwidth|Test NCCL failure", text):
        return 0.7
    return 0.2 if re.search(r"nccl|rccl", name, re.IGNORECASE) and re.search(r"nccl", text, re.IGNORECASE) else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges the bus bandwidth at the largest size, wrong values, and errors; a run without its end is unknown."""
    run = _rows(text)
    findings = list(_faults(text))
    if not run.row_count and not findings:
        return source_health(KIND, findings=[no_answer(text, command, exit_code)])
    findings += _wrong(text, run)
    findings += [unknown("nccl.row", f"a row could not be read: {row}") for row in run.unread[:3]]
    ended = _AVERAGE.search(text)
    if not ended:
        findings.append(unknown("nccl.no_end", "the run has no end: it was cut off or broken off"))
    elif run.busbw_gb_per_s is not None:
        findings += _speed(text, command or "", run)
    else:
        findings.append(unknown("nccl.no_rows", "no measured row"))
    if exit_code:
        findings.append(unknown("nccl.exit_status", f"the test ended with status {exit_code}"))
    return source_health(KIND, findings=findings)


def _rows(text: str) -> _Run:
    run = _Run()
    for line in text.splitlines():
        found = _ROW.match(line)
        if found is None:
            if _looks_like_row(line):
                run.unread.append(cut(line))
            continue
        values = found[5].split()
        # An integer before the times is the root rank, which not every version prints.
        if len(values) in {9, 5} and re.fullmatch(r"-?\d{1,6}", values[0]):
            values = values[1:]
        if len(values) not in {8, 4}:
            run.unread.append(cut(line))
            continue
        halves = [values[:4], values[4:]] if len(values) == 8 else [values]  # noqa: PLR2004 - time, algbw, busbw, wrong, twice
        try:
            speeds = [float(half[2]) for half in halves]
        except ValueError:
            run.unread.append(cut(line))
            continue
        run.row_count += 1
        run.wrong_count += sum(_wrong_values(half[3]) for half in halves)
        if int(found[1]) >= run.size_bytes and all(0 <= speed < _MOST_GB_PER_S for speed in speeds):
            run.size_bytes, run.busbw_gb_per_s = int(found[1]), min(speeds)
    return run


def _looks_like_row(line: str) -> bool:
    words = line.split()
    numbers = sum(1 for word in words if re.fullmatch(r"-?\d{1,16}(?:\.\d{1,6})?", word))
    return not line.startswith("#") and len(words) in range(10, 15) and numbers >= len(words) // 2 and "NCCL" not in line


def _wrong_values(word: str) -> int:
    """The last column is a count in newer versions, in older ones the greatest error or N/A."""
    if word.isascii() and word.isdigit():
        return int(word)
    try:
        return int(float(word) > 1e-2)  # noqa: PLR2004 - far above what rounding gives any type
    except ValueError:
        return 0


def _faults(text: str) -> Iterator[Finding]:
    for word in _FAULTS:
        found = word.search(text)
        if found:
            line = text[text.rfind("\n", 0, found.start()) + 1 : found.end() + 120].splitlines()[0]
            yield word.finding(line, _FAULT_SOURCE)
            return


def _wrong(text: str, run: _Run) -> Iterator[Finding]:
    bounds = _BOUNDS.search(text)
    told = int(bounds[1]) if bounds else 0
    count = max(told, run.wrong_count)
    if count or (bounds and bounds[2] == "FAILED"):
        what = f"{count} values were wrong: data is damaged on its way"
        yield failed(
            "nccl.wrong_values",
            what,
            HealthAction.DRAIN_AND_DIAG,
            cut(bounds[0]) if bounds else what,
            "NVIDIA/nccl-tests, #wrong",
        )


def _speed(text: str, command: str, run: _Run) -> Iterator[Finding]:
    ranks = _RANK.findall(text)
    names, hosts = [name for _, name in ranks], {host for host, _ in ranks}
    test = _test(text, command)
    busbw = run.busbw_gb_per_s or 0.0
    where = f"{test or 'bus bandwidth'} at {run.size_bytes} bytes"
    if test.replace("_", "").lower() not in _SAME_LIMIT:
        yield noted(
            "performance.nccl", f"{where}: {busbw:g} GB/s; not judged, since no floor is known for it", cut(where), "ours"
        )
        return
    if len(ranks) == 1:
        yield unknown("performance.nccl", f"{where}: one rank alone measures no link")
        return
    if run.size_bytes < LARGE_BYTES:
        what = f"{where}: {busbw:g} GB/s: the largest size is too small to show the bandwidth"
        yield unknown("performance.all_reduce_gb_per_s", what)
        return
    scope = "node" if len(hosts) <= 1 else "many nodes"
    joined = is_joined(names) or not names
    model = mode([model_of(name) for name in names]) if names else ""
    limit = floor_for("all_reduce_gb_per_s", accelerator=model or ("nvlink" if joined else "pcie"), joined=joined, scope=scope)
    found = against("all_reduce_gb_per_s", busbw, limit, where=where, evidence=where)
    usual = USUAL_GB_PER_S.get(model, 0.0) * USUAL_SHARE_RATIO
    if found.verdict is Verdict.HEALTHY and scope == "node" and joined and len(ranks) >= GPUS_OF_A_BOARD and busbw < usual:
        yield degraded(found.code, f"{found.what}; low for {len(ranks)} {model} (watch below {usual:g})", where, USUAL_SOURCE)
        return
    if found.verdict is Verdict.HEALTHY and scope != "node" and joined and busbw < WATCH_GB_PER_S and len(ranks) >= 16:  # noqa: PLR2004 - two nodes of eight
        yield degraded(
            found.code,
            f"{found.what}; low for nodes whose GPUs are joined by NVLink (watch below {WATCH_GB_PER_S:g})",
            where,
            WATCH_SOURCE,
        )
        return
    yield found


def _test(text: str, command: str) -> str:
    head = text[:4096]
    found = re.search(r"Collective test starting: (\w{3,30})", head) or _TEST.search(command)
    if found:
        return found[1].removesuffix("_perf")
    started = _TEST.search(" ".join(line for line in head.splitlines()[:3] if "_perf" in line))
    return started[1] if started else ""


NCCL: Final = Source(kind=KIND, detect=detect, parse=parse, command=r"_perf\b|nccl-?tests|rccl-?tests")
