"""Lease, slot, intent, node, job, backup, event: the rows under one lease id.

Every record carries ``row_version``, the store's optimistic lock: a write names the version it read, and the store refuses it
when another writer came first. A new record has row_version 0.
"""

import base64
import hashlib
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from hostler.model.enums import HealthAction, IntentState, JobState, LeaseState, NodeState, Verdict
from hostler.model.offering import Offering, PlacementPlan
from hostler.model.request import NodeRequest, RunRef

LEASE_VERSION = 1


def lease_id_for(run: RunRef) -> str:
    """Returns the lease id of a run: 20 characters of lower-case base32, a hash of Dag id, run id and generation."""
    digest = hashlib.sha256(f"{run.dag_id}\0{run.run_id}\0{run.generation}".encode()).digest()
    return base64.b32encode(digest).decode().lower()[:20]


def intent_id_for(lease_id: str, slot_index: int, attempt: int) -> str:
    """Returns the intent's id, ``<lease>-<slot>-<attempt>``; it is the machine's name and one of its tags."""
    return f"{lease_id}-{slot_index}-{attempt}"


def client_token_for(intent_id: str, offering_key: str) -> str:
    """Returns the idempotency token: a hash of intent and offering, so that it is never reused across offerings."""
    return hashlib.sha256(f"{intent_id}\0{offering_key}".encode()).hexdigest()[:40]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Right to write a lease's effects. The newest fence wins; older ones are refused by the store.

    Attributes:
        token: grows by one with each take.
        holder: who took it: ``<dag>/<run>/<task>/<try>`` or ``cli/<user>``.
    """

    lease_id: str
    token: int
    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The tenant's claim on a gang of nodes, from request to release.

    Attributes:
        fence: token of the newest fence.
        reached: the last lifecycle phase that is done, as ``Phase`` value; None before ``admit``.
        failure: first cause that ended the lease early, in words; None while all is well. Never overwritten.
        release_reason: why ``draining`` began; never overwritten.
        wrapped_data_key: the lease's data key under the key service's key, as text; safe to store.
        wait_since, wait_reason: what the lease is waiting for, and from when; None when it is not.
        held_back: times in a row that a cap left no room for what the gang lacks; 0 once there was room.
    """

    lease_id: str
    deployment: str
    run: RunRef
    request: NodeRequest
    state: LeaseState
    created_at: datetime
    fence: int = 0
    reached: str | None = None
    plan: PlacementPlan | None = None
    failure: str | None = None
    release_reason: str | None = None
    drain_started_at: datetime | None = None
    released_at: datetime | None = None
    unattended_since: datetime | None = None
    keep_until: datetime | None = None
    wrapped_data_key: str | None = None
    wait_since: datetime | None = None
    wait_reason: str | None = None
    held_back: int = 0
    row_version: int = 0
    version: int = LEASE_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One attempt to fill one slot, written before the cloud is called.

    Attributes:
        fence: token under which it was written.
        settle_after: no launch call of this intent can still be on its way after this (written_at + the driver's call budget).
        provider_id: the cloud's id once it is known.
        resources: sub-resources the launch made, as (kind, id) pairs, to be deleted in order.
        error: class name of the drawn error that refused it; None otherwise. error_text: the cloud's words, no secrets.
    """

    intent_id: str
    lease_id: str
    slot_index: int
    attempt: int
    tenant: str
    offering: Offering
    client_token: str
    state: IntentState
    fence: int
    written_at: datetime
    settle_after: datetime
    provider_id: str | None = None
    resources: tuple[tuple[str, str], ...] = ()
    error: str | None = None
    error_text: str | None = None
    row_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The machine of an owned intent.

    Attributes:
        address: host to reach it at; None until the cloud names one. port, user: how SSH goes in.
        host_key: its pinned public SSH host key, OpenSSH format.
        launched_at: when the cloud began to bill (its own time where it tells). ended_at: when billing ended, set only from
            the cloud's word.
        stopped_at: since when the cloud says that it is stopped; None while it is not. stopped_s: earlier stops together.
        has_failed_start: the cloud says that it never came to run: it costs nothing.
        last_seen_at: last time that the cloud listed it or that it answered.
        misses: look-ups in a row that did not find it.
        setup_attempt, setup_job_id: bookkeeping of the setup step.
        health, health_reasons: the last verdict. health_action: the rung that it asks for.
        is_health_proven: False when it rests on one look of one source. health_evidence: who saw what, by which document.
        health_memory: what the next verdict must know (``hostler.health``); None before the first.
        unknown_probes: probes in a row whose verdict was unknown, or failed and not proven; kept here, since one driver may
            see only one of them.
        heartbeat_at: last sign of life of the agent, in the ledger's time.
        ending_reason: why it is being ended; health never overwrites it.
    """

    node_name: str
    lease_id: str
    slot_index: int
    intent_id: str
    tenant: str
    offering: Offering
    provider_id: str
    state: NodeState
    launched_at: datetime
    address: str | None = None
    port: int = 22
    user: str = "hostler"
    host_key: str | None = None
    ended_at: datetime | None = None
    last_seen_at: datetime | None = None
    misses: int = 0
    setup_attempt: int = 0
    setup_job_id: str | None = None
    health: Verdict = Verdict.UNKNOWN
    health_reasons: tuple[str, ...] = ()
    health_action: HealthAction = HealthAction.NONE
    is_health_proven: bool = True
    health_evidence: tuple[tuple[str, str], ...] = ()
    health_memory: str | None = None
    probed_at: datetime | None = None
    unknown_probes: int = 0
    heartbeat_at: datetime | None = None
    is_cordoned: bool = False
    is_leak_suspected: bool = False
    ending_reason: str | None = None
    stopped_at: datetime | None = None
    stopped_s: float = 0.0
    has_failed_start: bool = False
    row_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The workload of a lease, one attempt over the whole gang.

    Attributes:
        attempt_token: who may stop it; a stale attempt's token stops nothing.
        node_names: by rank.
        step: last step that the workload reported; resumed_from_step: where this attempt began.
        shipped_step: newest checkpoint that is safely in the store; None when there is none.
        metrics: the workload's last numbers as name and value pairs (``accuracy``, ``loss``).
        weights_sha256: hash of the final weights, when the workload reports one.
        failing_since: when a rank was first seen failed on a gang that looked whole; judged only at a second look.
    """

    job_id: str
    lease_id: str
    attempt: int
    attempt_token: str
    node_names: tuple[str, ...]
    state: JobState
    started_at: datetime
    ended_at: datetime | None = None
    heartbeat_at: datetime | None = None
    step: int = 0
    resumed_from_step: int = 0
    shipped_step: int | None = None
    exit_code: int | None = None
    metrics: tuple[tuple[str, float], ...] = ()
    weights_sha256: str | None = None
    error: str | None = None
    failing_since: datetime | None = None
    row_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """Our sealed, encrypted copy of a lease's checkpoints and logs.

    Attributes:
        manifest_uri: where the manifest lies (file:// or s3://).
        manifest_sha256: hash of the manifest's bytes.
        is_verified: True after every object was read back and its hash checked.
    """

    backup_id: str
    lease_id: str
    manifest_uri: str
    manifest_sha256: str
    object_count: int
    size_bytes: int
    sealed_at: datetime
    is_verified: bool = False
    row_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """How the run ended and what it cost. ``is_complete``: job done, backup sealed, cloud says gone."""

    lease_id: str
    written_at: datetime
    is_complete: bool
    reasons: tuple[str, ...]
    cost_usd: Decimal
    node_hours: Decimal
    nodes_launched: int
    nodes_lost: int
    row_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of the record: who did what to whom, why, on what evidence, when.

    Attributes:
        who: holder of the fence, a person, or a component. what: dotted verb such as ``intent.opened`` or ``node.gone``.
        why: words for a person. evidence: name and value pairs; never a secret.
        sequence: given by the store, grows within a ledger; 0 before it is written.
    """

    lease_id: str | None
    who: str
    what: str
    why: str
    at: datetime
    slot_index: int | None = None
    evidence: tuple[tuple[str, str], ...] = ()
    sequence: int = 0


Record = Lease | Intent | Node | Job | Backup | Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseView:
    """One consistent read of all rows of a lease.

    Attributes:
        intents: by slot, then attempt. nodes: by slot, then attempt. jobs: by attempt. backups: oldest first.
        receipt: None until written.
    """

    lease: Lease
    intents: tuple[Intent, ...] = ()
    nodes: tuple[Node, ...] = ()
    jobs: tuple[Job, ...] = ()
    backups: tuple[Backup, ...] = ()
    receipt: Receipt | None = None
