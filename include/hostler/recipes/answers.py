"""Reads what nodes answer. A node may be sick or not ours any more: nothing in an answer is taken on trust."""

import base64
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from hostler.model.enums import JobState
from hostler.reach.port import CommandResult, JobStatus, LoadRecord, LoadSample, ReachError, ShippedObject

PROTOCOL = 1
PROBE_VERSION = 1
_MOST_WORDS = 500
_SHA256 = re.compile(r"[0-9a-f]{64}")


class NodeAgentError(ReachError):
    """The node answered, but its agent could not do what was asked, or not in words that we know. The text has its reason."""


def agent_result(node_name: str, result: CommandResult) -> Mapping[str, Any]:
    """Returns the result part of an agent's answer. Raises NodeAgentError for anything else."""
    lines = result.stdout.strip().splitlines()
    document = _parsed(lines[-1]) if lines else None
    if document is None or document.get("protocol") != PROTOCOL:
        words = (result.stderr.strip() or result.stdout.strip() or "nothing")[-_MOST_WORDS:]
        raise NodeAgentError(f"{node_name}: no answer of protocol {PROTOCOL} (exit code {result.exit_code}): {words}")
    if document.get("ok") is not True:
        raise NodeAgentError(f"{node_name}: {str(document.get('error'))[:_MOST_WORDS]}")
    found = document.get("result")
    if not isinstance(found, dict):
        raise NodeAgentError(f"{node_name}: an answer without a result")
    return found


def probe_document(result: CommandResult) -> Mapping[str, Any]:
    """Returns the probe's document; one without any reading, that says why, when there is none."""
    document = _parsed(result.stdout)
    if result.exit_code == 0 and document is not None and document.get("version") == PROBE_VERSION:
        return document
    words = (result.stderr.strip() or result.stdout.strip() or "nothing")[-_MOST_WORDS:]
    reason = f"the probe gave no document of version {PROBE_VERSION} (exit code {result.exit_code}): {words}"
    return {
        "version": PROBE_VERSION,
        "source": "none",
        "errors": [reason],
        "driver_version": None,
        "accelerators": [],
        "state": "unknown",
        "reason": reason,
    }


def job_status(found: Mapping[str, Any]) -> JobStatus:
    """Returns the status. Raises NodeAgentError when the answer names no job or no known state."""
    try:
        state = JobState(found["state"])
        job_id = str(found["job_id"])
    except (KeyError, ValueError) as error:
        raise NodeAgentError(f"a job status without a known state: {str(found.get('state'))[:40]!r}") from error
    error_text = _text(found.get("error"))
    shipping = _text(found.get("shipping_error"))
    return JobStatus(
        job_id=job_id,
        state=state,
        exit_code=_whole(found.get("exit_code")),
        heartbeat_age_s=_number(found.get("heartbeat_age_s")),
        step=_whole(found.get("step")) or 0,
        resumed_from_step=_whole(found.get("resumed_from_step")) or 0,
        metrics=_metrics(found.get("metrics")),
        weights_sha256=_hash(found.get("weights_sha256")),
        shipped_step=_whole(found.get("shipped_step")),
        notice=_text(found.get("notice")),
        log_tail=str(found.get("log_tail") or "")[-8192:],
        error=error_text or (f"shipping is behind: {shipping}" if shipping else None),
    )


def shipped_objects(found: Mapping[str, Any]) -> tuple[ShippedObject, ...]:
    """Returns the objects by key. Raises NodeAgentError when one is not described whole."""
    entries = found.get("objects")
    if not isinstance(entries, list):
        raise NodeAgentError("no list of shipped objects")
    return tuple(sorted((shipped_object(entry) for entry in entries), key=lambda one: one.key))


def shipped_object(entry: Any) -> ShippedObject:
    """Returns one entry of a node's list. Raises NodeAgentError when it is not whole."""
    try:
        key, kind, size = entry["key"], entry["kind"], _whole(entry["size_bytes"])
        hashes = _hash(entry["sha256"]), _hash(entry["plain_sha256"])
        step = _whole(entry.get("step"))
    except (KeyError, TypeError, AttributeError) as error:
        raise NodeAgentError("a shipped object is not described whole") from error
    if not isinstance(key, str) or not isinstance(kind, str) or size is None or hashes[0] is None or hashes[1] is None:
        raise NodeAgentError("a shipped object is not described whole")
    return ShippedObject(key=key, kind=kind, sha256=hashes[0], plain_sha256=hashes[1], size_bytes=size, step=step)


def load_record(found: Mapping[str, Any]) -> LoadRecord:
    """Returns the samples, oldest first; what is no number of its kind is None. Raises NodeAgentError."""
    entries, every_s = found.get("samples"), _number(found.get("every_s"))
    if not isinstance(entries, list) or every_s is None or every_s <= 0:
        raise NodeAgentError("no list of load samples")
    samples = [_load_sample(entry) for entry in entries]
    return LoadRecord(samples=tuple(sorted(samples, key=lambda one: -one.age_s)), every_s=every_s)


def _load_sample(entry: Any) -> LoadSample:
    age_s = _number(entry.get("age_s")) if isinstance(entry, dict) else None
    if age_s is None or age_s < 0:
        raise NodeAgentError("a load sample without an age")
    ratios = entry.get("util")
    return LoadSample(
        age_s=age_s,
        utilisation_ratios=tuple(_number(one) for one in ratios) if isinstance(ratios, list) else (),
        process_count=_whole(entry.get("processes")),
        login_count=_whole(entry.get("logins")),
        job_count=_whole(entry.get("jobs")),
        cpu_ratio=_number(entry.get("cpu")),
    )


def log_piece(found: Mapping[str, Any]) -> tuple[bytes, int]:
    """Returns log bytes and the next offset. Raises NodeAgentError."""
    following = _whole(found.get("next_offset"))
    try:
        data = base64.b64decode(str(found.get("data")), validate=True)
    except ValueError as error:  # binascii's own is one, and text that is not ASCII raises the plain one
        raise NodeAgentError("unreadable log bytes") from error
    if following is None:
        raise NodeAgentError("log bytes without a next offset")
    return data, following


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) >= 2**63 or not math.isfinite(value):
        return None
    return float(value)


def _text(value: object) -> str | None:
    return value[:_MOST_WORDS] if isinstance(value, str) and value else None


def _hash(value: object) -> str | None:
    return value if isinstance(value, str) and _SHA256.fullmatch(value) else None


def _metrics(value: object) -> tuple[tuple[str, float], ...]:
    if not isinstance(value, dict):
        return ()
    pairs = ((str(name)[:100], _number(number)) for name, number in value.items())
    return tuple(sorted((name, number) for name, number in pairs if number is not None))
