"""The restore drill: a backup, taken at random, is restored whole, and training goes on from it. RPO and RTO are measured."""

import json
import random
import shutil
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from hostler.lifecycle.backup_check import released
from hostler.lifecycle.backup_notes import GOING, read_note
from hostler.lifecycle.events import make_event, words_of
from hostler.lifecycle.fleet import Fleet
from hostler.model.enums import JobState
from hostler.model.lease import Event, Job, LeaseView
from hostler.recipes.manifest import BackupError
from hostler.recipes.restoring import RestoreReport, restore
from hostler.recipes.resuming import ResumeError, resume_training, why_not_here


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillReport:
    """What a drill showed.

    Attributes:
        is_good: every hash was right, and training went on where it could be run here.
        step: the checkpoint that was resumed from; None when the backup has none or training was not run.
        not_shown: why training was not run; None when it was.
        rto_s: from the beginning of the restore to the first step beyond the checkpoint (else to the last hash).
        rpo_s, rpo_steps: work of the run that its newest checkpoint does not have; None when it can't be known.
    """

    lease_id: str
    is_good: bool
    why: str
    object_count: int = 0
    size_bytes: int = 0
    step: int | None = None
    not_shown: str | None = None
    rto_s: float | None = None
    rpo_s: float | None = None
    rpo_steps: int | None = None


def drill(
    fleet: Fleet, *, who: str, rng: random.Random, scratch: Path | None = None, lease_id: str | None = None
) -> DrillReport | None:
    """Restores one backup into a scratch folder, which is removed again, and writes what it showed into the ledger.

    Args:
        rng: chooses the backup. scratch: where the folder is made; None: the system's temporary folder. It needs room for the
            whole backup. lease_id: this one instead of a random one.

    Returns:
        None when there is no sealed backup yet.
    """
    views = [view for view in released(fleet) if view.backups and not _is_going(fleet, view)]
    if lease_id is not None:
        views = [view for view in views if view.lease.lease_id == lease_id]
    if not views:
        return None
    view = rng.choice(sorted(views, key=lambda one: one.lease.lease_id))
    folder = Path(tempfile.mkdtemp(prefix="hostler-drill-", dir=scratch))
    try:
        report = _drilled(fleet, view, folder)
    except (BackupError, ResumeError) as error:
        report = DrillReport(lease_id=view.lease.lease_id, is_good=False, why=words_of(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    fleet.ledger.append_events([_event(report, who)])
    return report


def _is_going(fleet: Fleet, view: LeaseView) -> bool:
    note = read_note(fleet.ledger, view.lease.lease_id)
    return note is not None and note.found in GOING


def _drilled(fleet: Fleet, view: LeaseView, folder: Path) -> DrillReport:
    lease, began = view.lease, time.monotonic()
    known = view.backups[-1].manifest_sha256
    found = restore(fleet.store, fleet.keys, lease.lease_id, folder / "restored", manifest_sha256=known)
    restored_s = time.monotonic() - began
    step = max((number for _, _, number in found.steps), default=None)
    rpo_s, rpo_steps = measure_rpo(view, step, _shipped_at(fleet, found, step))
    not_shown = "the backup holds no checkpoint" if step is None else why_not_here(lease)
    rto_s, why = restored_s, f"{found.object_count} objects, {found.size_bytes} bytes, every hash right"
    if step is not None and not_shown is None:
        resumed = resume_training(lease, gather(found, step, folder / "checkpoints"), step, folder / "training")
        rto_s = restored_s + resumed.began_s
        why += f"; training went on from step {step} to {resumed.to_step}"
    return DrillReport(
        lease_id=lease.lease_id,
        is_good=True,
        why=why,
        object_count=found.object_count,
        size_bytes=found.size_bytes,
        step=step if not_shown is None else None,
        not_shown=not_shown,
        rto_s=rto_s,
        rpo_s=rpo_s,
        rpo_steps=rpo_steps,
    )


def gather(found: RestoreReport, step: int, into: Path) -> Path:
    """Joins what all ranks of the newest job that shipped the step had of it into one folder; returns the folder."""
    jobs = {job_id for _, job_id, number in found.steps if number == step}
    chosen = max(jobs)
    for node_name, job_id, number in found.steps:
        if (job_id, number) == (chosen, step):
            shutil.copytree(found.folder / node_name / job_id / f"step-{step}", into / f"step-{step}", dirs_exist_ok=True)
    return into


def measure_rpo(view: LeaseView, step: int | None, shipped_at: datetime | None) -> tuple[float | None, int | None]:
    """Returns seconds and steps of work that the newest checkpoint lacks of the run's last job; None for what is unknown."""
    if not view.jobs or step is None:
        return None, None
    job = view.jobs[-1]
    steps = max(0, job.step - step)
    last = _last_sign(job)
    if job.state is JobState.SUCCEEDED and steps == 0:
        return 0.0, 0
    return (max(0.0, (last - shipped_at).total_seconds()) if last and shipped_at else None), steps


def _last_sign(job: Job) -> datetime | None:
    return job.ended_at or job.heartbeat_at


def _shipped_at(fleet: Fleet, found: RestoreReport, step: int | None) -> datetime | None:
    """Returns when the step was shipped, by the nodes' own lists: for measuring only, nothing is proved by it."""
    times = []
    for node_name in sorted({name for name, _, number in found.steps if number == step}):
        try:
            document: Any = json.loads(fleet.store.get(f"{found.lease_id}/{node_name}/index.json"))
            entries = [entry for entry in document["objects"] if entry.get("step") == step]
            times += [datetime.fromisoformat(entry["shipped_at"]) for entry in entries]
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return max((one for one in times if one.tzinfo is not None), default=None)


def _event(report: DrillReport, who: str) -> Event:
    return make_event(
        report.lease_id,
        who,
        "backup.drilled" if report.is_good else "backup.drill_failed",
        report.why,
        objects=report.object_count,
        size_bytes=report.size_bytes,
        step=report.step,
        training_not_shown=report.not_shown,
        rto_s=None if report.rto_s is None else f"{report.rto_s:.1f}",
        rpo_s=None if report.rpo_s is None else f"{report.rpo_s:.1f}",
        rpo_steps=report.rpo_steps,
    )
