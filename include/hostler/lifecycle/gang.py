"""The gang as one: what all ranks say together, who fell silent, and how a job is stopped or judged."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from hostler.lifecycle.charge import Charge
from hostler.lifecycle.ending import end_now
from hostler.lifecycle.events import shorten, words_of
from hostler.lifecycle.look import check_node
from hostler.lifecycle.next_run import WORKING, newest_job
from hostler.lifecycle.step import Effect
from hostler.model.enums import JobState, NodeState, Verdict
from hostler.model.lease import Event, Job, Node
from hostler.reach.port import JobStatus, ReachError

T = TypeVar("T")

SECOND_LOOK_S = 20.0
"""A failed rank of a gang that looks whole is the workload's failure only when it still looks so after this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """The answers of all ranks to one poll. ``answers`` are in rank order, like ``nodes``."""

    job: Job
    nodes: Sequence[Node]
    answers: Sequence[JobStatus | ReachError]
    now: datetime

    @property
    def told(self) -> list[JobStatus]:
        """Answers of the ranks that answered."""
        return [answer for answer in self.answers if isinstance(answer, JobStatus)]

    def is_done(self) -> bool:
        """True when every expected rank answered and succeeded."""
        states = [answer.state for answer in self.told]
        return len(states) == len(self.job.node_names) and all(state is JobState.SUCCEEDED for state in states)

    def ended_badly(self) -> tuple[Node, JobStatus] | None:
        """Returns the first rank that failed, was stopped, or does not know the job; None when there is none."""
        for node, answer in zip(self.nodes, self.answers, strict=True):
            if isinstance(answer, JobStatus) and answer.state in {JobState.FAILED, JobState.STOPPED, JobState.MISSING}:
                return node, answer
        return None

    def progress(self) -> Job:
        """Returns the job with what the ranks report: the step all have reached, the newest step all have shipped."""
        if not self.told:
            return self.job
        shipped = [status.shipped_step for status in self.told if status.shipped_step is not None]
        first = self.told[0]
        return replace(
            self.job,
            step=max(self.job.step, min(status.step for status in self.told)),
            shipped_step=max([*([] if self.job.shipped_step is None else [self.job.shipped_step]), min(shipped)])
            if shipped
            else self.job.shipped_step,
            metrics=first.metrics or self.job.metrics,
            weights_sha256=first.weights_sha256 or self.job.weights_sha256,
            heartbeat_at=self.now,
        )

    def silent(self) -> list[Node]:
        """Returns the nodes that did not answer."""
        return [node for node, answer in zip(self.nodes, self.answers, strict=True) if isinstance(answer, ReachError)]


