"""``hostler logs``: the job's log, read from a node of the gang."""

import argparse
import asyncio
import sys

from hostler.cli.show import find_lease
from hostler.ledger.errors import LeaseNotFoundError
from hostler.lifecycle.fleet import Fleet
from hostler.model.enums import JobState
from hostler.model.lease import Job, LeaseView, Node
from hostler.reach.port import NodeLogs, ReachError
from hostler.wiring.build import open_fleet

_POLL_S = 1.0
_OVER = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.STOPPED})


def logs(options: argparse.Namespace) -> int:
    """Prints the log; with ``--follow`` until the job has ended."""
    with open_fleet() as fleet:
        lease_id = find_lease(fleet.ledger, options.lease).lease_id
        return asyncio.run(_print_log(fleet, lease_id, options.rank, follow=options.follow))


async def _print_log(fleet: Fleet, lease_id: str, rank: int, *, follow: bool) -> int:
    offset = 0
    if not isinstance(fleet.nodes, NodeLogs):
        raise ReachError("this way of reaching nodes has no logs")
    try:
        while True:
            view = fleet.ledger.view(lease_id)
            job, node = _job_and_node(view, rank)
            chunk, offset = await fleet.nodes.read_log(node, job.job_id, offset)
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
            if not chunk and (not follow or job.state in _OVER):
                return 0
            if not chunk:
                await asyncio.sleep(_POLL_S)
    finally:
        await fleet.nodes.close()


def _job_and_node(view: LeaseView, rank: int) -> tuple[Job, Node]:
    if not view.jobs:
        raise LeaseNotFoundError(f"lease {view.lease.lease_id} has not started a job yet; `hostler why` says what it is doing")
    job = view.jobs[-1]
    if not 0 <= rank < len(job.node_names):
        raise LeaseNotFoundError(f"--rank {rank}: the gang has ranks 0 to {len(job.node_names) - 1}")
    name = job.node_names[rank]
    return job, next(node for node in view.nodes if node.node_name == name)
