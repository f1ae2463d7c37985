"""The agent's commands. One JSON document out; orders come in as JSON by standard input, since some hold secrets.

``version``, ``configure``, ``start``, ``resume JOB``, ``status JOB``, ``stop``, ``checkpoint JOB``, ``flush``, ``renew``,
``load``, ``log JOB --offset N``, ``quit``. Protocol 1: ``{"protocol": 1, "ok": true, "result": ...}`` or ``{"protocol": 1, "ok": false,
"kind": "refused" or "failed", "error": words}`` with exit code 1.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import platform
import sys
from typing import Any, Callable

from hostler.recipes.agent import expiry, jobs, keeping
from hostler.recipes.agent.layout import (
    PROTOCOL,
    BadRequestError,
    NodeHome,
    locked,
    plain_id,
    private_folder,
    stamp,
    write_json,
)

_MOST_INPUT_BYTES = 256 * 1024 * 1024
_KEY_BYTES = 32
Command = Callable[[NodeHome, "dict[str, Any]"], Any]


def configure(home: NodeHome, order: dict[str, Any]) -> dict[str, Any]:
    """Tells the node whose it is and where to ship to. Without ``backup``, a target of the same lease is kept.
    ``first_expires_in_s`` sets the dead man's switch where it was not set yet.
    """
    document: dict[str, Any] = {"protocol": PROTOCOL, "lease_id": plain_id("lease_id", order.get("lease_id"))}
    document["node_name"] = plain_id("node_name", order.get("node_name"))
    known = home.node()
    if order.get("abandoned_after_s") is not None:
        document["abandoned_after_s"] = expiry.seconds("abandoned_after_s", order["abandoned_after_s"])
    backup = order.get("backup")
    if backup is not None:
        document["backup"] = _checked_backup(backup)
    elif known.get("lease_id") == document["lease_id"]:
        document["backup"] = known.get("backup")
    if document != known:
        with locked(home.ship_lock):
            write_json(home.node_file, document)
    if order.get("first_expires_in_s") is not None and not home.expiry_file.exists():
        expiry.renew(home, expiry.seconds("first_expires_in_s", order["first_expires_in_s"]))
    keeping.ensure(home)
    return {"has_backup": bool(document.get("backup")), "has_cryptography": _has_cryptography()}


def _checked_backup(backup: dict[str, Any]) -> dict[str, Any]:
    try:
        if len(base64.b64decode(backup["data_key"], validate=True)) != _KEY_BYTES:
            raise BadRequestError("backup.data_key: 32 bytes are needed")
        kept = {name: backup.get(name) for name in ("uri", "data_key", "key_id", "endpoint_url", "region")}
        if not str(kept["uri"]).startswith(("file:///", "s3://")):
            raise BadRequestError("backup.uri: file:///folder or s3://bucket/prefix are allowed")
    except (binascii.Error, KeyError, TypeError, AttributeError) as error:
        raise BadRequestError("backup: uri, data_key (base64) and key_id are needed") from error
    return kept


def _has_cryptography() -> bool:
    import importlib.util

    return importlib.util.find_spec("cryptography") is not None


def version(_home: NodeHome, _order: dict[str, Any]) -> dict[str, Any]:
    """Tells what runs here."""
    now = stamp()
    return {"python": platform.python_version(), "has_cryptography": _has_cryptography(), "boot_id": now["boot_id"]}


def start(home: NodeHome, order: dict[str, Any]) -> dict[str, Any]:
    """Starts a job, or re-attaches to it; ``configure``, when given, is done first in the same call."""
    if isinstance(order.get("configure"), dict):
        configure(home, order["configure"])
    found = jobs.start(home, order)
    if order.get("expires_in_s") is not None:
        expiry.set_lease_end(home, expiry.seconds("expires_in_s", order["expires_in_s"]))
    keeping.ensure(home)
    return found


def status(home: NodeHome, order: dict[str, Any]) -> dict[str, Any]:
    """Tells how a job is, and sees to it that the daemon runs (a reboot ends it)."""
    if home.node_file.exists():
        keeping.ensure(home)
    return jobs.status(home, order.get("job_id"))


def renew(home: NodeHome, order: dict[str, Any]) -> dict[str, Any]:
    """Sets the dead man's switch anew."""
    found = expiry.renew(home, expiry.seconds("expires_in_s", order.get("expires_in_s")))
    keeping.ensure(home)
    return found