async def gather_all(works: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Runs all to their end, at most 64 together, then raises the gravest error or returns the answers in order."""
    if len(works) == 1:
        return [await works[0]]
    gate = asyncio.Semaphore(64)

    async def _one(work: Coroutine[Any, Any, T]) -> T:
        async with gate:
            return await work

    tasks = [asyncio.ensure_future(_one(work)) for work in works]
    await asyncio.gather(*tasks, return_exceptions=True)
    errors = [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]
    if errors:
        raise min(errors, key=lambda error: isinstance(error, Exception))
    return [task.result() for task in tasks]


async def or_silence(work: Coroutine[Any, Any, T]) -> T | ReachError:
    """Returns the answer, or the ReachError as a value."""
    try:
        return await work
    except ReachError as error:
        return error


def heard(charge: Charge, gang: Gang) -> tuple[list[Node], list[Event]]:
    """Returns node rows with news: a sign of life now and then, and who fell silent or came back."""
    settings = charge.fleet.settings
    rows, events = [], []
    for node, answer in zip(gang.nodes, gang.answers, strict=True):
        age_s = (gang.now - (node.heartbeat_at or node.launched_at)).total_seconds()
        if isinstance(answer, ReachError):
            if node.state is NodeState.INITIALIZED and age_s > settings.heartbeat_timeout_s:
                rows.append(replace(node, state=NodeState.UNREACHABLE))
                events.append(charge.event("node.unreachable", words_of(answer), slot_index=node.slot_index))
        elif node.state is NodeState.UNREACHABLE:
            rows.append(replace(node, state=NodeState.INITIALIZED, heartbeat_at=gang.now))
            events.append(charge.event("node.reachable", "it answers again", slot_index=node.slot_index))
        elif age_s > settings.heartbeat_timeout_s / 4:
            rows.append(replace(node, heartbeat_at=gang.now))
    return rows, events


async def note_silence(charge: Charge, gang: Gang) -> None:
    """Writes who fell silent, without a verdict."""
    rows, events = heard(charge, gang)
    if rows:
        await charge.write("node-silent", rows, events)


async def break_job(charge: Charge, effect: Effect) -> None:
    """Effect BREAK_JOB: the gang is not whole, or the run ends: survivors write a checkpoint, ship it, and stop."""
    job = newest_job(charge.view)
    assert job is not None  # noqa: S101 - the pure core saw one
    by_name = {node.node_name: node for node in charge.view.nodes}
    nodes = [by_name[name] for name in job.node_names if name in by_name]
    alive = [node for node in nodes if node.state in {NodeState.INITIALIZED, NodeState.UNREACHABLE}]
    await break_off(charge, job, alive, effect.reason)


async def break_off(charge: Charge, job: Job, nodes: Sequence[Node], reason: str) -> None:
    """Stops the attempt with its own token, keeps what was shipped, and writes it ``stopped``."""
    answers = await stop_ranks(charge, job, nodes)
    told = [answer for answer in answers if isinstance(answer, JobStatus) and answer.state is not JobState.MISSING]
    gang = Gang(job=job, nodes=nodes, answers=answers, now=charge.now())
    after = gang.progress() if told else job
    stopped = replace(after, state=JobState.STOPPED, ended_at=charge.now(), error=shorten(reason))
    shipped = "none" if stopped.shipped_step is None else f"step {stopped.shipped_step}"
    why = f"{reason}; {len(told)} of {len(job.node_names)} ranks stopped with a checkpoint; shipped: {shipped}"
    await charge.write("job-stopped", [stopped], [charge.event("job.stopped", why, job_id=job.job_id)])


async def stop_ranks(charge: Charge, job: Job, nodes: Sequence[Node]) -> list[JobStatus | ReachError]:
    """Asks every node for a checkpoint and the end of the job; returns their answers in order."""
    nodes_api = charge.fleet.nodes

    async def _stop(node: Node) -> JobStatus:
        return await charge.ask("stop-job", lambda: nodes_api.stop_job(node, job.job_id, job.attempt_token, checkpoint=True))

    return await gather_all([or_silence(_stop(node)) for node in nodes])


async def judge_failure(charge: Charge, gang: Gang, node: Node, status: JobStatus) -> None:
    """A rank ended without success. Before it counts against the tenant: is the gang whole, by the cloud's word?"""
    seen = [await check_node(charge, other) for other in gang.nodes]
    if any(other.state not in WORKING for other in seen):
        return  # a node is lost: the next round breaks the job off for that reason
    if gang.silent():
        await note_silence(charge, replace(gang, nodes=seen))
        return  # time and the cloud decide about the silent one first
    words = shorten(f"{node.node_name}: {status.state} (exit {status.exit_code}): {status.error or status.log_tail}")
    announced = _announced(charge, gang, seen)
    if announced is not None:
        await end_now(charge, announced[0], f"interruption announced: {announced[1]}")
        return
    if status.state is JobState.FAILED:
        if await _is_confirmed(charge, gang, words):
            await _fail(charge, gang, seen, status, words)
        return
    await break_off(charge, gang.progress(), seen, words)
    await _distrust(charge, next(other for other in seen if other.node_name == node.node_name), words)


async def _is_confirmed(charge: Charge, gang: Gang, words: str) -> bool:
    """True at the second look. A rank often fails because a peer is being taken, which the cloud shows only seconds later."""
    if gang.job.failing_since is not None:
        return (gang.now - gang.job.failing_since).total_seconds() >= SECOND_LOOK_S
    failing = replace(gang.progress(), failing_since=gang.now)
    event = charge.event("job.failing", f"{words}; judged when no node turns out lost", job_id=gang.job.job_id)
    await charge.write("job-failing", [failing], [event])
    return False


async def _distrust(charge: Charge, node: Node, words: str) -> None:
    """The node cut its job off (a reboot, a killed supervisor, a lost disk): it is probed again before it works again."""
    doubtful = replace(node, health=Verdict.UNKNOWN, health_reasons=(words,), unknown_probes=0)
    event = charge.event("node.distrusted", words, slot_index=node.slot_index, provider_id=node.provider_id)
    await charge.write_node("node-distrusted", doubtful, event)


async def leave_taken(charge: Charge, gang: Gang) -> bool:
    """When the cloud is about to take a node: all ranks write a checkpoint, ship it and stop, then the node is let go.

    Returns:
        True when the gang was broken off.
    """
    for node, answer in zip(gang.nodes, gang.answers, strict=True):
        words = answer.notice if isinstance(answer, JobStatus) and answer.notice else None
        if words is None and node.provider_id in charge.memory.taken:
            words = charge.memory.notices.get(node.provider_id, "the cloud announced it")
        if words is not None:
            reason = f"interruption announced: {shorten(words)}"
            await break_off(charge, gang.progress(), gang.nodes, f"{node.node_name}: {reason}")
            await end_now(charge, node, reason)
            return True
    return False


def _announced(charge: Charge, gang: Gang, seen: Sequence[Node]) -> tuple[Node, str] | None:
    """Returns a node that the cloud has said it will take, with its words."""
    for node, answer in zip(seen, gang.answers, strict=True):
        notice = charge.memory.notices.get(node.provider_id) or (answer.notice if isinstance(answer, JobStatus) else None)
        if notice:
            return node, notice
    return None


async def _fail(charge: Charge, gang: Gang, nodes: Sequence[Node], status: JobStatus, words: str) -> None:
    await stop_ranks(charge, gang.job, nodes)
    job = replace(gang.progress(), state=JobState.FAILED, ended_at=gang.now, exit_code=status.exit_code, error=words)
    lease = replace(charge.lease, failure=charge.lease.failure or f"the job failed: {words}")
    await charge.write("job-failed", [job, lease], [charge.event("job.failed", words, job_id=gang.job.job_id)])
