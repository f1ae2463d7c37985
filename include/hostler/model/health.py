"""What health signals say: findings from a source, and what they were judged to mean."""

from dataclasses import dataclass

from hostler.model.enums import HealthAction, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a signal says about an accelerator or a node.

    Attributes:
        code: stable word for the kind of thing, lower case with dots, such as ``xid.79`` or ``ecc.volatile_uncorrectable``.
        what: a sentence with the reading and the limit.
        verdict: what it alone would make of its subject. action: what it alone asks for.
        evidence: the text it was read from, cut to a bearable length.
        source: the document that says so (threshold or table row), such as ``NVIDIA Xid catalogue, row 79``.
    """

    code: str
    what: str
    verdict: Verdict
    action: HealthAction
    evidence: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorHealth:
    """One accelerator as a source tells of it. None: the source does not say."""

    index: int | None
    pci: str | None
    uuid: str | None
    verdict: Verdict
    action: HealthAction
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHealth:
    """What one captured source says: the answer of a parser and of ``hostler explain-health``.

    Attributes:
        source: kind of the source, such as ``nvidia-smi-xml``.
        accelerators: in the order of the source; empty when it tells of none.
        verdict, action: of the node as a whole. reasons: in words, the worst first.
        findings: those of the node that belong to no accelerator.
        unknown: what could not be read, and why; never taken for healthy.
    """

    source: str
    accelerators: tuple[AcceleratorHealth, ...]
    verdict: Verdict
    action: HealthAction
    reasons: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """Verdict with reasons; a healthy one may have none. Reasons name the accelerator, the reading and the limit.

    Attributes:
        action: the rung that is asked for; ``none`` when nothing is to be done, or when what is seen is not confirmed yet.
        is_confirmed: False for a verdict that rests on a single look of a single source: look again before harm.
        evidence: name and value pairs for the ledger: what was seen, by whom, by which document, what would clear it.
        memory: what the next verdict on this node must know, as text; None when there is nothing to keep.
    """

    verdict: Verdict
    reasons: tuple[str, ...] = ()
    action: HealthAction = HealthAction.NONE
    is_confirmed: bool = True
    evidence: tuple[tuple[str, str], ...] = ()
    memory: str | None = None
