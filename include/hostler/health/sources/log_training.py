"""Logs of training programs: what broke, and whether the program, another node or this node is at fault."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from hostler.health.catalog.tables import rows
from hostler.health.finding import unknown
from hostler.health.roll_up import cut, source_health
from hostler.health.sources.source import Source
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding, SourceHealth

KIND: Final = "training-log"
MAX_CHARS: Final = 128 * 1024 * 1024
LINE_CHARS: Final = 2048
BARE_LINES: Final = 64
"""So many lines of a text that nothing else recognises are asked whether they are a known one."""
START_SEQUENCE: Final = 1
"""A collective with this number is the first: what hangs there is the start, not one slow node."""
_SEQUENCE: Final = re.compile(r"SeqNum=(\d{1,18})")
_SURE: Final = re.compile(
    r"\[rank ?\d{1,6}\]|ProcessGroupNCCL|torch(?:run|\.distributed|elastic)|CUDA (?:error|out of memory)|\bNCCL (?:INFO|WARN|error)"
    r"|(?:^|\s)(?:step|iteration|iter|epoch)[ :=\[]{1,4}\d|\bloss[ :=]{1,4}-?(?:\d|nan)|worker group|rendez-?vous|torch\.cuda\.",
    re.IGNORECASE | re.MULTILINE,
)
_PROGRAM: Final = re.compile(
    r"Traceback \(most recent call last\)|\b\w{2,40}Error: |XlaRuntimeError|\bjax\b|slurmstepd: error|srun: error",
    re.IGNORECASE,
)
_BROKEN_OFF: Final = re.compile(r"(operation timeout:)\s*\n")
"""Some loggers break the watchdog's line before the collective that it names."""
_PROGRESS: Final = re.compile(r"(?:^|\W)(?:step|iteration|iter|epoch)[ :=\[]{1,4}\d|\bloss[ :=]{1,4}-?\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRule:
    """One row: pattern (searched in the lower-case line), and hint, which must be in the line."""

    name: str
    hint: str
    pattern: re.Pattern[str]
    action: HealthAction
    verdict: Verdict
    words: str
    source: str


def training_rules() -> tuple[TrainingRule, ...]:
    """Returns every row in the table's order, which is the order of precedence within one line."""
    return tuple(
        TrainingRule(
            name=row["name"],
            hint=row["hint"],
            pattern=re.compile(row["pattern"]),
            action=HealthAction(row["action"]),
            verdict=Verdict(row["verdict"]),
            words=row["words"],
            source=f"{row['source']} (read {row['read_on']})",
        )
        for row in rows("training_lines")
    )


RULES: Final = training_rules()


def detect(text: str, name: str) -> float:
    """Returns 0.7 for words that only training has, 0.3 for any program's error, 0.2 by the file's name."""
    if _SURE.search(text):
        return 0.7
    if _PROGRAM.search(text):
        return 0.3
    return 0.2 if re.search(r"train|torch|rank\d", name.rpartition("/")[2], re.IGNORECASE) else 0.0


def knows(text: str) -> bool:
    """True when one of the first lines is a known one, though nothing says that it is of a training program."""
    return any(judge_line(line) is not None for line in islice(text.splitlines(), BARE_LINES))


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:  # noqa: ARG001 - a log says it all itself
    """Judges each line; a log that shows neither progress nor a fault is unknown.

    An exit status other than 0 without a fault that is known is the program's own end and tells nothing of the node.
    """
    findings: dict[tuple[str, HealthAction], Finding] = {}
    makes_progress = False
    for line in _BROKEN_OFF.sub(r"\1 ", text).splitlines():
        makes_progress = makes_progress or bool(_PROGRESS.search(line[:LINE_CHARS]))
        found = judge_line(line)
        if found is not None:
            findings.setdefault((found.code, found.action), found)
    told = list(findings.values())
    if exit_code and not told:
        told.append(unknown("training.ended", f"the program ended with status {exit_code} and says no reason that is known"))
    if not told and not makes_progress:
        return source_health(KIND, unknown=("the log shows neither progress nor a fault",))
    return source_health(KIND, findings=told, silent=Verdict.HEALTHY)


def judge_line(line: str) -> Finding | None:
    """Returns what one line says; None when it tells of no fault that is known."""
    low = line[:LINE_CHARS].lower()
    for rule in RULES:
        if rule.hint in low and rule.pattern.search(low):
            return _start_up(line) if rule.name == "nccl_timeout" and _is_start(line) else _finding(rule, line)
    return None


def _is_start(line: str) -> bool:
    found = _SEQUENCE.search(line[:LINE_CHARS])
    return found is not None and int(found[1]) <= START_SEQUENCE


def _finding(rule: TrainingRule, line: str) -> Finding:
    return Finding(
        code=f"training.{rule.name}",
        what=rule.words,
        verdict=rule.verdict,
        action=rule.action,
        evidence=cut(line),
        source=rule.source,
    )


def _start_up(line: str) -> Finding:
    return Finding(
        code="training.nccl_timeout",
        what="the very first collective timed out: start or fabric, not one slow node; test NCCL before the next start",
        verdict=Verdict.DEGRADED,
        action=HealthAction.DRAIN_AND_DIAG,
        evidence=cut(line),
        source="PyTorch ProcessGroupNCCL watchdog: SeqNum counts collectives",
    )


def findings_in(text: str) -> Iterator[Finding]:
    """Yields what each line of a text says, in its order; repeats included."""
    for line in text.splitlines():
        found = judge_line(line)
        if found is not None:
            yield found


TRAINING: Final = Source(
    kind=KIND, detect=detect, parse=parse, command=r"torchrun|deepspeed|accelerate launch|train\S*\.py", max_chars=MAX_CHARS
)
