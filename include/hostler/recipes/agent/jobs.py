"""Jobs as the controller sees them: start (or re-attach), status, checkpoint, stop."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import math
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from hostler.recipes.agent import logs, processes
from hostler.recipes.agent.layout import (
    BadRequestError,
    JobFolder,
    NodeHome,
    age_s,
    boot_id,
    locked,
    plain_id,
    private_folder,
    read_json,
    stamp,
    write_json,
    write_whole,
)

FINAL = ("succeeded", "failed", "stopped")
RESTART_STATUS = 75  # EX_TEMPFAIL of sysexits.h: "not done, start me again"; the setup says so before it reboots the node
REBOOTED = "the node was started anew while the job ran"
SHUT_DOWN = "the node was shut down while the job ran"
KILLED = "the job's supervisor on the node was killed; the job's processes were ended"
_CUT = (REBOOTED, SHUT_DOWN, KILLED)
"""Ends that came from outside the job: told as ``stopped``, for they say nothing of the workload."""

_MOST_RESUMES = 8
_START_S = 20.0
_STOP_MARGIN_S = 15.0


def start(home: NodeHome, order: dict[str, Any]) -> dict[str, Any]:
    """Starts the job and returns its status. The same job id again re-attaches: it never starts twice.

    Raises:
        BadRequestError: the order is not one; nothing was started.
    """
    folder = home.job(order.get("job_id"))
    kept = _checked(order)
    with locked(folder.lock_file):
        if not folder.supervisor_file.exists():
            private_folder(folder.root)
            write_json(folder.order_file, kept)
            _launch(folder, {"secrets": dict(order.get("secrets") or {}), "files": dict(order.get("files") or {})})
    return status(home, folder.job_id)


def resume(home: NodeHome, job_id: object) -> dict[str, Any]:
    """Starts a job again that a reboot of the node cut off (a node that is going down still answers for a while), or that
    asked for it, from its files on the node. Any other job is left as it is.

    Only for jobs that were started with ``may_resume`` (the setup): secrets are kept nowhere on the node.
    """
    folder = home.job(job_id)
    if status(home, job_id).get("may_resume"):
        with locked(folder.lock_file):
            if _may_resume(folder):
                order = read_json(folder.order_file) or {}
                write_json(folder.order_file, dict(order, resumes=order.get("resumes", 0) + 1))
                for path in (folder.supervisor_file, folder.state_file, folder.stop_file):
                    with contextlib.suppress(FileNotFoundError):
                        path.unlink()
                _launch(folder, {"secrets": {}, "files": {}})
    return status(home, job_id)


def _may_resume(folder: JobFolder) -> bool:
    state = read_json(folder.state_file) or {}
    may_go_on = _was_cut(state) or (state.get("state") == "failed" and state.get("exit_code") == RESTART_STATUS)
    order = read_json(folder.order_file) or {}
    return may_go_on and bool(order.get("may_resume")) and order.get("resumes", 0) < _MOST_RESUMES


def _was_cut(state: dict[str, Any]) -> bool:
    """True when the job ended because its node or its supervisor did: not the workload's doing."""
    return state.get("state") == "failed" and state.get("error") in _CUT


def _checked(order: dict[str, Any]) -> dict[str, Any]:
    """Returns the part of the order that may lie on the disk: no secrets, no file contents."""
    argv = order.get("argv")
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) and "\0" not in word for word in argv):
        raise BadRequestError("argv: a list of one or more words is needed")
    for field in ("env", "secrets", "files"):
        values = order.get(field) or {}
        if not isinstance(values, dict) or not all(isinstance(one, str) for pair in values.items() for one in pair):
            raise BadRequestError(f"{field}: names with text values are needed")
    for name, text in (order.get("files") or {}).items():
        check_relative("files", name)
        try:
            base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise BadRequestError(f"files: {name} is not base64") from error
    token = order.get("attempt_token")
    if not isinstance(token, str) or not token:
        raise BadRequestError("attempt_token: a text is needed")
    kept = {name: order.get(name) for name in ("argv", "env", "attempt_token", "master_host", "restore_step", "lease_id")}
    kept["env"] = order.get("env") or {}
    kept["may_resume"] = order.get("may_resume") is True
    kept["lease_id"] = plain_id("lease_id", order.get("lease_id"))
    for name, least, usual in (("rank", 0, 0), ("world_size", 1, 1), ("master_port", 1, 29500)):
        kept[name] = _whole(name, order.get(name, usual), least)
    if kept["restore_step"] is not None:
        kept["restore_step"] = _whole("restore_step", kept["restore_step"], 0)
    return kept


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadRequestError(f"{name}: a whole number of {least} or more is needed")
    return value


