"""Ends leases whose nodes are proved idle: looked at, checked, marked, looked at again, then released as any other."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from hostler.ledger.errors import FenceLostError, LedgerError
from hostler.lifecycle.converge import DRIVEN, converge
from hostler.lifecycle.events import make_event
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.policies import Guard, GuardBatch, GuardVerdict, Housekeeping, ScaleDownPolicy
from hostler.lifecycle.release import begin_release
from hostler.lifecycle.scale import Idleness, judge_lease
from hostler.lifecycle.slots import live_nodes
from hostler.lifecycle.standing_orders import ask_guard, mark, marked_since, unmark, why_only_report
from hostler.metrics.cost import rate_usd_per_hour
from hostler.model.enums import LeaseState, NodeState, Phase
from hostler.model.lease import LeaseView, Node
from hostler.reach.port import LoadRecord, NodeLoad, ReachError

MARK: Final = "idle/"
AT_ONCE: Final = 64
"""Nodes that are asked side by side."""

RELEASE_BUDGET_S: Final = 60.0
"""How long one release is stayed with; what is left is ``hostler_fleet_reconcile``'s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleFinding:
    """One lease: ``action`` is ``none``, ``report``, ``mark``, ``waits``, ``ending`` or ``ended``; ``node_count`` of live nodes."""

    lease_id: str
    tenant: str
    action: str
    reason: str
    node_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleReport:
    """What one run saw and did.

    Attributes:
        report_only: why nothing was ended; None when it was free to act. guard: what the checks said; None: nothing was idle.
    """

    findings: tuple[ScaleFinding, ...]
    report_only: str | None
    guard: GuardVerdict | None

    @property
    def ended(self) -> tuple[ScaleFinding, ...]:
        """Leases whose release was begun."""
        return tuple(one for one in self.findings if one.action in {"ending", "ended"})


async def scale_down(fleet: Fleet, *, who: str, guard: Guard, dry_run: bool) -> ScaleReport:
    """Looks at every lease, and ends those proved idle as far as their tenant's policy goes.

    Args:
        guard: judges the telemetry before anything is marked or ended; when it refuses, nothing is.
    """
    run = _Run(fleet=fleet, who=who, now=await fleet.offload(fleet.ledger.now))
    report_only = await fleet.offload(lambda: why_only_report(fleet, dry_run=dry_run))
    judged = await run.judge_all()
    idle = sorted((one for one in judged if one.is_idle), key=lambda one: one.order)
    busy = [one for one in judged if not one.is_idle]
    findings = [run.finding(one, "none", one.reason) for one in busy]
    if report_only is None:
        await fleet.offload(lambda: unmark(fleet, *(f"{MARK}{one.view.lease.lease_id}" for one in busy)))
    verdict = None
    if idle:
        batch = GuardBatch(kind="telemetry", rows=run.rows(judged), facts={"node_count": len(run.asked)})
        verdict = await fleet.offload(lambda: ask_guard(fleet, guard, batch, who=who, step="scale_down"))
    for one in idle:
        findings.append(await run.treat(one, report_only, verdict))
    return ScaleReport(findings=tuple(findings), report_only=report_only, guard=verdict)


