"""Moves one lease toward a phase: read, decide (``next_step``), do one round of effects, repeat."""

from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.outcome import Outcome
from hostler.model.enums import Phase


async def converge(fleet: Fleet, lease_id: str, until: Phase, *, holder: str, budget_s: float) -> Outcome:
    """Drives the lease until it has done ``until``, must wait longer than the budget allows, or cannot get there.

    Safe to call again, from anywhere, at any time: each call takes the lease's fence, which stops every older driver.

    Args:
        until: phase to reach; earlier ones are done on the way. ``BACKUP``, ``RELEASE`` and ``RECEIPT`` work on any lease.
        holder: who drives, ``<dag>/<run>/<task>/<try>`` or ``cli/<user>``; shown in every event.
        budget_s: how long this call may take, waits included, in seconds; 0 does what can be done without waiting. One
            round of effects may outlast it by the slowest call in it.

    Returns:
        Reached, Waiting (nothing to do before ``retry_after_s``: defer to ``watch``, then call again) or Failed.

    Raises:
        FenceLostError: a newer driver is in charge: end this step without any further effect.
        LeaseNotFoundError: ``admit`` never ran for it. LedgerUnavailableError: try the step again.
    """
    raise NotImplementedError
