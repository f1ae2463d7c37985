"""The verdict on a node from one probe document alone (pure); over several looks, see ``hostler.health.engine``.

``failed``: do not give it work. ``degraded``: it works, with a reason to look. ``unknown``: a signal that is needed is missing,
stale or malformed; never taken for healthy. The worst wins: failed, then unknown, then degraded.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from hostler.health.catalog import LIMITS
from hostler.health.probe_findings import examine, worst
from hostler.model.enums import Verdict
from hostler.model.health import HealthReport


def judge(
    document: Mapping[str, Any],
    *,
    accelerator: str,
    accelerator_count: int,
    now: datetime | None = None,
    max_age_s: float = LIMITS["document_age_s"].value,
) -> HealthReport:
    """Returns the verdict on a node.

    Args:
        document: what the probe printed. When it was received, in the asker's time, may be in ``received_at`` (ISO 8601);
            else the node's own ``wall_clock_at`` dates it.
        accelerator: short name that the node was bought with. accelerator_count: how many it must have.
        now: aware time to judge the document's age by; None: its age is not judged.
        max_age_s: above this age the document says nothing of the node any more.
    """
    health = examine(document, accelerator=accelerator, accelerator_count=accelerator_count)
    old = age_problem(document, now, max_age_s) if now is not None else None
    if old is None:
        return HealthReport(verdict=health.verdict, reasons=health.reasons, action=health.action)
    verdict = worst((health.verdict, Verdict.UNKNOWN))
    return HealthReport(verdict=verdict, reasons=(*health.reasons, old), action=health.action)


def age_problem(document: Mapping[str, Any], now: datetime, max_age_s: float) -> str | None:
    """Returns why the document's age makes it worthless, in words; None when it is fresh."""
    stamp = document.get("received_at") or document.get("wall_clock_at")
    if not isinstance(stamp, str):
        return "the probe document has no time"
    try:
        at = datetime.fromisoformat(stamp)
    except ValueError:
        return f"the probe document has no readable time: {stamp[:40]!r}"
    age_s = (now - (at if at.tzinfo else at.replace(tzinfo=UTC))).total_seconds()
    if age_s > max_age_s:
        return f"the probe document is {age_s:.0f} s old, limit {max_age_s:.0f} s"
    if age_s < -max_age_s:
        return f"the probe document is dated {-age_s:.0f} s ahead of now: the node's clock is wrong"
    return None