def flush(home: NodeHome, _order: dict[str, Any]) -> dict[str, Any]:
    """Ships what is not shipped yet and lists all that was."""
    from hostler.recipes.agent import shipping

    return shipping.flush(home)


def load(home: NodeHome, order: dict[str, Any]) -> dict[str, Any]:
    """Tells what the node did in the last ``window_s`` seconds; sees to it that the daemon takes samples."""
    from hostler.recipes.agent import load as samples

    if home.node_file.exists():
        keeping.ensure(home)
    return samples.answer(home, expiry.seconds("window_s", order.get("window_s")))


_COMMANDS: dict[str, Command] = {
    "version": version,
    "configure": configure,
    "start": start,
    "resume": lambda home, order: jobs.resume(home, order.get("job_id")),
    "status": status,
    "stop": jobs.stop,
    "checkpoint": lambda home, order: jobs.checkpoint(home, order.get("job_id")),
    "flush": flush,
    "renew": renew,
    "load": load,
    "log": lambda home, order: jobs.read_log(home, order.get("job_id"), order.get("offset", 0)),
    "quit": lambda home, _: {"is_gone": keeping.quit_daemon(home)},
}


def _order(words: list[str]) -> dict[str, Any]:
    """Returns the order: from the command line for people (``status JOB``), else from standard input."""
    if words:
        order: dict[str, Any] = {"job_id": words[0]}
        if words[1:2] == ["--offset"] and words[2:3] and words[2].isdigit():
            order["offset"] = int(words[2])
        return order
    if sys.stdin.isatty():
        return {}
    text = sys.stdin.buffer.read(_MOST_INPUT_BYTES)
    if not text.strip():
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise BadRequestError("standard input: no JSON") from error
    if not isinstance(found, dict):
        raise BadRequestError("standard input: a JSON object is needed")
    return found


def _change_python(home: NodeHome, words: list[str]) -> None:
    """Runs in the environment that the setup made when only that one has the cryptography package."""
    better = keeping.better_python(home)
    if better and not _has_cryptography():
        os.execve(better, [better, sys.argv[0], *words], keeping.marked_environment())  # noqa: S606 - the interpreter on purpose


def main(words: list[str]) -> int:
    """Runs one command; returns the exit code."""
    os.umask(0o077)
    home = NodeHome.from_environment()
    _change_python(home, words)
    name = words[0] if words else ""
    private_folder(home.agent)
    if name in {"daemon", "supervise"}:
        _stay(home, name, words[1:])
        return 0
    document = _answer(home, name, words[1:])
    sys.stdout.write(json.dumps(document) + "\n")
    return 0 if document["ok"] else 1


def _stay(home: NodeHome, name: str, words: list[str]) -> None:
    """Runs one of the two processes that stay."""
    from hostler.recipes.agent import daemon, supervise

    if name == "daemon":
        daemon.main(home)
    else:
        supervise.main(home, words[0], _order([]))


def _answer(home: NodeHome, name: str, words: list[str]) -> dict[str, Any]:
    command = _COMMANDS.get(name)
    if command is None:
        allowed = ", ".join(sorted(_COMMANDS))
        return {"protocol": PROTOCOL, "ok": False, "kind": "refused", "error": f"command: one of {allowed} is allowed"}
    try:
        write_json(home.contact_file, stamp(), is_durable=False)
        return {"protocol": PROTOCOL, "ok": True, "result": command(home, _order(words))}
    except BadRequestError as error:
        return {"protocol": PROTOCOL, "ok": False, "kind": "refused", "error": str(error)}
    except Exception as error:  # noqa: BLE001 - the controller gets words, whatever it is
        return {"protocol": PROTOCOL, "ok": False, "kind": "failed", "error": f"{type(error).__name__}: {error}"}
