"""Findings -> verdict and action of an accelerator and of its node; one rule for all sources (pure)."""

from collections.abc import Iterable, Sequence
from typing import Final

from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import AcceleratorHealth, Finding, SourceHealth

WORST_FIRST: Final = (Verdict.FAILED, Verdict.UNKNOWN, Verdict.DEGRADED, Verdict.HEALTHY)
EVIDENCE_CHARS: Final = 400
MOST_INDEX: Final = 512
"""No node has more accelerators; a higher index is nonsense."""


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Returns the worst: failed, unknown, degraded, healthy; healthy for none."""
    return min(verdicts, key=WORST_FIRST.index, default=Verdict.HEALTHY)


def highest(actions: Iterable[HealthAction]) -> HealthAction:
    """Returns the highest rung of the ladder; ``none`` for none."""
    return max(actions, key=lambda action: action.rank, default=HealthAction.NONE)


def cut(text: str) -> str:
    """Returns evidence in a bearable length, on one line."""
    line = " ".join(text[: 2 * EVIDENCE_CHARS].split())
    return line if len(line) <= EVIDENCE_CHARS else line[: EVIDENCE_CHARS - 3] + "..."


def unlisted(accelerators: Iterable[AcceleratorHealth]) -> str:
    """Returns the indexes that the list skips, in words; empty when it skips none that its nameless entries cannot be."""
    known = list(accelerators)
    indexes = {one.index for one in known if one.index is not None}
    gaps = skipped(indexes)
    return "" if len(gaps) <= sum(1 for one in known if one.index is None) else words_of(gaps)


def skipped(indexes: Iterable[int]) -> list[int]:
    """Returns the numbers from 0 that are left out below the highest; no more than ``MOST_INDEX``, however high that is."""
    present = set(indexes)
    return [index for index in range(min(max(present, default=-1) + 1, MOST_INDEX)) if index not in present]


def words_of(numbers: Sequence[int]) -> str:
    """Returns ``1, 2, 5`` and so on, cut to a bearable length."""
    return cut(", ".join(str(number) for number in numbers))


def accelerator_health(
    *, index: int | None = None, pci: str | None = None, uuid: str | None = None, findings: Sequence[Finding] = ()
) -> AcceleratorHealth:
    """Returns an accelerator with the worst verdict and the highest action of its findings; healthy without any."""
    return AcceleratorHealth(
        index=index,
        pci=pci,
        uuid=uuid,
        verdict=worst(finding.verdict for finding in findings),
        action=highest(finding.action for finding in findings),
        findings=tuple(findings),
    )


def label(accelerator: AcceleratorHealth, position: int) -> str:
    """Returns how a reason names an accelerator: index and address, else what there is, else its place in the source."""
    address = accelerator.pci or accelerator.uuid
    if accelerator.index is not None:
        return f"accelerator {accelerator.index} ({address})" if address else f"accelerator {accelerator.index}"
    return f"accelerator {address}" if address else f"accelerator at place {position}"


def source_health(
    kind: str,
    accelerators: Sequence[AcceleratorHealth] = (),
    *,
    findings: Sequence[Finding] = (),
    unknown: Sequence[str] = (),
    silent: Verdict = Verdict.UNKNOWN,
) -> SourceHealth:
    """Returns the node's verdict from what was found on it and on its accelerators.

    Args:
        findings: those of the node itself. unknown: what could not be read.
        silent: verdict of a source that tells of no accelerator and found nothing.
    """
    said = [(finding, finding.what) for finding in findings]
    for position, accelerator in enumerate(accelerators):
        said += [(finding, f"{label(accelerator, position)}: {finding.what}") for finding in accelerator.findings]
    verdict = worst(finding.verdict for finding, _ in said)
    if not accelerators and not said:
        verdict = silent
    said.sort(key=lambda pair: (WORST_FIRST.index(pair[0].verdict), -pair[0].action.rank))
    reasons = [reason for finding, reason in said if _is_reason(finding)]
    if verdict is Verdict.UNKNOWN and not reasons:
        reasons = list(unknown) or ["the source says nothing that could be judged"]
    return SourceHealth(
        source=kind,
        accelerators=tuple(accelerators),
        verdict=verdict,
        action=highest(finding.action for finding, _ in said),
        reasons=tuple(dict.fromkeys(reasons)),
        findings=tuple(findings),
        unknown=tuple(dict.fromkeys(unknown)),
    )


def _is_reason(finding: Finding) -> bool:
    """A sound node whose program must be started again has a reason too."""
    return finding.verdict is not Verdict.HEALTHY or finding.action is not HealthAction.NONE


def unreadable(kind: str, why: str) -> SourceHealth:
    """Returns the answer for a text that could not be read at all."""
    return source_health(kind, unknown=(why,))
