"""The verdict on a node from a probe document and from what is remembered of it: the way in for the lifecycle (pure)."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from hostler.health.engine import Decision, Silence, decide, evidence, from_text, observe, probe_looks, to_text, why
from hostler.model.health import HealthReport


def judge(
    document: Mapping[str, Any],
    *,
    accelerator: str,
    accelerator_count: int,
    now: datetime,
    memory: str | None = None,
    silences: Collection[Silence] = (),
) -> HealthReport:
    """Returns the verdict, the rung that is asked for, why, and the memory for the next one.

    Args:
        document: what the probe printed, just now. accelerator: short name that was bought; accelerator_count: how many.
        now: the asker's aware time, not the node's.
        memory: of the last report on this node; None for the first. One that cannot be read begins anew.
    """
    try:
        looks = probe_looks(
            document, accelerator=accelerator, accelerator_count=accelerator_count, taken_at=_taken_at(document)
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        looks = probe_looks({}, accelerator=accelerator, accelerator_count=accelerator_count)
    after = observe(from_text(memory), looks, now, silences=silences)
    return report(decide(after, now, silences=silences), to_text(after))


def report(decision: Decision, memory: str | None) -> HealthReport:
    """Returns the decision as the record that the lifecycle keeps."""
    return HealthReport(
        verdict=decision.verdict,
        reasons=why(decision),
        action=decision.action,
        is_confirmed=decision.is_confirmed,
        evidence=evidence(decision),
        memory=memory,
    )


def _taken_at(document: Mapping[str, Any]) -> str:
    """Returns what tells this document from the last one: the node's uptime, which only grows; empty when it is not told."""
    uptime, boot = document.get("uptime_s"), document.get("boot_id")
    return f"{boot}/{uptime}" if isinstance(uptime, int | float) and boot else ""
