"""Phase ``run``: one job over the gang. Written before it starts, re-attached and never started twice, polled as a whole."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from hostler.lifecycle.charge import Charge
from hostler.lifecycle.events import shorten, words_of
from hostler.lifecycle.gang import Gang, gather_all, heard, judge_failure, leave_taken, note_silence, or_silence
from hostler.lifecycle.limits import EXPIRY_SLACK_S, seconds_left
from hostler.lifecycle.next_run import WORKING, newest_job, ready_nodes
from hostler.lifecycle.secret_names import variable_of
from hostler.lifecycle.step import Effect
from hostler.model.enums import JobState
from hostler.model.lease import Event, Job, Node, Record
from hostler.reach.port import BackupTarget, JobOrder, JobStatus, ReachError
from hostler.vault.port import KeyServiceError

EXPIRY_MOST_S = 7 * 86400
RENEW_S = 300


async def open_job(charge: Charge, _effect: Effect) -> None:
    """Effect OPEN_JOB: writes the next attempt, to resume from the last step that is safely in the store."""
    last = newest_job(charge.view)
    attempt = 1 if last is None else last.attempt + 1
    job_id = f"{charge.lease.lease_id}-job-{attempt}"
    restore = None if last is None else last.shipped_step
    job = Job(
        job_id=job_id,
        lease_id=charge.lease.lease_id,
        attempt=attempt,
        attempt_token=hashlib.sha256(f"{job_id}/{charge.fence.token}".encode()).hexdigest()[:32],
        node_names=tuple(node.node_name for node in ready_nodes(charge.view)),
        state=JobState.STARTING,
        started_at=charge.now(),
        step=restore or 0,
        resumed_from_step=restore or 0,
        shipped_step=restore,
    )
    why = f"attempt {attempt}" if restore is None else f"attempt {attempt}, from step {restore}"
    await charge.write("job-opened", [job], [charge.event("job.opened", why, job_id=job_id, nodes=len(job.node_names))])


async def attach_job(charge: Charge, effect: Effect) -> None:
    """Effect ATTACH_JOB: hands every rank its order. A rank that has it already re-attaches; ``running`` once all have it."""
    job, nodes = newest_job(charge.view), ready_nodes(charge.view)
    assert job is not None  # noqa: S101 - the pure core saw one
    try:
        backup = await backup_target(charge)
    except KeyServiceError as error:
        wait_s = charge.memory.backoff_s(effect.key, 5.0, 120.0)
        charge.memory.hold(effect.key, charge.now(), wait_s, f"the key service refuses: {shorten(str(error))}")
        return
    try:
        secrets = await _secrets(charge)
    except KeyError as error:
        charge.memory.fatal = f"secrets: {error.args[0]}"
        return
    except OSError as error:
        wait_s = charge.memory.backoff_s(effect.key, 5.0, 120.0)
        charge.memory.hold(effect.key, charge.now(), wait_s, shorten(str(error)))
        return
    orders = [_complete(charge, job, order, secrets) for order in charge.fleet.seams.orders_for(charge.lease, job, nodes)]
    answers = await _start_all(charge, nodes, orders, backup)
    deaf = [answer for answer in answers if isinstance(answer, ReachError)]
    if deaf:
        charge.memory.hold(effect.key, charge.now(), charge.fleet.settings.poll_s, f"start: {words_of(deaf[0])}")
        await note_silence(charge, Gang(job=job, nodes=nodes, answers=answers, now=charge.now()))
        return
    charge.memory.clear(effect.key)
    event = charge.event("job.running", f"attempt {job.attempt} runs on {len(nodes)} nodes", job_id=job.job_id)
    await charge.write("job-running", [replace(job, state=JobState.RUNNING, heartbeat_at=charge.now())], [event])


async def backup_target(charge: Charge) -> BackupTarget | None:
    """Returns where the agents ship to, with the lease's plain data key; None when fleet.yaml names no backup store.

    Raises:
        KeyServiceError: the key cannot be had now.
    """
    settings, wrapped = charge.fleet.settings, charge.lease.wrapped_data_key
    if not settings.backup_uri or wrapped is None:
        return None
    key = await charge.call("unwrap", lambda: charge.fleet.keys.unwrap(wrapped, charge.lease.lease_id))
    return BackupTarget(
        uri=settings.backup_uri,
        data_key=key,
        key_id=charge.fleet.keys.key_id,
        endpoint_url=settings.backup_endpoint_url,
        region=settings.backup_region,
    )


async def _secrets(charge: Charge) -> dict[str, str]:
    """Returns the job's secret environment. Raises KeyError, naming one that does not exist any more."""
    names = charge.lease.request.secrets
    # In a thread: Airflow's connections cannot be read from the loop that the triggerer runs.
    values = await charge.fleet.offload(lambda: [charge.fleet.secret(name) for name in names])
    return {variable_of(name): value for name, value in zip(names, values, strict=True)}


