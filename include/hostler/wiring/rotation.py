"""From fleet.yaml's ``log_rotation`` block to a rotation on this machine."""

import json
import shutil
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hostler.config.schema import FleetFile
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.log_archive import LogArchive
from hostler.lifecycle.open_files import writers_of
from hostler.lifecycle.rotate import RotationRule, Rotator
from hostler.lifecycle.rotation import RotationReport, rotate_logs


async def rotate_this_machine(
    fleet: Fleet, fleet_file: FleetFile, *, who: str, airflow_patterns: Sequence[str] = ()
) -> RotationReport:
    """Rotates the files that fleet.yaml names, and Airflow's where it asks for them.

    Args:
        airflow_patterns: where Airflow's logs are; used with ``log_rotation.airflow`` only.
    """
    settings = fleet_file.log_rotation
    folder = settings.folder.expanduser()
    airflow = tuple(airflow_patterns) if settings.airflow else ()
    with _state(folder / "began.json") as began:
        return await rotate_logs(
            fleet,
            rotator_of(fleet, fleet_file, began, airflow),
            (*settings.paths, *airflow),
            who=who,
            lock=folder / "rotation.lock",
            wants_nodes=settings.nodes,
        )


def rotator_of(
    fleet: Fleet, fleet_file: FleetFile, began: dict[str, float], airflow: Sequence[str] = ()
) -> Callable[[Path], Rotator]:
    """Returns what gives the rotator of a file: Airflow's files have a rule of their own."""
    settings = fleet_file.log_rotation
    rule = RotationRule(
        most_bytes=settings.most_mib * 1024 * 1024,
        most_age_s=settings.most_age_s,
        settle_s=settings.settle_s,
        full_ratio=settings.full_ratio,
        pid_file=settings.pid_file.expanduser() if settings.pid_file else None,
        reopen_signal=signal.Signals[settings.reopen_signal],
    )
    # A task's log is written once, for as long as the task lasts: only what has rested long enough is cut.
    resting = RotationRule(most_bytes=2**62, most_age_s=settings.airflow_after_s, full_ratio=0, settle_s=settings.settle_s)
    roots = tuple(pattern.split("*", 1)[0] for pattern in airflow)

    def make(path: Path) -> Rotator:
        return Rotator(
            archive=archive_of(fleet, fleet_file),
            rule=resting if roots and str(path).startswith(roots) else rule,
            now=lambda: datetime.now(UTC),
            holders=writers_of,
            free_ratio=free_ratio,
            began=began,
        )

    return make


def archive_of(fleet: Fleet, fleet_file: FleetFile) -> LogArchive:
    """Returns the archive of this machine's logs in the backup store."""
    host = fleet_file.log_rotation.host or "".join(
        letter if letter.isalnum() or letter in "._-" else "_" for letter in socket.gethostname()
    )
    return LogArchive(store=fleet.store, keys=fleet.keys, prefix=f"hostler-logs/{fleet_file.deployment}/{host}")


def free_ratio(path: Path) -> float:
    """Returns the free share of the disk that a path is on."""
    usage = shutil.disk_usage(path)
    return usage.free / usage.total if usage.total else 1.0


@contextmanager
def _state(path: Path) -> Iterator[dict[str, float]]:
    """Yields when each file was first seen; kept afterwards where the disk has room. Lost, it only begins anew."""
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = {}
    began = {str(key): float(value) for key, value in found.items()} if isinstance(found, dict) else {}
    yield began
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(began), encoding="utf-8")
        temporary.replace(path)
    except OSError:
        return
