"""The closed vocabularies. Values are what YAML, logs, metrics and the ledger show."""

from enum import StrEnum


class CapacityType(StrEnum):
    """How capacity is bought."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    RESERVED = "reserved"


class LeaseState(StrEnum):
    """Life of a lease. See ``model.transitions`` for the allowed moves."""

    REQUESTED = "requested"
    GRANTED = "granted"
    ACTIVE = "active"
    DRAINING = "draining"
    UNATTENDED = "unattended"
    RELEASED = "released"
    EXPIRED = "expired"
    LOST = "lost"


class IntentState(StrEnum):
    """State of one attempt to fill a slot.

    ``open``: written, the call may be under way. ``owned``: the cloud named a machine. ``refused``: the cloud said no, or a
    look-up proved that nothing came of it. ``unknown``: the answer is lost; to be resolved by looking up, never by guessing.
    """

    OPEN = "open"
    OWNED = "owned"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class NodeState(StrEnum):
    """Life of a node. ``cordoned`` and ``leak_suspected`` are flags on the record, not states."""

    LAUNCHED = "launched"
    REGISTERED = "registered"
    INITIALIZED = "initialized"
    STOPPING = "stopping"
    STOPPED = "stopped"
    UNREACHABLE = "unreachable"
    TERMINATING = "terminating"
    GONE = "gone"


class JobState(StrEnum):
    """State of a job on a node, as the agent tells it. ``missing``: the node knows no such job."""

    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    MISSING = "missing"


class Verdict(StrEnum):
    """What the health signals say of a node. ``unknown`` is never healthy and never idle."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    FAILED = "failed"
    UNKNOWN = "unknown"


class HealthAction(StrEnum):
    """The escalation ladder, mildest first: what a finding asks for. ``none``: nothing to do."""

    NONE = "none"
    RECORD = "record"
    RESTART_APP = "restart_app"
    RESTART_SERVICE = "restart_service"
    RESET_GPU = "reset_gpu"
    REBOOT_NODE = "reboot_node"
    DRAIN_AND_DIAG = "drain_and_diag"
    DRAIN_AND_REPLACE = "drain_and_replace"

    @property
    def rank(self) -> int:
        """Place on the ladder, 0 for ``none``; the higher asks for more."""
        return tuple(HealthAction).index(self)


class Phase(StrEnum):
    """The steps of the lifecycle, in order."""

    ADMIT = "admit"
    PLAN = "plan"
    ACQUIRE = "acquire"
    LAUNCH = "launch"
    SETUP = "setup"
    VALIDATE = "validate"
    RUN = "run"
    BACKUP = "backup"
    RELEASE = "release"
    RECEIPT = "receipt"


class FleetMode(StrEnum):
    """``observe``: everything is seen, computed and reported; nothing is bought or ended."""

    OBSERVE = "observe"
    ENFORCE = "enforce"
