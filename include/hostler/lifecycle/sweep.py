"""The cost sweep: what is there and what it costs; then marks and ends what serves nobody, as far as the policy goes.

It removes volumes and addresses of ours that hang on nothing, and releases leases whose nodes have been stopped for too long.
Orphaned machines it only names: ``reap`` ends those. Foreign things it lists and never touches.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from hostler.cloud.errors import CloudError, NodeNotFoundError
from hostler.cloud.inventory import SupportsInventory, Thing, ThingKind
from hostler.cloud.tags import LEASE
from hostler.ledger.errors import FenceLostError, LedgerError
from hostler.lifecycle.converge import converge
from hostler.lifecycle.events import make_event, words_of
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.policies import Guard, GuardBatch, GuardVerdict, Housekeeping, SweepPolicy
from hostler.lifecycle.release import begin_release
from hostler.lifecycle.slots import live_nodes
from hostler.lifecycle.standing_orders import ask_guard, mark, marked_since, unmark, why_only_report
from hostler.metrics.cost import is_billing
from hostler.metrics.sweep import CostReport, Owner, SweepLine, report_costs
from hostler.model.enums import LeaseState, NodeState, Phase
from hostler.model.lease import LeaseView

MARK: Final = "sweep/"
MARKED: Final = "sweep_marked"
LAST_COUNT: Final = "sweep_last_count"
TOLD_S: Final = 31 * 86400
"""Leases that ended this long ago are still told of."""

TICK_S: Final = 60
RELEASE_BUDGET_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFinding:
    """Something that costs and serves nobody. ``action``: ``none report mark waits removed released refused``."""

    subject: str
    action: str
    reason: str
    usd_per_month: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOutcome:
    """What one sweep saw and did. ``errors``: regions that could not be listed; nothing is ended then."""

    costs: CostReport
    findings: tuple[SweepFinding, ...]
    report_only: str | None
    guard: GuardVerdict | None
    errors: tuple[str, ...]


async def sweep(fleet: Fleet, *, who: str, guard: Guard, dry_run: bool) -> SweepOutcome:
    """Lists, prices and explains everything; marks and ends candidates by policy, once the checks of the inventory held.

    Args:
        guard: judges the inventory before anything is marked or ended; when it refuses, nothing is.
    """
    now = await fleet.offload(fleet.ledger.now)
    run = _Sweep(fleet=fleet, who=who, now=now, policy=fleet.settings.cost_sweep)
    await run.look()
    run.report_only = await fleet.offload(lambda: why_only_report(fleet, dry_run=dry_run))
    candidates = run.candidates()
    verdict = None
    if candidates:
        batch = run.batch()
        verdict = await fleet.offload(lambda: ask_guard(fleet, guard, batch, who=who, step="cost_sweep"))
    findings = [await run.treat(one, verdict) for one in candidates]
    if run.report_only is None and (verdict is None or not verdict.problems):
        await fleet.offload(lambda: run.remember(candidates))
    return SweepOutcome(
        costs=run.costs, findings=tuple(findings), report_only=run.report_only, guard=verdict, errors=tuple(run.errors)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """``line``: an orphaned thing. ``view``: a lease whose nodes are stopped. Exactly one of them is there."""

    subject: str
    reason: str
    grace_s: float
    line: SweepLine | None = None
    view: LeaseView | None = None


@dataclass(slots=True, kw_only=True)
class _Sweep:
    """One sweep under way. ``ended``: things ended so far, held against ``destroyed_per_tick``."""

    fleet: Fleet
    who: str
    now: datetime
    policy: SweepPolicy
    views: list[LeaseView] = field(default_factory=list)
    things: list[tuple[Thing, datetime]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    report_only: str | None = None
    ended: int = 0
    costs: CostReport = field(init=False)

    async def look(self) -> None:
        """Lists every region, then reads the ledger: what was bought meanwhile is known to it."""
        for name, driver in sorted(self.fleet.drivers.items()):
            if not isinstance(driver, SupportsInventory):
                self.errors.append(f"{name}: its driver cannot list an inventory")
                continue
            for region in driver.regions:
                try:
                    found = await self.fleet.offload(lambda driver=driver, region=region: driver.list_inventory(region))  # type: ignore[misc]
                except CloudError as error:
                    self.errors.append(f"{name}/{region}: {words_of(error)}")
                    continue
                listed_at = await self.fleet.offload(self.fleet.ledger.now)
                self.things += [(thing, listed_at) for thing in found]
        self.views = await self.fleet.offload(self._read)
        self.costs = report_costs(
            [thing for thing, _ in self.things], self.views, now=self.now, deployment=self.fleet.settings.deployment
        )

    def _read(self) -> list[LeaseView]:
        """Every lease that something in the inventory may name, and those that ended not long ago."""
        named = {thing.tags.get(LEASE) for thing, _ in self.things}
        oldest = self.now - timedelta(seconds=TOLD_S)
        leases = [
            lease
            for lease in self.fleet.ledger.list_leases()
            if lease.state is not LeaseState.RELEASED or lease.lease_id in named or (lease.released_at or self.now) > oldest
        ]
        return [self.fleet.ledger.view(lease.lease_id) for lease in leases]

    def candidates(self) -> list[_Candidate]:
        """Returns what serves nobody: stopped leases first, then things, the dearest first."""
        things = [
            _Candidate(subject=line.thing.key, reason=f"{line.thing.words}: {line.why}", grace_s=self.policy.grace_s, line=line)
            for line in self.costs.of(Owner.ORPHAN)
        ]
        leases = [found for view in self.views if (found := self._stopped(view)) is not None]
        return [*leases, *things]

    def _stopped(self, view: LeaseView) -> _Candidate | None:
        """A lease all of whose nodes have been stopped for too long; their disks cost on."""
        nodes = live_nodes(view)
        is_open = view.lease.state in {LeaseState.GRANTED, LeaseState.ACTIVE, LeaseState.UNATTENDED}
        if not nodes or not is_open or any(node.state is not NodeState.STOPPED or node.stopped_at is None for node in nodes):
            return None
        since = max(node.stopped_at for node in nodes if node.stopped_at is not None)
        stopped_s = (self.now - since).total_seconds()
        if stopped_s < self.policy.stopped_after_s:
            return None
        words = f"all {len(nodes)} nodes stopped for {stopped_s:.0f} s, cost_sweep.stopped_after_s is {self.policy.stopped_after_s:.0f}"
        return _Candidate(subject=view.lease.lease_id, reason=words, grace_s=TICK_S, view=view)

    def batch(self) -> GuardBatch:
        """Returns the inventory as the guard takes it, and what it must hold."""
        lines = {line.thing.key: line for line in self.costs.lines}
        rows = [inventory_row(lines[thing.key], listed_at, self.now) for thing, listed_at in self.things]
        places = [f"{name}/{region}" for name, driver in self.fleet.drivers.items() for region in driver.regions]
        known = [
            node.provider_id
            for view in self.views
            for node in view.nodes
            if is_billing(node)
            and node.state is not NodeState.TERMINATING
            and (self.now - node.launched_at).total_seconds() > TICK_S * 2
        ]
        last = self.fleet.ledger.get_meta(LAST_COUNT)
        facts = {"errors": list(self.errors), "places": places, "known": known, "last_count": int(last) if last else 0}
        return GuardBatch(kind="inventory", rows=rows, facts=facts)

    async def treat(  # noqa: PLR0911 - one return a reason reads best
        self, one: _Candidate, verdict: GuardVerdict | None
    ) -> SweepFinding:
        """Goes as far with a candidate as everything allows."""
        key = f"{MARK}{one.subject}"
        if one.line is not None and (one.line.thing.kind is ThingKind.MACHINE or one.line.thing.attached_to is not None):
            return self._finding(one, "report", "hostler_fleet_reconcile ends orphaned machines, and their disks with them")
        if verdict is None or verdict.problems:
            return self._finding(one, "none", f"left alone: checks failed: {'; '.join(verdict.problems) if verdict else ''}")
        if self.report_only is not None or self.policy.mode is Housekeeping.REPORT:
            return self._finding(one, "report", f"left alone: {self.report_only or 'cost_sweep.mode is report'}")
        since = await self.fleet.offload(lambda: marked_since(self.fleet, key))
        if since is None:
            await self.fleet.offload(lambda: self._mark(one, key))
            return self._finding(one, "mark", "marked")
        marked_s = (self.now - since).total_seconds()
        if self.policy.mode is Housekeeping.MARK or marked_s < one.grace_s:
            return self._finding(one, "waits", f"marked for {marked_s:.0f} s, grace is {one.grace_s:.0f} s")
        count = len(live_nodes(one.view)) if one.view is not None else 1
        most = self.fleet.settings.destroyed_per_tick
        if self.ended + count > most:
            return self._finding(one, "waits", f"limits.destroyed_per_tick is {most}, {self.ended} used, {count} needed")
        self.ended += count
        return await (self._release(one) if one.view is not None else self._remove(one))

    def _mark(self, one: _Candidate, key: str) -> None:
        mark(self.fleet, key, self.now)
        lease_id = one.view.lease.lease_id if one.view is not None else None
        self.fleet.ledger.append_events([make_event(lease_id, self.who, "cost_sweep.marked", one.reason, subject=one.subject)])

    async def _remove(self, one: _Candidate) -> SweepFinding:
        """Who, what, why and the evidence first; then the order. The driver looks once more before it obeys."""
        assert one.line is not None  # noqa: S101 - the caller looked
        thing = one.line.thing
        driver = self.fleet.drivers[thing.cloud]
        event = make_event(
            None,
            self.who,
            "cost_sweep.ending",
            one.reason,
            subject=thing.key,
            kind=thing.kind,
            usd_per_month=one.line.usd_per_month,
        )
        await self.fleet.offload(lambda: self.fleet.ledger.append_events([event]))
        assert isinstance(driver, SupportsInventory)  # noqa: S101 - it listed the thing
        try:
            await self.fleet.offload(lambda: driver.remove_unattached(thing.region, thing.kind, thing.thing_id))
        except NodeNotFoundError as error:
            return self._finding(one, "removed" if type(error) is NodeNotFoundError else "refused", words_of(error))
        except CloudError as error:
            return self._finding(one, "refused", words_of(error))
        return self._finding(one, "removed", "removed")

    async def _release(self, one: _Candidate) -> SweepFinding:
        assert one.view is not None  # noqa: S101 - the caller looked
        lease_id = one.view.lease.lease_id
        event = make_event(lease_id, self.who, "cost_sweep.ending", one.reason, nodes=len(live_nodes(one.view)))
        await self.fleet.offload(lambda: self.fleet.ledger.append_events([event]))
        try:
            await self.fleet.offload(lambda: begin_release(self.fleet, lease_id, who=self.who, reason=one.reason))
            await converge(self.fleet, lease_id, Phase.RELEASE, holder=self.who, budget_s=RELEASE_BUDGET_S)
        except (FenceLostError, LedgerError) as error:
            return self._finding(one, "released", f"the release goes on elsewhere: {error}")
        return self._finding(one, "released", "its release has begun")

    def remember(self, candidates: Sequence[_Candidate]) -> None:
        """Keeps the size of the inventory for the next checks, and takes back the marks of what is no candidate any more."""
        ledger = self.fleet.ledger
        now = {one.subject for one in candidates}
        before = set((ledger.get_meta(MARKED) or "").split())
        # A region that could not be listed says nothing of what was marked there.
        if not self.errors:
            ledger.set_meta(LAST_COUNT, str(len(self.things)))
            unmark(self.fleet, *(f"{MARK}{subject}" for subject in before - now))
            before = set()
        ledger.set_meta(MARKED, " ".join(sorted(now | before)))

    def _finding(self, one: _Candidate, action: str, words: str) -> SweepFinding:
        usd = one.line.usd_per_month if one.line is not None else None
        return SweepFinding(subject=one.subject, action=action, reason=f"{one.reason}; {words}", usd_per_month=usd)


def inventory_row(line: SweepLine, listed_at: datetime, now: datetime) -> dict[str, Any]:
    """Returns a line in numbers and words, as the guard takes it. Pure."""
    thing = line.thing
    return {
        "key": thing.key,
        "thing_id": thing.thing_id,
        "place": f"{thing.cloud}/{thing.region}",
        "kind": thing.kind.value,
        "owner": line.owner.value,
        "age_s": abs((now - listed_at).total_seconds()),
        "size_gib": float(thing.size_gib) if thing.size_gib is not None else None,
        "usd_per_month": float(line.usd_per_month) if line.usd_per_month is not None else None,
        "is_orphan": None if line.owner is Owner.FOREIGN else float(line.owner is Owner.ORPHAN),
    }
