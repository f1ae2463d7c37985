"""Maintenance that was announced: what is seen meanwhile asks for nothing and is not held against the node."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """From ``starts_at`` until before ``ends_at`` (aware) findings whose code begins with one of ``codes`` ask for nothing.

    Attributes:
        codes: beginnings of codes, such as ``nvlink.``; empty: all. who, why: for the record.
    """

    starts_at: datetime
    ends_at: datetime
    who: str
    why: str
    codes: tuple[str, ...] = ()

    def covers(self, code: str, now: datetime) -> bool:
        """True when the silence is on and the code is one of its."""
        return self.starts_at <= now < self.ends_at and (not self.codes or code.startswith(self.codes))


def silence_over(silences: Iterable[Silence], code: str, now: datetime) -> Silence | None:
    """Returns the silence that covers a code now; None when none does."""
    return next((silence for silence in silences if silence.covers(code, now)), None)
