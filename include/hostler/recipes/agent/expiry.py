"""The dead man's switch: powers the node off when nobody wants it any more.

Two times, both by the monotonic clock: ``renewed`` (the last renewal, or order, ran out) and ``lease end`` (no job may work
past it). It fires when the first is past and no job works, or when both are past; and before that when the last job has ended
and nobody has said a word to the node for long since (``abandoned_after_s`` of ``configure``). So it never fires because the
controller is away while a job works within its lease, and a wrong wall clock fires nothing. After a reboot, whose clock starts
anew, the full times run again.
"""

from __future__ import annotations

import math
import os
import subprocess
import time
from typing import Any

from hostler.recipes.agent.layout import BadRequestError, NodeHome, age_s, boot_id, read_json, stamp, write_json

SILENT_S = 3600.0  # a job without any sign of life for this long no longer holds the node
_SHUTDOWN_S = 30.0


def seconds(name: str, value: object) -> float:
    """Returns a time from now on. Raises BadRequestError for anything but a number of 0 or more."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise BadRequestError(f"{name}: a number of seconds, 0 or more, is needed")
    return float(value)


def renew(home: NodeHome, expires_in_s: float) -> dict[str, Any]:
    """Sets the switch anew; a lease end that would come earlier moves along."""
    known = _present(home) or {}
    end = known.get("end_in_s")
    return _write(home, expires_in_s, None if end is None else max(float(end), expires_in_s))


def set_lease_end(home: NodeHome, ends_in_s: float) -> dict[str, Any]:
    """Sets the time past which no job may work, and the switch with it."""
    return _write(home, ends_in_s, ends_in_s)


def _write(home: NodeHome, renewed_s: float, end_s: float | None) -> dict[str, Any]:
    document = {"set": stamp(), "renewed_for_s": renewed_s, "ends_after_s": end_s}
    write_json(home.expiry_file, document)
    return {"expires_in_s": renewed_s, "lease_ends_in_s": end_s}


def _present(home: NodeHome) -> dict[str, float | None] | None:
    """Returns what is left of both times; None when the switch was never set."""
    document = read_json(home.expiry_file)
    if document is None or not isinstance(document.get("set"), dict):
        return None
    if document["set"].get("boot_id") != boot_id():
        document = dict(document, set=stamp())
        write_json(home.expiry_file, document)
    gone = time.monotonic() - float(document["set"]["monotonic_s"])
    end = document.get("ends_after_s")
    return {
        "renewed_in_s": float(document["renewed_for_s"]) - gone,
        "end_in_s": None if end is None else float(end) - gone,
    }


def is_due(home: NodeHome, *, is_working: bool) -> bool:
    """True when the node is to be powered off now."""
    if not is_working and _is_abandoned(home):
        return True
    left = _present(home)
    if left is None or left["renewed_in_s"] is None or left["renewed_in_s"] > 0:
        return False
    return not is_working or (left["end_in_s"] is not None and left["end_in_s"] <= 0)


def _is_abandoned(home: NodeHome) -> bool:
    limit_s = home.node().get("abandoned_after_s")
    jobs = [folder for folder in home.all_jobs() if folder.state_file.exists()]
    if limit_s is None or not jobs:
        return False
    ages = [age_s(read_json(home.contact_file)), *(age_s((read_json(job.state_file) or {}).get("at")) for job in jobs)]
    return all(age is not None and age > float(limit_s) for age in ages)


def power_off() -> str | None:
    """Asks the system to power off. Returns None when it agreed, else words; the caller tries again."""
    command = ["shutdown", "-h", "now"]
    if os.geteuid() != 0:
        command = ["sudo", "-n", *command]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SHUTDOWN_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"shutdown: {type(error).__name__}"
    return None if done.returncode == 0 else f"shutdown: exit code {done.returncode}"
