"""What a probe's document was judged to mean."""

from dataclasses import dataclass

from hostler.model.enums import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """Verdict with reasons; a healthy one may have none. Reasons name the accelerator, the reading and the limit."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()
