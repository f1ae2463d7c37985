"""A whole Fleet in memory, with a clock that moves only when somebody sleeps: ledger, cloud, nodes, keys, store."""

import asyncio
import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hostler.drivers.fake.cloud import FakeCloud
from hostler.drivers.fake.driver import FakeDriver
from hostler.ledger.port import Caps
from hostler.lifecycle.fleet import Fleet, LifecycleSettings
from hostler.lifecycle.seams import Seams
from hostler.model.enums import FleetMode, JobState, Verdict
from hostler.model.health import HealthReport
from hostler.model.lease import Backup, Node
from hostler.reach.port import JobOrder, JobStatus, ReachError
from hostler.stores.memory import MemoryLedger

DEPLOYMENT = "lab"


class Clock:
    def __init__(self) -> None:
        self.at = datetime(2026, 12, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@dataclass
class FakeNodes:
    """Nodes that do as told. ``job_polls``: how many polls a job runs before it ends with ``job_end``."""

    verdict: Verdict = Verdict.HEALTHY
    job_polls: int = 2
    job_end: JobState = JobState.SUCCEEDED
    silent: set[str] = field(default_factory=set)
    polls: dict[tuple[str, str], int] = field(default_factory=dict)
    stopped: list[tuple[str, str]] = field(default_factory=list)
    closed: int = 0
    job_started: asyncio.Event = field(default_factory=asyncio.Event)

    async def is_up(self, node: Node) -> bool:
        return node.node_name not in self.silent

    async def start_setup(self, node: Node, job_id: str, options: Mapping[str, str]) -> JobStatus:
        return JobStatus(job_id=job_id, state=JobState.SUCCEEDED, exit_code=0)

    async def poll_setup(self, node: Node, job_id: str) -> JobStatus:
        return JobStatus(job_id=job_id, state=JobState.SUCCEEDED, exit_code=0)

    async def probe(self, node: Node) -> Mapping[str, object]:
        if node.node_name in self.silent:
            raise ReachError(f"{node.node_name} does not answer")
        return {}

    async def start_job(self, node: Node, order: JobOrder, backup: object) -> JobStatus:
        self.polls.setdefault((node.node_name, order.job_id), 0)
        self.job_started.set()
        return JobStatus(job_id=order.job_id, state=JobState.RUNNING, heartbeat_age_s=0)

    async def poll_job(self, node: Node, job_id: str) -> JobStatus:
        key = (node.node_name, job_id)
        if key not in self.polls:
            return JobStatus(job_id=job_id, state=JobState.MISSING)
        self.polls[key] += 1
        if self.polls[key] <= self.job_polls:
            return JobStatus(job_id=job_id, state=JobState.RUNNING, heartbeat_age_s=0, step=self.polls[key])
        is_well = self.job_end is JobState.SUCCEEDED
        return JobStatus(
            job_id=job_id,
            state=self.job_end,
            exit_code=0 if is_well else 1,
            step=100,
            metrics=(("accuracy", 0.97),),
            weights_sha256="ab" * 32,
            error=None if is_well else "the script failed",
        )

    async def stop_job(self, node: Node, job_id: str, attempt_token: str, *, checkpoint: bool) -> JobStatus:
        self.stopped.append((node.node_name, job_id))
        return JobStatus(job_id=job_id, state=JobState.STOPPED)

    async def flush(self, node: Node, lease_id: str) -> Sequence[object]:
        return ()

    async def renew(self, node: Node, expires_in_s: float) -> None:
        return None

    async def close(self) -> None:
        self.closed += 1


class FakeKeys:
    key_id = "fake"

    def new_data_key(self, context: str) -> tuple[bytes, str]:
        return bytes(32), base64.b64encode(context.encode()).decode()

    def unwrap(self, wrapped: str, context: str) -> bytes:
        return bytes(32)


class FakeIdentity:
    def host_key_pair(self, intent_id: str) -> tuple[str, str]:
        return "private", f"ssh-ed25519 {intent_id}"

    def user_ca_public_key(self) -> str:
        return "ssh-ed25519 ca"


@dataclass
class World:
    """The collaborators, to be set and asked by tests."""

    clock: Clock
    cloud: FakeCloud
    nodes: FakeNodes
    ledger: MemoryLedger
    fleet: Fleet


def make_world() -> World:
    clock = Clock()
    cloud = FakeCloud(clock=clock, boot_s=4, ending_s=5)
    nodes = FakeNodes()
    ledger = MemoryLedger(clock)
    caps = Caps(usd_per_hour=Decimal(1000), nodes=20)
    fleet = Fleet(
        settings=LifecycleSettings(deployment=DEPLOYMENT, mode=FleetMode.ENFORCE, tenant_caps={"default": caps}),
        ledger=ledger,
        drivers={"fake": FakeDriver(deployment=DEPLOYMENT, cloud=cloud)},
        nodes=nodes,
        keys=FakeKeys(),
        identity=FakeIdentity(),
        store=None,  # the seal below writes nothing
        user_data=lambda intent: f"#cloud-config {intent.intent_id}",
        sleep=clock.sleep,
        secret={"known": "value-of-known"}.__getitem__,
        seams=Seams(judge=lambda _document, **_what: HealthReport(verdict=nodes.verdict), seal=_seal),
    )
    return World(clock=clock, cloud=cloud, nodes=nodes, ledger=ledger, fleet=fleet)


def _seal(store, lease, objects, sealed_at, **_keys) -> Backup:
    return Backup(
        backup_id=f"{lease.lease_id}-backup",
        lease_id=lease.lease_id,
        manifest_uri=f"s3://backups/{lease.lease_id}/manifest.json",
        manifest_sha256="0" * 64,
        object_count=0,
        size_bytes=0,
        sealed_at=sealed_at,
        is_verified=True,
    )
