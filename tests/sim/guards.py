"""More of what must hold: guards, recovery, and what a control plane that is away may cost."""

from datetime import timedelta
from itertools import pairwise

from tests.sim.invariants import BrokenError
from tests.sim.world import BEGIN

from hostler.cloud.tags import LEASE
from hostler.model.enums import JobState
from hostler.model.lease import Intent, Job, Node

TOLD_S = 300.0
RETURN_S = 600.0
SLACK_S = 240.0
"""A driver comes back to a lease within this, and a machine takes its time to end."""


def foreign_are_untouched(world):
    """Machines of other owners are never ended."""
    touched = [machine.provider_id for machine in world.foreign if machine.order_at is not None]
    if touched:
        raise BrokenError(f"machines of others were ended: {touched}")


def blast_radius_holds(world):
    """All reconciles together end no more than so many machines in a while."""
    most = world.settings().destroyed_per_tick
    times = sorted(m.order_at for m in world.orphans if m.order_at is not None)
    for index, at in enumerate(times):
        count = sum(1 for other in times[index:] if other < at + timedelta(seconds=60))
        if count > most:
            raise BrokenError(f"{count} machines ended within a minute, the limit is {most}")


def orphans_are_gone(world):
    left = [machine.provider_id for machine in world.orphans if machine.order_at is None]
    if left:
        raise BrokenError(f"at the end our orphans live: {left}")


def rate_holds(world):
    """Calls to the account stay under the configured rate."""
    if world.calls_per_s is None:
        return
    times = [(call.at - BEGIN).total_seconds() for call in world.cloud.calls]
    first = 0
    for index, at in enumerate(times):
        while times[first] < at - 60:
            first += 1
        if index - first + 1 > 60 * world.calls_per_s + world.calls_burst + 1:
            raise BrokenError(f"{index - first + 1} calls in a minute to {at:.0f} s")


def denials_are_told(world):
    """While somebody looks, five minutes of denial at most pass before a person hears of it."""
    weather = world.weather
    if weather.crash_chance or weather.power_cuts or weather.ledger_outages or weather.stall_chance:
        return  # then nobody may have been there to look, or to tell
    events = world.ledger._events
    told = [event for event in events if event.what == "cloud.denied"]
    for begin_s, span_s in weather.denials:
        denied = [c.at for c in world.cloud.calls if c.name == "list" and c.outcome == "CloudAuthError"]
        long = [at for at in denied if at <= BEGIN + timedelta(seconds=begin_s + span_s - TOLD_S)]
        if not long:
            continue
        heard = [at for at, sequence in world.tells if told and sequence >= told[0].sequence]
        first_s = (long[0] - BEGIN).total_seconds()
        if not heard or min(heard) > first_s + TOLD_S:
            raise BrokenError(f"denied since {first_s:.0f} s and nobody was told within {TOLD_S:.0f} s")


def jobs_go_on(world):
    """No failure of a node is told as the workload's own; each attempt goes on from what the last had shipped."""
    for rows in world.ledger._rows.values():
        jobs = sorted((row for row in rows.values() if isinstance(row, Job)), key=lambda job: job.attempt)
        for job in jobs:
            if job.state is JobState.FAILED:
                raise BrokenError(f"{job.job_id} is called failed, no workload failed by itself: {job.error}")
        for before, after in pairwise(jobs):
            if after.resumed_from_step < (before.shipped_step or 0):
                raise BrokenError(f"{after.job_id} begins at {after.resumed_from_step}, shipped was {before.shipped_step}")
    for order in world.nodes.orders:
        row = next(rows["job", order.job_id] for rows in world.ledger._rows.values() if ("job", order.job_id) in rows)
        if (order.restore_step or 0) != row.resumed_from_step:
            raise BrokenError(f"{order.job_id} was started from {order.restore_step}, its row says {row.resumed_from_step}")


def costs_are_true(world):
    """The ledger's costs are those of the machines; each lease ends within its cap when the cloud lets it."""
    weather = world.weather
    for lease_id, rows in world.ledger._rows.items():
        lease = rows["lease", lease_id]
        nodes = {row.provider_id: row for row in rows.values() if isinstance(row, Node)}
        machines = [m for m in world.cloud.machines.values() if m.tags.get(LEASE) == lease_id and m.token]
        for machine in machines:
            node = nodes.get(machine.provider_id)
            if node is None or node.ended_at is None or machine.gone_at is None:
                continue
            lived_s = (machine.gone_at - machine.made_at).total_seconds()
            told_s = (node.ended_at - node.launched_at).total_seconds()
            if told_s < lived_s - 90:
                raise BrokenError(f"{machine.provider_id} cost {lived_s:.0f} s, the ledger says {told_s:.0f} s")
        _check_cap(lease, machines, weather)


def _check_cap(lease, machines, weather):
    is_hindered = weather.refuses_end_s or weather.denials or weather.ledger_outages or weather.lags > 1
    is_slow = weather.calls_per_s is not None or weather.crash_chance or any(m.is_late for m in machines)
    is_blind = weather.power_cuts and (weather.freezes or weather.network_cuts)
    if is_hindered or is_slow or is_blind or any(weather.chances.values()):
        return
    spent = sum(_usd(machine) for machine in machines)
    rate = sum(machine.kind.price(machine.capacity_type) for machine in machines[-lease.request.node_count :])
    if spent > float(lease.request.max_cost_usd) + float(rate) * SLACK_S / 3600:
        raise BrokenError(f"lease {lease.lease_id} cost {spent:.2f} USD, its cap is {lease.request.max_cost_usd}")


def _usd(machine):
    end = machine.gone_at or machine.made_at
    return float(machine.kind.price(machine.capacity_type)) * (end - machine.made_at).total_seconds() / 3600


def outages_kill_nothing(world):
    """After the control plane was off, whatever was unattended has time to be attached to again."""
    idle = ("unattended for", "nobody has driven", "over and not let go")
    ended = [e for e in world.ledger._events if e.what == "lease.draining" and e.why.startswith(idle)]
    for begin, back in world.power_cuts:
        if back - begin < 900:
            continue
        for event in ended:
            at = (event.at - BEGIN).total_seconds()
            if back <= at <= back + RETURN_S:
                raise BrokenError(f"lease {event.lease_id} was let go {at - back:.0f} s after the control plane came back")


def purchases_are_watched(world):
    """Nothing is bought while no reconcile was free to act for long."""
    limit_s = world.settings().reconcile_stale_s
    times = sorted(
        (row.written_at - BEGIN).total_seconds()
        for rows in world.ledger._rows.values()
        for row in rows.values()
        if isinstance(row, Intent)
    )
    for at in times:
        # A ledger that has seen no reconcile yet counts from its first purchase on.
        last = max([s for s in world.reconciled if s <= at], default=times[0])
        if at - last > limit_s + SLACK_S + 400:
            raise BrokenError(f"bought at {at:.0f} s, {at - last:.0f} s after the last reconcile")


ALWAYS_TOO = [foreign_are_untouched]
AT_END_TOO = [
    blast_radius_holds,
    orphans_are_gone,
    rate_holds,
    denials_are_told,
    jobs_go_on,
    costs_are_true,
    outages_kill_nothing,
    purchases_are_watched,
]
