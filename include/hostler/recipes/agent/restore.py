"""Fetches a checkpoint that any node of the lease shipped, so that all ranks resume from the same step."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from hostler.recipes.agent import folders
from hostler.recipes.agent.layout import JobFolder, NodeHome, plain_id
from hostler.recipes.agent.places import open_place
from hostler.recipes.agent.s3 import StoreError
from hostler.vault.envelope import PieceReader, open_pieces

_KEY = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)+")


class RestoreError(Exception):
    """The step can't be restored; the job is not started."""


def restore_step(home: NodeHome, folder: JobFolder, order: dict[str, Any]) -> int:
    """Unpacks every checkpoint object of the step into the job's checkpoint folder; returns the number of files.

    Of several attempts that shipped the step, one is taken whole: one that all its ranks shipped if there is one, the newest of
    those. This job's own rank comes first, so that a file which several ranks wrote is its own.

    Raises:
        RestoreError: no object of the step is in the store, or no target is configured.
        EnvelopeError, FolderError, StoreError, OSError: an object is damaged or can't be read.
    """
    node = home.node()
    target, step = node.get("backup"), order["restore_step"]
    if not target:
        raise RestoreError(f"restore of step {step}: no backup target is configured on this node")
    lease_id = plain_id("lease_id", order["lease_id"])
    place = open_place(target["uri"], target)
    chosen = choose(_listed(place, lease_id), step, order["rank"])
    if not chosen:
        raise RestoreError(f"restore of step {step}: no checkpoint of that step is in the store")
    count = 0
    for entry in chosen:
        name = "{}/{}".format(lease_id, entry["key"])
        reader = PieceReader(open_pieces(place.pieces(name), base64.b64decode(target["data_key"]), name))
        count += folders.unpack(reader, folder.checkpoints, accept=lambda path: path.split("/")[0].startswith("step-"))
        if reader.drain() != entry["plain_sha256"]:
            raise RestoreError(f"{name}: not what its node shipped")
    return count


def _listed(place: Any, lease_id: str) -> list[dict[str, Any]]:
    """All entries of all nodes' indexes. A node's index may name only its own objects."""
    found = []
    for node_name in place.folders(lease_id + "/"):
        try:
            document = json.loads(place.get(f"{lease_id}/{node_name}/index.json"))
        except FileNotFoundError:
            continue
        except ValueError as error:
            raise StoreError(f"{node_name}: unreadable index") from error
        entries = document.get("objects", []) if isinstance(document, dict) else []
        found += [entry for entry in entries if isinstance(entry, dict) and _is_own(entry, node_name)]
    return found


def _is_own(entry: dict[str, Any], node_name: str) -> bool:
    key = entry.get("key")
    if not isinstance(key, str) or not _KEY.fullmatch(key) or not isinstance(entry.get("plain_sha256"), str):
        return False
    return key.split("/")[0] == node_name and not {".", ".."} & set(key.split("/"))


def choose(entries: list[dict[str, Any]], step: int, rank: int) -> list[dict[str, Any]]:
    """Returns the objects to unpack, in order; empty when there are none of the step."""
    attempts: dict[str, dict[int, dict[str, Any]]] = {}
    for entry in entries:
        if entry.get("kind") == "checkpoint" and entry.get("step") == step:
            by_rank = attempts.setdefault(str(entry.get("job_id")), {})
            known = by_rank.get(int(entry.get("rank") or 0))
            if known is None or str(known.get("shipped_at")) < str(entry.get("shipped_at")):
                by_rank[int(entry.get("rank") or 0)] = entry

    def worth(by_rank: dict[int, dict[str, Any]]) -> tuple[bool, str]:
        expected = max(int(entry.get("world_size") or 1) for entry in by_rank.values())
        return len(by_rank) >= expected, max(str(entry.get("shipped_at")) for entry in by_rank.values())

    if not attempts:
        return []
    best = max(attempts.values(), key=worth)
    return [best[one] for one in sorted(best, key=lambda one: (one != rank, one))]
