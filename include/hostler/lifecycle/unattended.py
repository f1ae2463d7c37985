"""A job that works while nobody drives its lease: asked now and then, never touched."""

from dataclasses import replace

from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.gang import Gang, gather_all, or_silence
from hostler.lifecycle.next_run import ACTIVE_JOB, newest_job, ready_nodes
from hostler.model.lease import LeaseView


async def look_after(fleet: Fleet, view: LeaseView) -> bool:
    """Asks the ranks of an unattended lease's job and keeps what they say; takes no fence, judges nothing, ends nothing.

    Returns:
        True when every rank says that it has succeeded: there is nothing to wait for.

    Raises:
        StaleWriteError: somebody drives the lease again: good.
    """
    job, nodes = newest_job(view), ready_nodes(view)
    if job is None or job.state not in ACTIVE_JOB:
        return False
    by_name = {node.node_name: node for node in nodes}
    ranks = [by_name[name] for name in job.node_names if name in by_name]
    answers = await gather_all([or_silence(fleet.nodes.poll_job(node, job.job_id)) for node in ranks])
    gang = Gang(job=job, nodes=ranks, answers=answers, now=fleet.ledger.now())
    after = replace(gang.progress(), heartbeat_at=gang.now if gang.told else job.heartbeat_at)
    if after != job:
        await fleet.offload(lambda: fleet.ledger.write(view.lease.lease_id, [after], []))
    return gang.is_done()
