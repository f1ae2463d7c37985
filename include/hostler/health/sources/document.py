"""Shows a verdict as the JSON document that ``hostler explain-health`` prints."""

from typing import Any

from hostler.model.health import AcceleratorHealth, Finding, SourceHealth


def document(health: SourceHealth) -> dict[str, Any]:
    """Returns ``source``, ``accelerators``, ``node`` and ``unknown``, ready for ``json.dumps``."""
    return {
        "source": health.source,
        "accelerators": [_accelerator(accelerator) for accelerator in health.accelerators],
        "node": {"verdict": health.verdict.value, "action": health.action.value, "reasons": list(health.reasons)},
        "unknown": list(health.unknown),
    }


def _accelerator(accelerator: AcceleratorHealth) -> dict[str, Any]:
    return {
        "index": accelerator.index,
        "pci": accelerator.pci,
        "uuid": accelerator.uuid,
        "verdict": accelerator.verdict.value,
        "action": accelerator.action.value,
        "findings": [_finding(finding) for finding in accelerator.findings],
    }


def _finding(finding: Finding) -> dict[str, str]:
    return {
        "code": finding.code,
        "what": finding.what,
        "action": finding.action.value,
        "evidence": finding.evidence,
        "source": finding.source,
    }
