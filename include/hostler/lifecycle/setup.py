"""Phase ``setup``: the recipe runs as a job of the node's agent; a failure is the node's only when the node is still there."""

from dataclasses import replace

from hostler.lifecycle.charge import Charge
from hostler.lifecycle.ending import end_now
from hostler.lifecycle.events import shorten, words_of
from hostler.lifecycle.look import check_node
from hostler.lifecycle.step import Effect
from hostler.model.enums import JobState, NodeState
from hostler.model.lease import Node
from hostler.reach.port import JobStatus, ReachError

UNDER_WAY = frozenset({JobState.STARTING, JobState.RUNNING})


async def start_setup(charge: Charge, effect: Effect) -> None:
    """Effect START_SETUP: the attempt is written down, then started."""
    node = charge.node(effect)
    attempt = node.setup_attempt + 1
    job_id = f"{node.node_name}-setup-{attempt}"
    event = charge.event("node.setup_started", f"attempt {attempt}", slot_index=node.slot_index, job_id=job_id)
    started = await charge.write_node("setup-started", replace(node, setup_attempt=attempt, setup_job_id=job_id), event)
    await _start(charge, effect, started, job_id)


async def poll_setup(charge: Charge, effect: Effect) -> None:
    """Effect POLL_SETUP: follows the attempt; starts it again (the same one) when the node does not know it."""
    node = charge.node(effect)
    job_id = node.setup_job_id or ""
    try:
        status = await charge.ask("poll-setup", lambda: charge.fleet.nodes.poll_setup(node, job_id))
    except ReachError as error:
        await _silent(charge, effect, node, error)
        return
    if status.state is JobState.MISSING:
        await _start(charge, effect, node, job_id)
        return
    await _follow(charge, effect, node, status)


async def _start(charge: Charge, effect: Effect, node: Node, job_id: str) -> None:
    options = charge.fleet.seams.setup_options(charge.lease)
    try:
        status = await charge.ask("start-setup", lambda: charge.fleet.nodes.start_setup(node, job_id, options))
    except ReachError as error:
        await _silent(charge, effect, node, error)
        return
    await _follow(charge, effect, node, status)


async def _silent(charge: Charge, effect: Effect, node: Node, error: ReachError) -> None:
    """A node that does not answer may be rebooting, or gone: the cloud is asked, time decides."""
    charge.memory.hold(effect.key, charge.now(), charge.fleet.settings.poll_s, f"slot {node.slot_index}: {words_of(error)}")
    await check_node(charge, node)


async def _follow(charge: Charge, effect: Effect, node: Node, status: JobStatus) -> None:
    now = charge.now()
    if status.state in UNDER_WAY:
        charge.memory.hold(effect.key, now, charge.fleet.settings.poll_s, f"slot {node.slot_index}: setup runs")
        charge.memory.tries.pop(effect.key, None)
        if (
            node.heartbeat_at is None
            or (now - node.heartbeat_at).total_seconds() > charge.fleet.settings.heartbeat_timeout_s / 2
        ):
            await charge.write_node("setup-alive", replace(node, heartbeat_at=now))
        return
    charge.memory.clear(effect.key)
    if status.state is JobState.SUCCEEDED:
        done = replace(node, state=NodeState.INITIALIZED, heartbeat_at=now)
        await charge.write_node(
            "node-initialized", done, charge.event("node.initialized", "setup done", slot_index=node.slot_index)
        )
        return
    await _failed(charge, node, status)


async def _failed(charge: Charge, node: Node, status: JobStatus) -> None:
    """Asks the cloud first: a node that was taken away is no failed setup. Then another attempt, then another node."""
    node = await check_node(charge, node)
    if node.state is not NodeState.REGISTERED:
        return
    words = shorten(f"setup {status.state} (exit {status.exit_code}): {status.error or status.log_tail}")
    event = charge.event("node.setup_failed", words, slot_index=node.slot_index, attempt=node.setup_attempt)
    if node.setup_attempt < charge.fleet.settings.setup_attempts:
        await charge.write_node("setup-failed", replace(node, setup_job_id=None, heartbeat_at=charge.now()), event)
        return
    failed = await charge.write_node("setup-failed", replace(node, is_cordoned=True), event)
    await end_now(charge, failed, words, cordon=True)
