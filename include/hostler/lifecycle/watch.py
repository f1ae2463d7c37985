"""Watches a lease for a trigger: reads only, and says when ``converge`` is worth calling again."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hostler.cloud.driver import MachineState
from hostler.cloud.errors import CloudError
from hostler.cloud.tags import LEASE
from hostler.ledger.errors import LedgerUnavailableError
from hostler.lifecycle.choice import choose
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.gang import gather_all, or_silence
from hostler.lifecycle.limits import limit_reached, seconds_left
from hostler.lifecycle.next_run import ACTIVE_JOB, newest_job, ready_nodes
from hostler.lifecycle.next_slot import FIT
from hostler.lifecycle.next_step import OVER
from hostler.lifecycle.room import no_room
from hostler.lifecycle.setup import UNDER_WAY
from hostler.lifecycle.slots import has_reached, live_nodes, slots_of, unresolved
from hostler.model.enums import NodeState, Phase
from hostler.model.lease import Job, LeaseView, Node
from hostler.reach.port import JobStatus, ReachError

_log = logging.getLogger(__name__)

LOOK_S = 60.0
LEDGER_PAUSE_S = 15.0
"""Pause before the next look while the ledger cannot be reached."""

RUNS = frozenset({MachineState.PENDING, MachineState.RUNNING})
SHORTEST_S = 0.01
"""A rest shorter than this is over: a clock may not show it pass."""

AGAIN = "time for another look"


async def watch(fleet: Fleet, lease_id: str, until: Phase, *, min_s: float, max_s: float) -> str:
    """Returns why it is time for ``converge(until)`` again, in words; never before ``min_s``, never after ``max_s``.

    Args:
        min_s: seconds, 0 or more; 6 or more behind a worker's deferral (see ``dag-shape``: apache/airflow#72716).
        max_s: seconds, above ``min_s``; keep it at 300 or less: a lease that nobody drives for 900 s counts as unattended.

    While the ledger is away it goes on waiting, past ``max_s``: a worker could do nothing, and would spend the task's retries.

    Raises:
        LeaseNotFoundError: no such lease.
    """
    clock = asyncio.get_running_loop().time
    began = clock()
    watcher: Watcher | None = None
    while True:
        try:
            if watcher is None:
                first = await fleet.offload(lambda: fleet.ledger.view(lease_id))
                watcher = Watcher(fleet=fleet, until=until, first=first)
            reason, pause_s = await watcher.look()
        except LedgerUnavailableError as error:
            _log.warning("the ledger is away, next look in %.0f s: %s", LEDGER_PAUSE_S, error)
            await fleet.sleep(LEDGER_PAUSE_S)
            continue
        gone_s = clock() - began
        if reason is not None:
            await fleet.sleep(max(0.0, min_s - gone_s))
            return reason
        if max_s - gone_s < SHORTEST_S:
            return AGAIN
        await fleet.sleep(min(max(0.5, pause_s), max_s - gone_s))


@dataclass(slots=True, kw_only=True)
class Watcher:
    """What one watch knows: the rows it began with, and when it last asked the clouds."""

    fleet: Fleet
    until: Phase
    first: LeaseView
    looked_at: datetime | None = None
    silent_since: datetime | None = None

    async def look(self) -> tuple[str | None, float]:
        """Returns the reason to converge, if there is one now, and after how many seconds to look again."""
        ledger, lease_id = self.fleet.ledger, self.first.lease.lease_id
        # Both in a thread: the store's clock is a question to the database too, and the loop is every trigger's.
        view, now = await self.fleet.offload(lambda: (ledger.view(lease_id), ledger.now()))
        poll_s = self.fleet.settings.poll_s
        if self.until in {Phase.BACKUP, Phase.RELEASE, Phase.RECEIPT}:
            return self._moved(view, now), poll_s
        reason = self._by_rows(view, now) or self._moved(view, now) or await self._by_nodes(view, now)
        left_s = seconds_left(view, now)
        return reason, poll_s if left_s is None else min(poll_s, left_s)

    def _by_rows(self, view: LeaseView, now: datetime) -> str | None:
        lease = view.lease
        if lease.state in OVER:
            return f"the lease is {lease.state}"
        if lease.failure is not None:
            return lease.failure
        if has_reached(lease, self.until):
            return f"{self.until} is done"
        if lease.keep_until is not None and now >= lease.keep_until:
            return "the keep time is over"
        return limit_reached(view, now)

    def _moved(self, view: LeaseView, now: datetime) -> str | None:
        """Rows that changed under us, and machines on their way in or out that only another look can follow."""
        if view.lease.fence != self.first.lease.fence:
            return "another driver has moved the lease"
        waited_s = (now - (view.lease.wait_since or now)).total_seconds()
        restless = [node for node in live_nodes(view) if node.state is NodeState.TERMINATING or node.address is None]
        if restless and waited_s >= 2 * self.fleet.settings.poll_s:
            return f"{restless[0].provider_id} is {restless[0].state}: the cloud is to be asked"
        due = [intent for intent in unresolved(view) if now > intent.settle_after]
        return f"{due[0].intent_id}: a launch without an answer can be looked up" if due else None

    async def _by_nodes(self, view: LeaseView, now: datetime) -> str | None:
        if view.lease.keep_until is not None:
            return None  # the job is done: nothing is bought or set up for it any more
        job = newest_job(view)
        if job is not None and job.state in ACTIVE_JOB:
            return await self._by_job(view, job, now) or await self._by_clouds(view, now)
        if any(slot.is_empty for slot in slots_of(view)):
            return await self._by_stock(view, now)
        answers = await gather_all([self._by_node(node) for node in live_nodes(view)])
        return next((answer for answer in answers if answer), None) or await self._by_clouds(view, now)

    async def _by_stock(self, view: LeaseView, now: datetime) -> str | None:
        """A slot is empty: is there an offering worth trying, and room under the caps?"""
        ledger, request = self.fleet.ledger, view.lease.request
        if view.lease.plan is None:
            return "a plan is to be made"
        choice = choose(view, await self.fleet.offload(ledger.stock_outs), now)
        if choice.offering is None:
            return None
        offering, caps = choice.offering, self.fleet.settings.caps_of(request.tenant)
        missing = sum(1 for slot in slots_of(view) if slot.is_empty)
        full = await self.fleet.offload(lambda: no_room(ledger, caps, request.tenant, offering, missing))
        return None if full else f"worth trying: {offering.key}"

    async def _by_node(self, node: Node) -> str | None:
        """Returns what one node's own answer calls for."""
        nodes = self.fleet.nodes
        if node.state in {NodeState.LAUNCHED, NodeState.UNREACHABLE} and node.address is not None:
            return f"{node.node_name} answers" if await nodes.is_up(node) else None
        if node.state is NodeState.REGISTERED and node.setup_job_id is not None:
            status = await or_silence(nodes.poll_setup(node, node.setup_job_id))
            is_over = isinstance(status, JobStatus) and status.state not in UNDER_WAY
            return f"{node.node_name}: setup is over" if is_over else None
        if node.state is NodeState.REGISTERED or (node.state is NodeState.INITIALIZED and node.health not in FIT):
            return f"{node.node_name} is {node.state}" if self.until is not Phase.LAUNCH else None
        return None

    async def _by_job(self, view: LeaseView, job: Job, now: datetime) -> str | None:
        nodes = ready_nodes(view)
        if tuple(node.node_name for node in nodes) != job.node_names:
            return "the gang is not whole"
        answers = await gather_all([or_silence(self.fleet.nodes.poll_job(node, job.job_id)) for node in nodes])
        told = _told(nodes, answers)
        if told is not None:
            return told
        silent = [node for node, answer in zip(nodes, answers, strict=True) if isinstance(answer, ReachError)]
        self.silent_since = (self.silent_since or now) if silent else None
        if silent and now - (self.silent_since or now) > timedelta(seconds=self.fleet.settings.heartbeat_timeout_s / 2):
            return f"{silent[0].node_name} is silent"
        return None

    async def _by_clouds(self, view: LeaseView, now: datetime) -> str | None:
        """Asks the clouds now and then whether the nodes still run. What they do not answer is no reason."""
        if self.looked_at is not None and (now - self.looked_at).total_seconds() < LOOK_S:
            return None
        self.looked_at = now
        ids = {node.provider_id: node for node in live_nodes(view)}
        for cloud, region in sorted({(node.offering.cloud, node.offering.region) for node in ids.values()}):
            driver = self.fleet.drivers.get(cloud)
            if driver is None:
                continue
            try:
                machines = await self.fleet.offload(
                    lambda driver=driver, region=region: driver.list_nodes(region, {LEASE: view.lease.lease_id})  # type: ignore[misc]
                )
            except CloudError:
                continue
            for machine in machines:
                if machine.provider_id in ids and machine.state not in RUNS:
                    return f"{ids[machine.provider_id].node_name} is {machine.state} by the cloud's word"
        return None


def _told(nodes: Sequence[Node], answers: Sequence[JobStatus | ReachError]) -> str | None:
    """Returns what a rank's answer calls for."""
    for node, answer in zip(nodes, answers, strict=True):
        if isinstance(answer, JobStatus) and answer.notice:
            return f"{node.node_name}: {answer.notice}"
        if isinstance(answer, JobStatus) and answer.state not in UNDER_WAY:
            return f"{node.node_name}: the job is {answer.state}"
    return None
