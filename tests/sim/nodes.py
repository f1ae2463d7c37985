"""Nodes of the simulated cloud, as ``NodeControl`` sees them: setup, probe, and gangs that train only while whole."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hostler.cloud.driver import MachineState
from hostler.drivers.fake.cloud import FakeCloud
from hostler.model.enums import JobState
from hostler.reach.port import JobStatus, ReachError, ShippedObject

STEPS_PER_S = 1.0


@dataclass(slots=True)
class SimJob:
    """One rank of a job on one machine."""

    order: Any
    provider_id: str
    started_at: float
    stopped_at: float | None = None
    failed_at: float | None = None
    cut_at: float | None = None


@dataclass(slots=True)
class SimNodes:
    """Agents of all machines. Times are seconds of the simulated clock.

    Attributes:
        frozen: provider id -> when it fell silent. bad_setups, bad_probes: how many of the next ones fail, by provider id.
        total_steps: length of the training. two_at_once: job ids that were ever found running side by side for one lease.
    """

    cloud: FakeCloud
    seconds: Any
    setup_s: float = 30.0
    ssh_s: float = 5.0
    total_steps: int = 120
    interval: int = 20
    frozen: dict[str, float] = field(default_factory=dict)
    dead_boots: set[str] = field(default_factory=set)
    bad_setups: dict[str, int] = field(default_factory=dict)
    verdicts: dict[str, str] = field(default_factory=dict)
    failing_ranks: set[str] = field(default_factory=set)
    is_network_down: bool = False
    setups: dict[tuple[str, str], float] = field(default_factory=dict)
    jobs: dict[str, dict[str, SimJob]] = field(default_factory=dict)
    started: list[tuple[str, str]] = field(default_factory=list)
    orders: list[Any] = field(default_factory=list)
    two_at_once: list[str] = field(default_factory=list)
    silent_until: dict[str, float] = field(default_factory=dict)
    switches: dict[str, tuple[float, float]] = field(default_factory=dict)
    expired: list[str] = field(default_factory=list)
    stray_stops: int = 0
    renewed: int = 0

    def _machine(self, node):
        machine = self.cloud.machines.get(node.provider_id)
        now = self.cloud.clock()
        if (
            machine is None
            or self.is_network_down
            or node.provider_id in self.frozen
            or self.silent_until.get(node.provider_id, -1.0) > self.seconds()
            or node.provider_id in self.dead_boots
            or machine.state(now) is not MachineState.RUNNING
            or (now - machine.runs_at).total_seconds() < self.ssh_s
        ):
            raise ReachError(f"{node.provider_id} does not answer")
        return machine

    def fail_now(self, provider_id: str) -> None:
        """The rank's program fails by itself, as it does when it hears no more of a peer."""
        for ranks in self.jobs.values():
            if provider_id in ranks and ranks[provider_id].stopped_at is None:
                ranks[provider_id].failed_at = self.seconds()

    def cut_off(self, provider_id: str, silent_s: float = 0.0) -> None:
        """The machine is started anew, or the supervisor of its job is killed: the job ends, the machine stays."""
        self.silent_until[provider_id] = self.seconds() + silent_s
        for ranks in self.jobs.values():
            if provider_id in ranks and ranks[provider_id].stopped_at is None:
                ranks[provider_id].cut_at = self.seconds()

    def _set_switch(self, provider_id: str, renewed_at: float, ends_at: float) -> None:
        """Sets the dead man's switch of a node, as its agent holds it."""
        is_new = provider_id not in self.switches
        self.switches[provider_id] = (renewed_at, ends_at)
        if is_new:
            asyncio.get_running_loop().call_at(renewed_at, self._expire, provider_id)

    def _expire(self, provider_id: str) -> None:
        """Powers the machine off, which ends it, when its time is over; a job that works has the lease's time."""
        now, (renewed_at, ends_at) = self.seconds(), self.switches[provider_id]
        machine = self.cloud.machines[provider_id]
        if machine.order_at is not None or provider_id in self.frozen:
            return
        works = any(
            provider_id in ranks and not self._is_done(job_id) and self._down_at(ranks[provider_id]) > now
            for job_id, ranks in self.jobs.items()
        )
        due_at = ends_at if works else renewed_at
        if now < due_at:
            asyncio.get_running_loop().call_at(due_at, self._expire, provider_id)
            return
        self.expired.append(provider_id)
        self.cloud.end(provider_id, "Client.InstanceInitiatedShutdown")

    async def is_up(self, node) -> bool:
        try:
            self._machine(node)
        except ReachError:
            return False
        return True

    async def start_setup(self, node, job_id: str, options: Mapping[str, str]) -> JobStatus:
        self._machine(node)
        self.setups.setdefault((node.provider_id, job_id), self.seconds())
        return await self.poll_setup(node, job_id)

    async def poll_setup(self, node, job_id: str) -> JobStatus:
        self._machine(node)
        began = self.setups.get((node.provider_id, job_id))
        if began is None:
            return JobStatus(job_id=job_id, state=JobState.MISSING)
        if self.seconds() - began < self.setup_s:
            return JobStatus(job_id=job_id, state=JobState.RUNNING, heartbeat_age_s=1.0)
        attempt = int(job_id.rsplit("-", 1)[1])
        if attempt <= self.bad_setups.get(node.provider_id, 0):
            return JobStatus(job_id=job_id, state=JobState.FAILED, exit_code=9, error="driver did not build")
        return JobStatus(job_id=job_id, state=JobState.SUCCEEDED, exit_code=0)

    async def probe(self, node) -> Mapping[str, Any]:
        self._machine(node)
        return {"verdict": self.verdicts.get(node.provider_id, "healthy")}

    async def start_job(self, node, order, backup) -> JobStatus:
        self._machine(node)
        ranks = self.jobs.setdefault(order.job_id, {})
        if node.provider_id not in ranks:
            self._check_alone(order.job_id)
            ranks[node.provider_id] = SimJob(order=order, provider_id=node.provider_id, started_at=self.seconds())
            self.started.append((order.job_id, node.provider_id))
            self.orders.append(order)
        if order.expires_in_s is not None:
            at = self.seconds() + order.expires_in_s
            self._set_switch(node.provider_id, at, at)
        return self._status(order.job_id, node.provider_id)

    def _check_alone(self, job_id: str) -> None:
        lease = job_id.rsplit("-job-", 1)[0]
        for other, ranks in self.jobs.items():
            is_sibling = other != job_id and other.rsplit("-job-", 1)[0] == lease
            if is_sibling and not self._is_done(other) and any(self._down_at(rank) > self.seconds() for rank in ranks.values()):
                self.two_at_once.append(f"{other} and {job_id}")

    def _down_at(self, rank: SimJob) -> float:
        """When the rank stopped working: stopped, frozen, or its machine on its way out."""
        machine = self.cloud.machines[rank.provider_id]
        epoch = self.cloud.clock()
        ends = [rank.stopped_at, rank.failed_at, rank.cut_at, self.frozen.get(rank.provider_id)]
        for at in (machine.order_at, machine.off_at):
            if at is not None:
                ends.append(self.seconds() + (at - epoch).total_seconds())
        return min((end for end in ends if end is not None), default=float("inf"))

    def _step(self, job_id: str) -> int:
        """Steps of the gang: it moves only while every rank is there."""
        ranks = self.jobs[job_id]
        first = next(iter(ranks.values())).order
        base = first.restore_step or 0
        if len(ranks) < first.world_size:
            return base
        began = max(rank.started_at for rank in ranks.values())
        until = min(self.seconds(), *(self._down_at(rank) for rank in ranks.values()))
        return min(self.total_steps, base + int(max(0.0, until - began) * STEPS_PER_S))

    def _is_done(self, job_id: str) -> bool:
        return self._step(job_id) >= self.total_steps

    def _shipped(self, job_id: str) -> int | None:
        ranks = self.jobs[job_id].values()
        base = next(iter(ranks)).order.restore_step
        step = self._step(job_id)
        at_stop = any(rank.stopped_at is not None for rank in ranks)
        newest = step if at_stop and step > (base or 0) else step // self.interval * self.interval
        return max(newest, base or 0) or base

    def _status(self, job_id: str, provider_id: str) -> JobStatus:
        rank = self.jobs.get(job_id, {}).get(provider_id)
        if rank is None:
            return JobStatus(job_id=job_id, state=JobState.MISSING)
        state = JobState.RUNNING
        if self._is_done(job_id):
            state = JobState.SUCCEEDED
        elif rank.stopped_at is not None or rank.cut_at is not None:
            state = JobState.STOPPED
        elif rank.failed_at is not None or provider_id in self.failing_ranks:
            state = JobState.FAILED
        return JobStatus(
            job_id=job_id,
            state=state,
            exit_code={JobState.SUCCEEDED: 0, JobState.FAILED: 1}.get(state),
            heartbeat_age_s=1.0,
            step=self._step(job_id),
            resumed_from_step=rank.order.restore_step or 0,
            shipped_step=self._shipped(job_id),
            metrics=(("accuracy", 0.97),),
            weights_sha256="ab" * 32 if state is JobState.SUCCEEDED else None,
            notice="terminate announced" if self.cloud.machines[provider_id].noticed_at is not None else None,
            error="the node was started anew while the job ran" if rank.cut_at is not None else None,
        )

    async def poll_job(self, node, job_id: str) -> JobStatus:
        self._machine(node)
        return self._status(job_id, node.provider_id)

    async def stop_job(self, node, job_id: str, attempt_token: str, *, checkpoint: bool) -> JobStatus:
        self._machine(node)
        rank = self.jobs.get(job_id, {}).get(node.provider_id)
        if rank is None:
            return JobStatus(job_id=job_id, state=JobState.MISSING)
        if rank.order.attempt_token != attempt_token:
            self.stray_stops += 1
        elif not self._is_done(job_id) and rank.stopped_at is None:
            rank.stopped_at = self.seconds()
        return self._status(job_id, node.provider_id)

    async def flush(self, node, lease_id: str):
        self._machine(node)
        return (ShippedObject(key=f"{node.node_name}/log", kind="log", sha256="0" * 64, plain_sha256="0" * 64, size_bytes=1),)

    async def renew(self, node, expires_in_s: float) -> None:
        self._machine(node)
        self.renewed += 1
        if node.provider_id in self.switches:
            at = self.seconds() + expires_in_s
            self._set_switch(node.provider_id, at, max(at, self.switches[node.provider_id][1]))

    async def close(self) -> None:
        """Nothing is open."""