def _complete(charge: Charge, job: Job, order: JobOrder, secrets: Mapping[str, str]) -> JobOrder:
    """Adds what only the lifecycle knows: the restore step, the dead man's switch, the secrets' values."""
    return replace(
        order,
        restore_step=job.shipped_step if job.resumed_from_step else order.restore_step,
        expires_in_s=expires_in_s(charge),
        secrets={**order.secrets, **secrets},
    )


def expires_in_s(charge: Charge) -> float:
    """Returns after how many seconds the node should end itself: the lease's limit and some slack."""
    left_s = seconds_left(charge.view, charge.now())
    keep_s = charge.lease.request.keep_s
    return min(EXPIRY_MOST_S if left_s is None else left_s + EXPIRY_SLACK_S, EXPIRY_MOST_S + keep_s)


async def _start_all(
    charge: Charge, job_nodes: Sequence[Node], orders: Sequence[JobOrder], backup: BackupTarget | None
) -> list[JobStatus | ReachError]:
    """Starts the job on all nodes side by side; returns one answer per node, in order."""

    async def _start(node: Node, order: JobOrder) -> JobStatus:
        return await charge.ask("start-job", lambda: charge.fleet.nodes.start_job(node, order, backup))

    return await gather_all([or_silence(_start(node, order)) for node, order in zip(job_nodes, orders, strict=True)])


async def poll_job(charge: Charge, effect: Effect) -> None:
    """Effect POLL_JOB: asks every rank, then judges the gang as a whole."""
    job, nodes = newest_job(charge.view), ready_nodes(charge.view)
    assert job is not None  # noqa: S101 - the pure core saw one
    answers = await _poll_all(charge, job, nodes)
    charge.memory.hold(effect.key, charge.now(), charge.fleet.settings.poll_s)
    charge.memory.tries.pop(effect.key, None)
    gang = Gang(job=job, nodes=nodes, answers=answers, now=charge.now())
    bad = gang.ended_badly()
    if bad is not None:
        await judge_failure(charge, gang, *bad)
        return
    if not gang.is_done() and await leave_taken(charge, gang):
        return
    after = gang.progress()
    events: list[Event] = []
    if gang.is_done():
        after = replace(after, state=JobState.SUCCEEDED, ended_at=gang.now, exit_code=0)
        events.append(
            charge.event("job.succeeded", f"all {len(nodes)} ranks succeeded at step {after.step}", job_id=job.job_id)
        )
    records: list[Record] = [after] if after != job else []
    if events and charge.lease.request.keep_s > 0:
        records.append(replace(charge.lease, keep_until=gang.now + timedelta(seconds=charge.lease.request.keep_s)))
    rows, row_events = heard(charge, gang)
    if records or rows or events:
        await charge.write("job-progress", [*records, *rows], [*events, *row_events])
    await _renew(charge, gang)


async def _poll_all(charge: Charge, job: Job, nodes: Sequence[Node]) -> list[JobStatus | ReachError]:
    async def _poll(node: Node) -> JobStatus:
        return await charge.ask("poll-job", lambda: charge.fleet.nodes.poll_job(node, job.job_id))

    return await gather_all([or_silence(_poll(node)) for node in nodes])


async def _renew(charge: Charge, gang: Gang) -> None:
    """Sets the dead man's switch of every node anew, now and then."""
    key = "renew"
    if charge.memory.left_s(key, gang.now) > 0:
        return
    charge.memory.hold(key, gang.now, RENEW_S)
    answered = [node for node, answer in zip(gang.nodes, gang.answers, strict=True) if isinstance(answer, JobStatus)]
    await _renew_all(charge, answered)


async def tend(charge: Charge, effect: Effect) -> None:
    """Effect TEND: kept nodes hear from us. An agent whose job is over powers its node off when nobody speaks to it for long."""
    charge.memory.hold(effect.key, charge.now(), RENEW_S)
    await _renew_all(charge, [node for node in ready_nodes(charge.view) if node.state in WORKING])


async def _renew_all(charge: Charge, nodes: Sequence[Node]) -> None:
    after_s = expires_in_s(charge)

    async def _one(node: Node) -> None:
        await charge.ask("renew", lambda: charge.fleet.nodes.renew(node, after_s))

    await gather_all([or_silence(_one(node)) for node in nodes])