@dataclass(slots=True, kw_only=True)
class _Run:
    """One run under way. ``ended``: nodes whose release was begun, held against ``destroyed_per_tick``."""

    fleet: Fleet
    who: str
    now: datetime
    loads: dict[str, LoadRecord | str] = field(default_factory=dict)
    asked: list[Node] = field(default_factory=list)
    ended: int = 0

    def policy(self, view: LeaseView) -> ScaleDownPolicy:
        return self.fleet.settings.scale_down.get(view.lease.request.tenant, ScaleDownPolicy())

    async def judge_all(self) -> list[Idleness]:
        """Asks every node that may answer, and judges every open lease."""
        views, driven = await self.fleet.offload(self._read)
        wanted = [(node, self.policy(view).idle_after_s) for view in views for node in _askable(view)]
        self.asked = [node for node, _ in wanted]
        self.loads = await read_loads(self.fleet, wanted)
        return [
            judge_lease(view, self.loads, self.policy(view), self.now, driven_s)
            for view, driven_s in zip(views, driven, strict=True)
        ]

    def _read(self) -> tuple[list[LeaseView], list[float]]:
        ledger = self.fleet.ledger
        leases = ledger.list_leases(LeaseState.GRANTED, LeaseState.ACTIVE, LeaseState.UNATTENDED)
        views = [ledger.view(lease.lease_id) for lease in leases]
        return views, [self._driven_s(view) for view in views]

    def _driven_s(self, view: LeaseView) -> float:
        driven = self.fleet.ledger.get_meta(f"{DRIVEN}{view.lease.lease_id}")
        return (self.now - (datetime.fromisoformat(driven) if driven else view.lease.created_at)).total_seconds()

    def finding(self, one: Idleness, action: str, reason: str) -> ScaleFinding:
        lease = one.view.lease
        count = len(live_nodes(one.view))
        return ScaleFinding(
            lease_id=lease.lease_id, tenant=lease.request.tenant, action=action, reason=reason, node_count=count
        )

    def rows(self, judged: Sequence[Idleness]) -> list[dict[str, Any]]:
        """Returns the telemetry as the guard takes it: one row a node."""
        windows = {node.node_name: self.policy(one.view).idle_after_s for one in judged for node in live_nodes(one.view)}
        return [telemetry_row(node, self.loads[node.node_name], windows[node.node_name]) for node in self.asked]

    async def treat(self, one: Idleness, report_only: str | None, verdict: GuardVerdict | None) -> ScaleFinding:
        """Goes as far with an idle lease as everything allows."""
        policy, key = self.policy(one.view), f"{MARK}{one.view.lease.lease_id}"
        if verdict is None or verdict.problems:
            words = "; ".join(verdict.problems) if verdict else "not checked"
            return self.finding(one, "none", f"{one.reason}; left alone: checks failed: {words}")
        if report_only is not None or policy.mode is Housekeeping.REPORT:
            return self.finding(one, "report", f"{one.reason}; left alone: {report_only or 'scale_down.mode is report'}")
        since = await self.fleet.offload(lambda: marked_since(self.fleet, key))
        if since is None:
            await self.fleet.offload(lambda: self._mark(one, key))
            return self.finding(one, "mark", f"{one.reason}; marked")
        marked_s = (self.now - since).total_seconds()
        if policy.mode is Housekeeping.MARK or marked_s < policy.grace_s:
            return self.finding(one, "waits", f"{one.reason}; marked for {marked_s:.0f} s, grace is {policy.grace_s:.0f} s")
        count, most = len(live_nodes(one.view)), self.fleet.settings.destroyed_per_tick
        if self.ended + count > most:
            lease_id = one.view.lease.lease_id
            words = (
                f"limits.destroyed_per_tick is {most}, {self.ended} used, it has {count} nodes: `hostler release {lease_id}`"
            )
            return self.finding(one, "waits", f"{one.reason}; {words}")
        return await self._end(one, key, count)

    def _mark(self, one: Idleness, key: str) -> None:
        mark(self.fleet, key, self.now)
        event = make_event(one.view.lease.lease_id, self.who, "scale_down.marked", one.reason)
        self.fleet.ledger.append_events([event])

    async def _end(self, one: Idleness, key: str, count: int) -> ScaleFinding:
        """Looks once more, at rows and nodes; then who, what, why and the evidence; then the lease's normal release."""
        lease_id = one.view.lease.lease_id
        again = await self._again(lease_id)
        if not again.is_idle:
            await self.fleet.offload(lambda: unmark(self.fleet, key))
            return self.finding(again, "none", f"no longer idle at the last look: {again.reason}")
        self.ended += count
        event = make_event(
            lease_id,
            self.who,
            "scale_down.ending",
            again.reason,
            nodes=count,
            usd_per_hour=rate_usd_per_hour(again.view),
            tenant=again.view.lease.request.tenant,
        )
        await self.fleet.offload(lambda: self.fleet.ledger.append_events([event]))
        reason = f"idle: {again.reason}"
        try:
            await self.fleet.offload(lambda: begin_release(self.fleet, lease_id, who=self.who, reason=reason))
            outcome = await converge(self.fleet, lease_id, Phase.RELEASE, holder=self.who, budget_s=RELEASE_BUDGET_S)
        except (FenceLostError, LedgerError) as error:
            return self.finding(again, "ending", f"{again.reason}; the release goes on elsewhere: {error}")
        word = "ended" if type(outcome).__name__ == "Reached" else "ending"
        return self.finding(again, word, again.reason)

    async def _again(self, lease_id: str) -> Idleness:
        view = await self.fleet.offload(lambda: self.fleet.ledger.view(lease_id))
        policy = self.policy(view)
        loads = await read_loads(self.fleet, [(node, policy.idle_after_s) for node in _askable(view)])
        now = await self.fleet.offload(self.fleet.ledger.now)
        return judge_lease(view, loads, policy, now, self._driven_s(view))


def _askable(view: LeaseView) -> list[Node]:
    return [node for node in live_nodes(view) if node.state is NodeState.INITIALIZED]


async def read_loads(fleet: Fleet, wanted: Sequence[tuple[Node, float]]) -> dict[str, LoadRecord | str]:
    """Asks nodes what they did; a node that does not tell is told of in words, by node name."""
    nodes, gate = fleet.nodes, asyncio.Semaphore(AT_ONCE)
    if not isinstance(nodes, NodeLoad):
        return {node.node_name: "its agent keeps no samples" for node, _ in wanted}

    async def one(node: Node, window_s: float) -> LoadRecord | str:
        async with gate:
            try:
                return await nodes.read_load(node, window_s)
            except ReachError as error:
                return str(error)

    answers = await asyncio.gather(*(one(node, window_s) for node, window_s in wanted))
    return {node.node_name: answer for (node, _), answer in zip(wanted, answers, strict=True)}


def telemetry_row(node: Node, record: LoadRecord | str, window_s: float) -> dict[str, Any]:
    """Returns a node's telemetry in numbers; None where there is nothing to tell. Pure."""
    samples = () if isinstance(record, str) else tuple(one for one in record.samples if one.age_s <= window_s)
    every_s = 1.0 if isinstance(record, str) else record.every_s
    ratios = [ratio for one in samples for ratio in one.utilisation_ratios if ratio is not None]
    working = [one for one in samples if one.job_count]
    return {
        "node": node.node_name,
        "provider_id": node.provider_id,
        "is_answered": int(not isinstance(record, str)),
        "newest_age_s": samples[-1].age_s if samples else None,
        "coverage_ratio": min(1.0, len(samples) * every_s / window_s) if samples else None,
        "least_ratio": min(ratios) if ratios else None,
        "most_ratio": max(ratios) if ratios else None,
        "accelerators_told": max((len(one.utilisation_ratios) for one in samples), default=None),
        "accelerators_bought": node.offering.accelerator_count,
        "most_ratio_at_work": max((r for one in working for r in one.utilisation_ratios if r is not None), default=None),
        "least_cpu_ratio": min((one.cpu_ratio for one in samples if one.cpu_ratio is not None), default=None),
        "most_cpu_ratio": max((one.cpu_ratio for one in samples if one.cpu_ratio is not None), default=None),
    }


__all__ = ["ScaleFinding", "ScaleReport", "read_loads", "scale_down", "telemetry_row"]
