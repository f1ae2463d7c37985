"""Leases whose job is done and whose nodes are kept, on nodes that tell what they did."""

import asyncio
from dataclasses import dataclass, field, replace

from tests.sim.nodes import SimNodes
from tests.sim.stage import TO_RUN, admitted, fair_world, until

from hostler.lifecycle.freshness import note_reconciled
from hostler.lifecycle.policies import GuardVerdict, Housekeeping, ScaleDownPolicy
from hostler.lifecycle.reap import confirm_epoch
from hostler.lifecycle.scale_down import scale_down
from hostler.reach.port import LoadRecord, LoadSample, ReachError

EVERY_S = 15.0
ACT = ScaleDownPolicy(mode=Housekeeping.ACT, idle_after_s=600, grace_s=900)


def record(ratios=(0.0,) * 8, *, window_s=600.0, changes=None, **values):
    """A window of equal samples; ``changes``: index -> fields that differ there."""
    count = int(window_s / EVERY_S) + 1
    told = {"process_count": 0, "login_count": 0, "job_count": 0, "cpu_ratio": 0.01, **values}
    samples = [
        LoadSample(age_s=(count - 1 - index) * EVERY_S, utilisation_ratios=tuple(ratios), **told) for index in range(count)
    ]
    for index, fields in (changes or {}).items():
        samples[index] = replace(samples[index], **fields)
    return LoadRecord(samples=tuple(samples), every_s=EVERY_S)


@dataclass(slots=True)
class TellingNodes(SimNodes):
    """Simulated nodes that keep samples. ``told``: by slot or node name; others are idle; an exception is raised."""

    told: dict = field(default_factory=dict)
    looks: int = 0
    after: dict = field(default_factory=dict)

    async def read_load(self, node, window_s):
        self._machine(node)
        self.looks += 1
        found = self.told.get(node.node_name, record((0.0,) * node.offering.accelerator_count))
        if isinstance(found, Exception):
            raise found
        return found


def good(_batch):
    return GuardVerdict(report="/docs/index.html")


async def idle_world(leases=1, *, nodes=1, policy=ACT, most=100, keep_s=86_400):
    """A world whose leases have a job that is done and nodes that are kept."""
    world = fair_world(settings_changes={"destroyed_per_tick": most, "scale_down": {"default": policy, "vision": policy}})
    world.nodes = TellingNodes(
        **{name: getattr(world.nodes, name) for name in ("cloud", "seconds", "setup_s", "ssh_s", "total_steps", "interval")}
    )
    ids = [admitted(world, number=number, nodes=nodes, keep_s=keep_s, max_cost_usd=1e6) for number in range(leases)]
    for lease_id in ids:
        note_reconciled(world.fleet(), world.now())  # the second net watches all the time
        for phase in TO_RUN[:-1]:
            await until(world, lease_id, phase)
        await until(world, lease_id, TO_RUN[-1], for_s=300)
        assert world.ledger.view(lease_id).lease.keep_until is not None
    confirm_epoch(world.fleet(), who="person")
    return world, ids


async def twice(world, guard=good, *, dry_run=False, pause_s=901):
    """Marks, waits for the grace time, runs again; returns both reports."""
    first = await scale_down(world.fleet(), who="scale", guard=guard, dry_run=dry_run)
    await asyncio.sleep(pause_s)
    return first, await scale_down(world.fleet(), who="scale", guard=guard, dry_run=dry_run)


AWAY = ReachError("does not answer")
