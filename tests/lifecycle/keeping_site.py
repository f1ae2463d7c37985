"""A fleet in memory whose backups are real: real envelopes and manifests in a store that tests can harm."""

import io
import json
import tarfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from tests.fake_world import DEPLOYMENT, make_world
from tests.vault.memory_store import MemoryStore

from hostler.lifecycle.seams import Seams
from hostler.model.enums import CapacityType, JobState, LeaseState
from hostler.model.lease import Job, Lease, lease_id_for
from hostler.model.request import NodeRequest, RunRef
from hostler.recipes.backup import seal
from hostler.vault.envelope import Sealer
from hostler.vault.local import LocalKeys

WAY = (LeaseState.DRAINING, LeaseState.RELEASED)


class KeepingSite:
    def __init__(self, folder: Path) -> None:
        self.world = make_world()
        self.keys = LocalKeys(folder / "keys")
        self.store = MemoryStore()
        self.fleet = replace(self.world.fleet, store=self.store, keys=self.keys, seams=Seams())
        self.ledger = self.fleet.ledger

    def run(self, name: str, *, tenant: str = "default", days_ago: float = 0, steps: dict[int, Path | bytes] | None = None,
            is_sealed: bool = True, is_released: bool = True, deployment: str = DEPLOYMENT, job: Job | None = None,
            **request) -> str:  # fmt: skip
        """Adds a lease as a run leaves it, sealed so many days ago; returns its id."""
        run = RunRef(dag_id="dag", run_id=name)
        lease_id = lease_id_for(run)
        key, wrapped = self.keys.new_data_key(lease_id)
        asked = {
            "tenant": tenant,
            "accelerator": "H100",
            "accelerators_per_node": 1,
            "node_count": 1,
            "capacity_types": (CapacityType.SPOT,),
            "max_cost_usd": Decimal(1),
            **request,
        }
        at = self.world.clock.at - timedelta(days=days_ago)
        lease = Lease(
            lease_id=lease_id, deployment=deployment, run=run, request=NodeRequest(**asked), state=LeaseState.REQUESTED,
            created_at=at, wrapped_data_key=wrapped,
        )  # fmt: skip
        self.ledger.admit(lease, [])
        self.ship(lease_id, key, {10: b"ten"} if steps is None else steps)
        if job is not None:
            self.ledger.write(lease_id, [replace(job, lease_id=lease_id)], [])
        if is_sealed:
            self.ledger.write(lease_id, [seal(self.store, lease, (), at, keys=self.keys)], [])
        for state in WAY if is_released else ():
            self.ledger.write(lease_id, [replace(self.ledger.view(lease_id).lease, state=state)], [])
        return lease_id

    def ship(self, lease_id: str, key: bytes, steps: dict[int, Path | bytes], job_id: str = "j1") -> None:
        objects = []
        for step, content in steps.items():
            tar = io.BytesIO()
            with tarfile.open(fileobj=tar, mode="w") as archive:
                if isinstance(content, Path):
                    archive.add(content, f"step-{step}")
                else:
                    entry = tarfile.TarInfo(f"step-{step}/weights")
                    entry.size = len(content)
                    archive.addfile(entry, io.BytesIO(content))
            name = f"node-0/{job_id}/step-{step}.tar.hste"
            sink = io.BytesIO()
            sealer = Sealer(sink, key, f"{lease_id}/{name}")
            sealer.write(tar.getvalue())
            done = sealer.close()
            self.store.put(f"{lease_id}/{name}", sink.getvalue())
            shipped_at = datetime(2026, 12, 1, 11, 50, tzinfo=UTC).isoformat()
            sizes = {"sha256": done.sha256, "plain_sha256": done.plain_sha256, "size_bytes": done.size_bytes}
            objects.append({"key": name, "kind": "checkpoint", "step": step, "shipped_at": shipped_at, **sizes})
        self.store.put(f"{lease_id}/node-0/index.json", json.dumps({"version": 1, "objects": objects}).encode())

    def flip(self, lease_id: str, step: int = 10) -> None:
        key = f"{lease_id}/node-0/j1/step-{step}.tar.hste"
        content = bytearray(self.store.content[key])
        content[len(content) // 2] ^= 1
        self.store.content[key] = bytes(content)

    def events(self, what: str) -> list[str | None]:
        return [event.lease_id for event in self.ledger.list_events(None) if event.what == what]


def job(state: JobState = JobState.SUCCEEDED, step: int = 10) -> Job:
    began = datetime(2026, 12, 1, 11, tzinfo=UTC)
    return Job(
        job_id="j1", lease_id="", attempt=1, attempt_token="t", node_names=("node-0",), state=state, started_at=began,
        ended_at=began + timedelta(hours=1), step=step,
    )  # fmt: skip
