"""Moves one lease toward a phase: read, decide (``next_step``), do one round of effects, repeat."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta

from hostler.ledger.errors import StaleWriteError
from hostler.ledger.port import StockOut
from hostler.lifecycle import backup, boot, ending, gang, launch, look, marks, plan, release, run, setup, validate
from hostler.lifecycle.charge import Charge, all_of
from hostler.lifecycle.events import shorten
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.next_step import DOWNWARD, OVER, next_step, words_of_end
from hostler.lifecycle.outcome import Failed, Outcome, Reached, Waiting
from hostler.lifecycle.receipt import write_receipt
from hostler.lifecycle.step import Done, Effect, Fail, Kind, Memory, Step, Wait
from hostler.model.enums import LeaseState, Phase
from hostler.model.lease import LeaseView

EFFECTS: dict[Kind, Callable[[Charge, Effect], Awaitable[None]]] = {
    Kind.PLAN: plan.make_plan,
    Kind.GRANT: plan.grant,
    Kind.LOOK: look.look,
    Kind.OPEN_INTENTS: launch.open_intents,
    Kind.WITHDRAW: launch.withdraw,
    Kind.LAUNCH: launch.launch,
    Kind.BOOT: boot.check_boot,
    Kind.START_SETUP: setup.start_setup,
    Kind.POLL_SETUP: setup.poll_setup,
    Kind.PROBE: validate.probe,
    Kind.END_NODE: ending.end_node,
    Kind.OPEN_JOB: run.open_job,
    Kind.ATTACH_JOB: run.attach_job,
    Kind.POLL_JOB: run.poll_job,
    Kind.BREAK_JOB: gang.break_job,
    Kind.TEND: run.tend,
    Kind.SEAL: backup.seal,
    Kind.DRAIN: release.drain,
    Kind.FINISH: release.finish,
    Kind.MARK: marks.mark,
    Kind.FAIL: marks.fail,
}

LONGEST_WAIT_S = 300.0
"""A wait is never announced longer: limits, releases and purchases stopped or resumed are seen within it."""

MOST_STALE_ROUNDS = 50
"""Another writer may come first now and then, not for ever: then the step is retried from its beginning."""

DRIVEN = "driven/"
"""Prefix of the ledger's note of when a lease was last driven; ``reap`` finds leases that nobody drives by it."""


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
    if until is Phase.RECEIPT:
        return await _receipt(fleet, lease_id)
    over = await _is_over(fleet, lease_id, until)
    if over is not None:
        return over
    charge = await _take(fleet, lease_id, holder)
    ends_at = charge.now() + timedelta(seconds=budget_s)
    stale = 0
    while True:
        try:
            now = await _read(charge)
            outcome = await _round(charge, until, now, ends_at)
        except StaleWriteError:
            stale += 1
            if stale > MOST_STALE_ROUNDS:
                raise
            continue
        if outcome is not None:
            return outcome


async def _is_over(fleet: Fleet, lease_id: str, until: Phase) -> Failed | None:
    """Returns the failure of a step on the way up of a lease that is let go: it must not take the fence from the release."""
    lease = (await fleet.offload(lambda: fleet.ledger.view(lease_id))).lease
    if until in DOWNWARD or lease.state not in OVER:
        return None
    return Failed(lease_id=lease_id, phase=until, reason=words_of_end(lease))


async def _take(fleet: Fleet, lease_id: str, holder: str) -> Charge:
    """Takes the fence, and says that somebody drives the lease."""
    fleet.crash("fence:before")
    fence = await fleet.offload(lambda: fleet.ledger.take_fence(lease_id, holder))
    fleet.crash("fence:after")
    view = await fleet.offload(lambda: fleet.ledger.view(lease_id))
    caps = fleet.settings.caps_of(view.lease.request.tenant)
    charge = Charge(fleet=fleet, fence=fence, view=view, memory=Memory(fence=fence.token, caps=caps))
    driven_at = (await charge.read_clock()).isoformat()
    await fleet.offload(lambda: fleet.ledger.set_meta(f"{DRIVEN}{lease_id}", driven_at))
    if view.lease.state is LeaseState.UNATTENDED:
        lease = replace(view.lease, state=LeaseState.ACTIVE, unattended_since=None)
        await charge.write("attended", [lease], [charge.event("lease.attended", f"{holder} drives it again")])
    return charge


async def _read(charge: Charge) -> datetime:
    """Reads rows and shared facts anew, in one go beside the loop; returns the ledger's clock of then."""
    ledger, memory = charge.fleet.ledger, charge.memory

    def _all() -> tuple[LeaseView, tuple[StockOut, ...], bool, datetime]:
        return ledger.view(charge.fence.lease_id), ledger.stock_outs(), ledger.is_spending_stopped(), ledger.now()

    charge.view, memory.stock_outs, memory.is_spending_stopped, now = await charge.fleet.offload(_all)
    charge.clock.set(now)
    return now


async def _round(charge: Charge, until: Phase, now: datetime, ends_at: datetime) -> Outcome | None:
    """Decides once and does what was decided; returns the outcome when there is one, None to go on."""
    lease_id = charge.fence.lease_id
    steps = next_step(charge.view, now, charge.fleet.settings, until, charge.memory)
    match steps[0]:
        case Done():
            return Reached(lease_id=lease_id, phase=until)
        case Fail(reason=reason, is_permanent=is_permanent):
            return Failed(lease_id=lease_id, phase=until, reason=reason, is_permanent=is_permanent)
    failed = next((step for step in steps if isinstance(step, Fail)), None)
    if failed is not None:
        return Failed(lease_id=lease_id, phase=until, reason=failed.reason, is_permanent=failed.is_permanent)
    effects = [step for step in steps if isinstance(step, Effect)]
    if effects:
        await all_of([EFFECTS[effect.kind](charge, effect) for effect in effects])
        return None
    return await _wait(charge, until, steps, ends_at)


async def _wait(charge: Charge, until: Phase, steps: tuple[Step, ...], ends_at: datetime) -> Outcome | None:
    """Sleeps when the budget allows, else says what the lease waits for."""
    waits = [step for step in steps if isinstance(step, Wait)]
    pause_s = min(LONGEST_WAIT_S, *(max(0.5, wait.retry_after_s) for wait in waits))
    if charge.now() + timedelta(seconds=pause_s) <= ends_at:
        await charge.fleet.sleep(pause_s)
        return None
    reason = _words(waits)
    await marks.note_wait(charge, reason)
    return Waiting(lease_id=charge.fence.lease_id, phase=until, reason=reason, retry_after_s=pause_s)


def _words(waits: list[Wait]) -> str:
    """Returns the distinct reasons, the first three in full."""
    reasons = list(dict.fromkeys(wait.reason for wait in waits))
    more = f" (and {len(reasons) - 3} more)" if len(reasons) > 3 else ""  # noqa: PLR2004 - as the docstring says
    return shorten("; ".join(reasons[:3]) + more)


async def _receipt(fleet: Fleet, lease_id: str) -> Outcome:
    receipt = await fleet.offload(lambda: write_receipt(fleet, lease_id))
    if receipt.is_complete:
        return Reached(lease_id=lease_id, phase=Phase.RECEIPT)
    # A lease that is still being let go may yet become complete: worth a retry.
    view = await fleet.offload(lambda: fleet.ledger.view(lease_id))
    is_over = view.lease.state is LeaseState.RELEASED
    return Failed(lease_id=lease_id, phase=Phase.RECEIPT, reason="; ".join(receipt.reasons), is_permanent=is_over)
