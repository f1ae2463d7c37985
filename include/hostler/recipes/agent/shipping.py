"""Ships checkpoints, logs, metrics and output, sealed, while the job goes on. A lost node can't be asked any more."""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import importlib
import json
import shutil
import time
from pathlib import Path
from typing import Any, Callable

from hostler.recipes.agent import folders, jobs, logs
from hostler.recipes.agent.layout import (
    JobFolder,
    NodeHome,
    locked,
    plain_id,
    read_json,
    write_json,
    write_whole,
)
from hostler.recipes.agent.places import open_place
from hostler.recipes.agent.spool import Spool
from hostler.vault.envelope import CryptographyMissingError, Sealer

INDEX_VERSION = 1
KEPT_STEPS = 3
WAITING_STEPS = 50
_ROOM_RATIO = 0.2
_READ_BYTES = 1024 * 1024
_ROTATE_WAIT_S = 3.0


class Shipper:
    """Ships what one node has for one lease. Use under ``ship_lock``.

    Raises (constructor):
        FileNotFoundError: no target is configured: there is nowhere to ship to.
    """

    def __init__(self, home: NodeHome) -> None:
        node = home.node()
        target = node.get("backup")
        if not target:
            raise FileNotFoundError("no backup target is configured on this node")
        self._home = home
        self._lease_id = plain_id("lease_id", node.get("lease_id"))
        self._node_name = plain_id("node_name", node.get("node_name"))
        self._key = base64.b64decode(target["data_key"])
        self._place = open_place(target["uri"], target)
        self._index_key = f"{self._lease_id}/{self._node_name}/index.json"
        self.index = self._known()
        self._refused: dict[str, Exception] = {}
        self._spool = Spool(home.spool, self._lease_id, self._key)

    def _known(self) -> dict[str, Any]:
        """The list of what was shipped: ours, else the store's (a node that lost its folder must not forget)."""
        found = read_json(self._home.index_file(self._lease_id))
        if found is None:
            with contextlib.suppress(FileNotFoundError, ValueError):
                found = json.loads(self._place.get(self._index_key))
        if not isinstance(found, dict) or found.get("version") != INDEX_VERSION:
            found = {"version": INDEX_VERSION, "objects": []}
        found.update(lease_id=self._lease_id, node_name=self._node_name)
        return found

    def ship_all(self) -> None:
        """Ships everything that is complete and not shipped yet: checkpoints, newest first, then the rest.

        Raises:
            StoreError, OSError, CryptographyMissingError: it stopped; what was shipped before is on the list.
            FolderError, FileNotFoundError: a checkpoint can't be packed; everything else was shipped.
        """
        for _ in range(WAITING_STEPS):  # then logs and room on the disk have their turn, however fast checkpoints come
            if not self._ship_newest_checkpoint():
                break
        for folder in self._jobs():
            self._ship_logs(folder)
            if jobs.is_final(folder):
                self._ship_results(folder)
            self._prune(folder)
        self._spool.sweep(self._is_wanted, self._place)
        if self._refused:
            raise next(iter(self._refused.values()))

    def _jobs(self) -> list[JobFolder]:
        all_jobs = self._home.all_jobs()
        return [folder for folder in all_jobs if (read_json(folder.order_file) or {}).get("lease_id") == self._lease_id]

    def _ship_newest_checkpoint(self) -> bool:
        """Ships one checkpoint, the newest that is waiting; False when none is. Looked up anew each time: the job goes on."""
        waiting = []
        for folder in self._jobs():
            safe = self._safe_keys(folder)
            for step, path in folder.steps():
                key = self._checkpoint_key(folder, path)
                if key not in safe and key not in self._refused:
                    waiting.append((path.stat().st_mtime, step, key, path, folder))
        if not waiting:
            return False
        _, step, key, path, folder = max(waiting, key=lambda one: one[:2])
        try:
            self._ship(folder, key, "checkpoint", lambda sealer: folders.pack(path, sealer), step=step)
        except (folders.FolderError, FileNotFoundError) as error:  # this one can't be packed: the others must not wait for it
            self._refused[key] = error
        return True

    def _is_wanted(self, key: str) -> bool:
        """False for what is in the store, and for a checkpoint that is not on the node any more."""
        if any(entry["key"] == key for entry in self.index["objects"]):
            return False
        here = {self._checkpoint_key(folder, path) for folder in self._jobs() for _, path in folder.steps()}
        return key in here or "/step-" not in key

    def _safe_keys(self, folder: JobFolder) -> set[str]:
        """Keys of what is in the store already, by this job or by the one that it resumes."""
        restored = (read_json(folder.order_file) or {}).get("restore_step")
        found = {self._checkpoint_key(folder, path) for step, path in folder.steps() if step == restored}
        return found | {entry["key"] for entry in self.index["objects"]}

    def _checkpoint_key(self, folder: JobFolder, path: Path) -> str:
        return f"{self._node_name}/{folder.job_id}/{path.name}.tar.hste"

    def _ship_logs(self, folder: JobFolder) -> None:
        known = {entry["key"] for entry in self.index["objects"]}
        found = logs.pieces(folder.logs)
        for start, path in found if jobs.is_final(folder) else found[:-1]:
            key = f"{self._node_name}/{folder.job_id}/log-{start:020d}.hste"
            if key not in known:
                self._ship(folder, key, "log", lambda sealer, path=path: _copy(path, sealer))  # type: ignore[misc]

    def _ship_results(self, folder: JobFolder) -> None:
        known = {entry["key"] for entry in self.index["objects"]}
        prefix = f"{self._node_name}/{folder.job_id}/"
        metrics, output = prefix + "metrics.hste", prefix + "output.tar.hste"
        if metrics not in known and folder.metrics_file.is_file():
            self._ship(folder, metrics, "metrics", lambda sealer: _copy(folder.metrics_file, sealer))
        if output not in known and folder.output.is_dir() and any(folder.output.iterdir()):
            self._ship(folder, output, "output", lambda sealer: folders.pack(folder.output, sealer))

    def _ship(
        self, folder: JobFolder, key: str, kind: str, write: Callable[[Sealer], None], *, step: int | None = None
    ) -> None:
        """Seals into a spool file, sends it, checks it, and only then lists it, here and in the store.

        What could not be sent stays in the spool: the next round goes on where this one broke off.
        """
        spooled, sealed = self._spool.seal(key, write)
        self._place.put_file(f"{self._lease_id}/{key}", spooled)
        order = read_json(folder.order_file) or {}
        entry = {
            "key": key,
            "kind": kind,
            "sha256": sealed.sha256,
            "plain_sha256": sealed.plain_sha256,
            "size_bytes": sealed.size_bytes,
            "step": step,
            "job_id": folder.job_id,
            "rank": order.get("rank", 0),
            "world_size": order.get("world_size", 1),
            "shipped_at": dt.datetime.now(dt.timezone.utc).isoformat(),
        }
        self.index["objects"] = [one for one in self.index["objects"] if one["key"] != key] + [entry]
        self._write_index()
        self._spool.remove(key)

    def _write_index(self) -> None:
        write_json(self._home.index_file(self._lease_id), self.index)
        self._place.put(self._index_key, self._home.index_file(self._lease_id).read_bytes())

    def _prune(self, folder: JobFolder) -> None:
        """Keeps the newest few on the node. Older ones go once they are in the store; when shipping lags far behind and the
        disk fills, they go anyway: a full disk would end the job.
        """
        safe = self._safe_keys(folder)
        for place, (_, path) in enumerate(folder.steps()):
            key = self._checkpoint_key(folder, path)
            if place < KEPT_STEPS or (key not in safe and place < WAITING_STEPS and _has_room(path)):
                continue
            gone = path.with_name(f".gone-{path.name}")
            with contextlib.suppress(OSError):
                path.rename(gone)
                shutil.rmtree(str(gone))


