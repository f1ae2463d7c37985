"""Thresholds and throttle bits."""

from dataclasses import dataclass
from typing import Final

from hostler.health.catalog.tables import rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One threshold: its value in ``unit``, which side is good, where it comes from, and when that was read.

    Attributes:
        good: ``up_to`` (value and less), ``below`` (only less), ``from`` (value and more).
    """

    name: str
    value: float
    unit: str
    good: str
    words: str
    source: str
    read_on: str

    def is_broken_by(self, reading: float) -> bool:
        """True when the reading is on the bad side."""
        if self.good == "from":
            return reading < self.value
        return reading > self.value if self.good == "up_to" else reading >= self.value


LIMITS: Final[dict[str, Limit]] = {
    row["name"]: Limit(
        name=row["name"],
        value=float(row["value"]),
        unit=row["unit"],
        good=row["good"],
        words=row["words"],
        source=row["source"],
        read_on=row["read_on"],
    )
    for row in rows("limits")
}

THROTTLE_REASONS: Final[dict[int, str]] = {int(row["bit"], 16): row["words"] for row in rows("throttle_bits")}
"""Bit -> words, all bits."""

BAD_THROTTLE_BITS: Final = sum(int(row["bit"], 16) for row in rows("throttle_bits") if row["is_bad"] == "yes")
"""The other bits (idle, set clocks, power cap, sync boost, display) are normal."""


def bad_throttles(mask: int) -> tuple[str, ...]:
    """Returns the words of the mask's bad bits, lowest first; empty when it has only normal ones. Bits are tested one by one."""
    return tuple(words for bit, words in sorted(THROTTLE_REASONS.items()) if mask & bit & BAD_THROTTLE_BITS)
