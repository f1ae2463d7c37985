"""Our own user data, transport, agent, setup and backup, on nodes that lack everything until the setup has run."""

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests import samples
from tests.recipes.agent.bench import TRAIN

from hostler.health.first import judge
from hostler.model.enums import IntentState, JobState, LeaseState, NodeState, Verdict
from hostler.model.lease import Intent, Lease, Node
from hostler.reach.port import BackupTarget, JobOrder, JobStatus, ReachError
from hostler.reach.ssh import SshTransport
from hostler.recipes import user_data
from hostler.recipes.backup import restore, seal
from hostler.recipes.control import ControlTimes, SshNodeControl
from hostler.vault.local import LocalKeys
from hostler.vault.stores import open_store

LEASE = "lease1"
USER = "hostler"
NOW = datetime(2030, 1, 1, tzinfo=UTC)
DEADLINE_S = 240
OFFERING = samples.offering("1", instance_type="g5.xlarge", accelerator="A10G", accelerator_count=1)
OPTIONS = {"accelerator": "A10G", "accelerator_count": "1", "torch": "false"}


@dataclass
class Site:
    """A deployment's keys, store and control, and the nodes of its one lease."""

    folder: Path
    boot: object
    keys: LocalKeys = field(init=False)
    control: SshNodeControl = field(init=False)

    def __post_init__(self) -> None:
        self.keys = LocalKeys(self.folder / "keys")
        transport = SshTransport(lambda: self.keys.user_certificate(user_data.PRINCIPAL, 7200))
        self.control = SshNodeControl(transport, times=ControlTimes(checkpoint_wait_s=20, term_wait_s=5))
        self.store = open_store(f"file://{self.folder}/store", client_factory=lambda: pytest.fail("file store"))
        self.data_key, self.wrapped = self.keys.new_data_key(LEASE)

    def node(self, number: int, **more):
        name = f"{LEASE}-0-{number}"
        intent = Intent(
            intent_id=name,
            lease_id=LEASE,
            slot_index=0,
            attempt=number,
            tenant="t",
            offering=OFFERING,
            client_token="x",
            state=IntentState.OPEN,
            fence=1,
            written_at=NOW,
            settle_after=NOW,
        )
        text = user_data.build(intent, self.keys, user=USER)
        machine = self.boot(
            user_data=text, accelerator_name="A10G", accelerator_count=1, instance_type="g5.xlarge", image="gpu", **more
        )
        node = Node(
            node_name=name,
            lease_id=LEASE,
            slot_index=0,
            intent_id=name,
            tenant="t",
            offering=OFFERING,
            provider_id=machine.id,
            state=NodeState.REGISTERED,
            launched_at=NOW,
            address=machine.spec.address,
            port=machine.spec.ssh_port,
            user=USER,
            host_key=self.keys.host_key_pair(name)[1],
        )
        return machine, node

    @property
    def target(self) -> BackupTarget:
        return BackupTarget(uri=f"file://{self.folder}/store", data_key=self.data_key, key_id=self.keys.key_id)

    @property
    def lease(self) -> Lease:
        return samples.lease(lease_id=LEASE, state=LeaseState.DRAINING, created_at=NOW, wrapped_data_key=self.wrapped)

    async def set_up(self, node: Node) -> JobStatus:
        end = time.monotonic() + DEADLINE_S
        status = None
        while time.monotonic() < end:
            with contextlib.suppress(ReachError):  # it reboots
                if status is None or status.state is JobState.MISSING:
                    status = await self.control.start_setup(node, f"{node.node_name}-setup-1", OPTIONS)
                else:
                    status = await self.control.poll_setup(node, f"{node.node_name}-setup-1")
                if status.state not in {JobState.STARTING, JobState.RUNNING, JobState.MISSING}:
                    return status
            await asyncio.sleep(0.5)
        raise AssertionError(status)

    async def until(self, node: Node, job_id: str, is_so) -> JobStatus:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            status = await self.control.poll_job(node, job_id)
            if is_so(status):
                return status
            await asyncio.sleep(0.2)
        raise AssertionError(status)


@pytest.fixture
async def site(tmp_path, boot):
    made = Site(tmp_path, boot)
    yield made
    await made.control.close()


def order(job_id: str, **more) -> JobOrder:
    argv = ("sh", "-c", 'exec "$HOSTLER_HOME/venv/bin/python" -u train.py')
    return JobOrder(job_id=job_id, attempt_token="t", argv=argv, files={"train.py": TRAIN.encode()}, **more)


def assert_read_through_nvml_and_of_this_node(document, machine):
    """The binding and a C library are real here: a structure handed over by value would end the probe's child."""
    assert (document["source"], document["errors"]) == ("nvml", [])
    assert document["accelerators"][0]["is_sram_threshold_exceeded"] is False
    assert document["boot_id"] == (machine.root / "proc/sys/kernel/random/boot_id").read_text().strip()


async def test_node_when_set_up_warned_and_lost_then_another_goes_on_from_the_store_and_powers_itself_off_at_the_end(
    site, bench, tmp_path
):
    machine, node = site.node(1)
    assert await site.control.is_up(node)
    done = await site.set_up(node)
    assert done.state is JobState.SUCCEEDED, done.log_tail
    document = await site.control.probe(node)
    assert_read_through_nvml_and_of_this_node(document, machine)
    report = judge(document, accelerator="A10G", accelerator_count=1)
    assert report.verdict in {Verdict.HEALTHY, Verdict.DEGRADED}, report
    await site.control.start_job(node, order("j1", env={"EVERY": "5"}), site.target)
    status = await site.until(node, "j1", lambda one: (one.shipped_step or 0) >= 10)
    assert status.state is JobState.RUNNING
    notice = {"action": "terminate", "time": "2030-01-01T00:02:00Z"}
    bench.runtime.set_metadata(machine.id, "spot/instance-action", json.dumps(notice))
    status = await site.until(node, "j1", lambda one: one.notice is not None and one.shipped_step > status.shipped_step)
    assert "terminate" in status.notice
    bench.runtime.kill(machine.id)
    assert not await site.control.is_up(node)
    _, second = site.node(2)
    assert (await site.set_up(second)).state is JobState.SUCCEEDED
    resumed = order("j2", env={"EVERY": "5", "LAST": str(status.shipped_step + 10)}, restore_step=status.shipped_step)
    await site.control.start_job(second, resumed, site.target)
    ended = await site.until(second, "j2", lambda one: one.state not in {JobState.STARTING, JobState.RUNNING})
    assert ended.state is JobState.SUCCEEDED, ended
    assert ended.resumed_from_step == status.shipped_step
    objects = await site.control.flush(second, LEASE)
    backup = seal(site.store, site.lease, objects, NOW, keys=site.keys)
    restored = restore(site.store, site.keys, LEASE, tmp_path / "restored", manifest_sha256=backup.manifest_sha256)
    assert {(name, job) for name, job, _ in restored.steps} == {(node.node_name, "j1"), (second.node_name, "j2")}
    await site.control.renew(second, 0)
    await site.control.close()
    end = time.monotonic() + 60
    while second.provider_id not in bench.powered_off and time.monotonic() < end:  # noqa: ASYNC110 - another thread's list
        await asyncio.sleep(0.2)
    assert second.provider_id in bench.powered_off
