"""Output of perftest (ib_write_bw and its kin): judged at the largest size, against the rates that links have."""

import re
from collections.abc import Iterator
from typing import Final

from hostler.health.finding import degraded, failed, noted, unknown
from hostler.health.roll_up import cut, source_health
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.source import Source
from hostler.model.enums import HealthAction
from hostler.model.health import Finding, SourceHealth

KIND: Final = "ib-bandwidth"
RATES_GBIT_PER_S: Final = (10.0, 25.0, 40.0, 50.0, 56.0, 100.0, 200.0, 400.0, 800.0)
LEAST_RATIO: Final = 0.78
"""Share of its rate that a good link carries. Source: Azure/azurehpc-health-checks: 78 of 100, 180 of 200, 360 of 400 Gbit/s."""
LARGE_BYTES: Final = 65_536
_MIB: Final = 1_048_576
_HEAD: Final = re.compile(r"#bytes\s{1,12}#iterations\s{1,12}BW peak\[(MB|Gb|MiB|GB)/sec\]", re.IGNORECASE)
_ROW: Final = re.compile(
    r"^\s{0,8}(\d{1,12})\s{1,20}(\d{1,12})\s{1,24}(-?[\d.]{1,16})\s{1,24}(-?[\d.]{1,16})(?:\s{1,24}[\d.]{1,16})?\s*$"
)
_BROKE: Final = re.compile(
    (
        r"Couldn't connect to|Unable to (?:init|open|connect|find)[^\n]{0,100}|Failed to (?:modify|create"
        r"|open|connect|exchange)[^\n]{0,100}|IB device \S{1,40} not found|Connection (?:refused|timed out)"
    ),
    re.IGNORECASE,
)
_ERROR: Final = re.compile(
    r"Completion with error[^\n]{0,160}|Failed status \d{1,3}[^\n]{0,120}|vendor_err \S{1,20}|transport retry counter exceeded",
    re.IGNORECASE,
)
_SOURCE: Final = "linux-rdma/perftest; Azure/azurehpc-health-checks"


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.95 for the table, 0.8 for its banner."""
    if _HEAD.search(text):
        return 0.95
    return (
        0.8
        if re.search(
            r"(?:RDMA|Send|Write|Read)_?(?:Write|Read|Send)? ?(?:BW|Latency) (?:Test|Post)|ib_(?:write|read|send)_(?:bw|lat)",
            text,
        )
        else 0.0
    )


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges the average at the largest size; both ends of one test may be in one output, also interleaved."""
    rows = list(_rows(text))
    findings: list[Finding] = []
    error, broke = _ERROR.search(text), _BROKE.search(text)
    if error:
        findings.append(
            failed(
                "ib.completion_error",
                f"a transfer ended in an error: {cut(error[0])}",
                HealthAction.DRAIN_AND_DIAG,
                cut(error[0]),
                _SOURCE,
            )
        )
    elif broke:
        findings.append(unknown("ib.broke", f"the test did not run: {cut(broke[0])}"))
    if not rows and not findings:
        return source_health(KIND, findings=[no_answer(text, command, exit_code)])
    if rows:
        findings.append(_judge(*max(rows)))
        findings += [unknown("ib.row", f"a row could not be read: {cut(line)}") for line in _odd_rows(text)]
    return source_health(KIND, findings=findings)


def _rows(text: str) -> Iterator[tuple[int, float]]:
    """Yields size and average in Gbit/s."""
    to_gbit = 1.0
    for line in text.splitlines():
        if found := _HEAD.search(line):
            unit = found[1].lower()
            to_gbit = {"gb": 1.0, "mb": _MIB * 8 / 1e9, "mib": _MIB * 8 / 1e9}[unit]
        elif row := _ROW.match(line):
            try:
                yield int(row[1]), float(row[4]) * to_gbit
            except ValueError:
                continue


def _odd_rows(text: str) -> list[str]:
    """Returns lines that look like a row and are none; a row that two outputs broke is shorter than that."""
    head = _HEAD.search(text)
    lines = text[head.end() :].splitlines() if head else []
    return [line for line in lines if len(line.split()) in {4, 5} and line[:12].strip()[:1].isdigit() and not _ROW.match(line)][
        :3
    ]


def _judge(size: int, gbit_per_s: float) -> Finding:
    code, said = "performance.ib_write_gbit_per_s", f"{gbit_per_s:.1f} Gbit/s at {size} bytes"
    if size < LARGE_BYTES:
        return unknown(code, f"{said}: the largest size is too small to show the bandwidth, or the output was cut")
    if gbit_per_s <= 0:
        return failed(code, f"{said}: nothing went over the link", HealthAction.DRAIN_AND_DIAG, said, _SOURCE)
    near = next((rate for rate in RATES_GBIT_PER_S if LEAST_RATIO * rate <= gbit_per_s <= 1.05 * rate), None)
    if near is None:
        return degraded(
            code, f"{said}: it fills no link that there is: repeat it once, alone", said, _SOURCE, HealthAction.DRAIN_AND_DIAG
        )
    return noted(code, f"{said}: it fills a link of {near:g} Gbit/s", said, _SOURCE)


IB_BANDWIDTH: Final = Source(kind=KIND, detect=detect, parse=parse, command=r"\bib_(?:write|read|send)_(?:bw|lat)\b")