def check_relative(field: str, name: str) -> str:
    """Returns a path that stays below its folder. Raises BadRequestError for any other."""
    parts = name.split("/")
    if not name or "\0" in name or any(part in {"", ".", ".."} for part in parts):
        raise BadRequestError(f"{field}: {name!r} is no path below the code folder")
    return name


def _launch(folder: JobFolder, handed: dict[str, Any]) -> None:
    """Starts the supervisor in a session of its own, hands secrets over its standard input, waits for its first word."""
    errors = os.open(str(folder.agent_errors), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        supervisor = subprocess.Popen(
            [sys.executable, sys.argv[0], "supervise", folder.job_id],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd="/",
            start_new_session=True,
        )
    finally:
        os.close(errors)
    if supervisor.stdin is None or supervisor.stdout is None:  # cannot be: both were asked for
        raise RuntimeError("no pipe to the supervisor")
    supervisor.stdin.write(json.dumps(handed).encode())
    supervisor.stdin.close()
    ready, _, _ = select.select([supervisor.stdout], [], [], _START_S)
    if not ready or supervisor.stdout.read(1) != b"+":
        supervisor.kill()
        supervisor.wait()
        with contextlib.suppress(FileNotFoundError):
            folder.supervisor_file.unlink()
        raise RuntimeError("the job's supervisor did not start; see supervisor.err in the job's folder on the node")
    supervisor.stdout.close()
    supervisor.returncode = 0  # it outlives us on purpose: no warning about a child that was not waited for


def status(home: NodeHome, job_id: object) -> dict[str, Any]:
    """Returns the job's status document; state ``missing`` when the node knows no such job."""
    folder = home.job(job_id)
    if not folder.order_file.exists() or _never_began(folder):
        return {"job_id": folder.job_id, "state": "missing"}
    _settle(folder)
    state = read_json(folder.state_file) or {"state": "starting"}
    report = read_json(folder.report_file) or {}
    notice = read_json(home.notice_file) or {}
    shipping = read_json(home.ship_file) or {}
    return {
        "job_id": folder.job_id,
        "state": "stopped" if _was_cut(state) else state.get("state"),
        "exit_code": state.get("exit_code"),
        "error": state.get("error"),
        "heartbeat_age_s": _rounded(age_s(read_json(folder.heartbeat_file))),
        "step": report.get("step", 0),
        "resumed_from_step": report.get("resumed_from_step", 0),
        "metrics": report.get("metrics", {}),
        "weights_sha256": report.get("weights_sha256"),
        "shipped_step": _shipped_step(home, folder),
        "shipping_error": shipping.get("error"),
        "notice": notice.get("words"),
        "may_resume": _may_resume(folder),
        "log_tail": logs.tail(folder.logs),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 3)


def _shipped_step(home: NodeHome, folder: JobFolder) -> int | None:
    order = read_json(folder.order_file) or {}
    index = read_json(home.index_file(order["lease_id"])) if order.get("lease_id") else None
    entries = (index or {}).get("objects", [])
    steps = [entry["step"] for entry in entries if entry.get("kind") == "checkpoint" and entry.get("job_id") == folder.job_id]
    if order.get("restore_step") is not None:
        steps.append(order["restore_step"])
    return max(steps) if steps else None


def is_final(folder: JobFolder) -> bool:
    """True when the job has ended and its state will not change any more."""
    return (read_json(folder.state_file) or {}).get("state") in FINAL


def marker(folder: JobFolder) -> str:
    """Returns the environment entry that all processes of the job carry, and no others."""
    return f"HOSTLER_CHECKPOINT_DIR={folder.checkpoints}"


def _never_began(folder: JobFolder) -> bool:
    """True when a start was broken off before the supervisor's first word: nothing runs, and the order has to come again."""
    if folder.supervisor_file.exists() or folder.state_file.exists():
        return False
    with locked(folder.lock_file):  # a start that is under way holds it
        return not folder.supervisor_file.exists() and not folder.state_file.exists()


def _settle(folder: JobFolder) -> None:
    """Ends and records a job that nobody watches any more, so that its accelerators are free and its state is true."""
    if is_final(folder) or not folder.supervisor_file.exists():
        return
    if processes.is_alive(read_json(folder.supervisor_file)):
        return
    with locked(folder.lock_file):
        who = read_json(folder.supervisor_file)
        if is_final(folder) or processes.is_alive(who):
            return
        same_boot = bool(who) and who is not None and who.get("boot_id") == boot_id()
        if same_boot:
            leader = read_json(folder.process_file)
            processes.end(
                lambda: processes.members(leader["pid"] if leader and processes.is_alive(leader) else None, marker(folder)),
                grace_s=2.0,
            )
        write_json(
            folder.state_file, {"state": "failed", "exit_code": None, "error": KILLED if same_boot else REBOOTED, "at": stamp()}
        )


def checkpoint(home: NodeHome, job_id: object) -> dict[str, Any]:
    """Asks a running job for a checkpoint now and returns its status at once."""
    folder = home.job(job_id)
    request_checkpoint(folder)
    return status(home, job_id)


def request_checkpoint(folder: JobFolder) -> None:
    """Leaves the request for the job's supervisor; nothing happens when the job has ended."""
    if folder.order_file.exists() and not is_final(folder):
        write_whole(folder.checkpoint_request, b"", is_durable=False)


def stop(home: NodeHome, request: dict[str, Any]) -> dict[str, Any]:
    """Ends a job: asks for a checkpoint when wanted and waits for it, then SIGTERM, then SIGKILL to all its processes.

    A wrong ``attempt_token`` changes nothing. Returns the status after the end, or after the bounded wait.
    """
    folder = home.job(request.get("job_id"))
    before = status(home, folder.job_id)
    if before["state"] == "missing" or before["state"] in FINAL:
        return before
    import hmac

    order = read_json(folder.order_file) or {}
    if not hmac.compare_digest(str(order.get("attempt_token")).encode(), str(request.get("attempt_token")).encode()):
        return before
    wish = {
        "checkpoint": bool(request.get("checkpoint")),
        "checkpoint_wait_s": _seconds(request, "checkpoint_wait_s", 60.0),
        "term_wait_s": _seconds(request, "term_wait_s", 20.0),
    }
    if not folder.stop_file.exists():
        write_json(folder.stop_file, wish)
    deadline = time.monotonic() + wish["checkpoint_wait_s"] + wish["term_wait_s"] + _STOP_MARGIN_S
    while not is_final(folder) and time.monotonic() < deadline:
        time.sleep(0.1)
        _settle(folder)
    return status(home, folder.job_id)


def _seconds(request: dict[str, Any], name: str, usual: float) -> float:
    value = request.get(name, usual)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 3600:  # noqa: PLR2004 - an hour
        raise BadRequestError(f"{name}: 0 to 3600 seconds are allowed")
    return float(value)


def read_log(home: NodeHome, job_id: object, offset: object) -> dict[str, Any]:
    """Returns log bytes from an offset on, base64, with the next offset."""
    folder = home.job(job_id)
    data, following = logs.read(folder.logs, _whole("offset", offset, 0), 1024 * 1024)
    return {"data": base64.b64encode(data).decode(), "next_offset": following}


def working(home: NodeHome, *, silent_s: float) -> list[JobFolder]:
    """Returns the jobs that run now: watched, not ended, and not silent for ``silent_s``."""
    found = []
    for folder in home.all_jobs():
        if is_final(folder) or not processes.is_alive(read_json(folder.supervisor_file)):
            continue
        age = age_s(read_json(folder.heartbeat_file))
        if age is None or age < silent_s:
            found.append(folder)
    return found


def code_file(folder: JobFolder, name: str) -> Path:
    """Returns where a staged file goes."""
    return folder.code / check_relative("files", name)
