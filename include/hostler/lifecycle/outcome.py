"""What ``converge`` and ``admit`` give back to a step."""

from dataclasses import dataclass

from hostler.model.enums import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The lease has done this phase."""

    lease_id: str
    phase: Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Nothing to do before something changes. Defer, ``watch``, come back.

    Attributes:
        reason: words for a person, such as ``no stock in 3 of 3 zones, next try 12:03``.
        retry_after_s: when it is worth looking again, above 0.
    """

    lease_id: str
    phase: Phase
    reason: str
    retry_after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The lease cannot reach the phase. It is for the teardowns now.

    Attributes:
        reason: first cause, in words, with what the user can do. is_permanent: a retry of the step would not help.
    """

    lease_id: str
    phase: Phase
    reason: str
    is_permanent: bool = True


Outcome = Reached | Waiting | Failed