def _has_room(path: Path) -> bool:
    usage = shutil.disk_usage(str(path.parent))
    return usage.free > _ROOM_RATIO * usage.total


def _copy(path: Path, sealer: Sealer) -> None:
    with path.open("rb") as source:
        while True:
            piece = source.read(_READ_BYTES)
            if not piece:
                return
            sealer.write(piece)


def ship(home: NodeHome) -> dict[str, Any]:
    """Ships all once and returns ``{"objects": [...], "error": None or words}``; never raises for a store that fails."""
    objects: list[Any] = []
    error = None
    importlib.invalidate_caches()  # the setup may have installed cryptography since we looked
    with locked(home.ship_lock):
        shipper = None
        try:
            shipper = Shipper(home)
            shipper.ship_all()
        except FileNotFoundError as missing:
            error = str(missing) if home.node().get("backup") else None
        except CryptographyMissingError as missing:
            error = str(missing)
        except Exception as other:  # noqa: BLE001 - shipping must go on at the next round whatever went wrong in this one
            error = f"{type(other).__name__}: {str(other)[:300]}"
        if shipper is not None:
            objects = shipper.index["objects"]
    if error != (read_json(home.ship_file) or {}).get("error"):
        write_json(home.ship_file, {"error": error})
    return {"objects": objects, "error": error}


def flush(home: NodeHome) -> dict[str, Any]:
    """As ``ship``, after the running jobs' logs were cut, so that all written so far goes out."""
    waiting = [folder for folder in home.all_jobs() if folder.order_file.exists() and not jobs.is_final(folder)]
    for folder in waiting:
        write_whole(folder.rotate_request, b"", is_durable=False)
    deadline = time.monotonic() + _ROTATE_WAIT_S
    while any(folder.rotate_request.exists() for folder in waiting) and time.monotonic() < deadline:
        time.sleep(0.05)
    return ship(home)
