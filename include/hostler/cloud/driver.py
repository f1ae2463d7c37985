"""The cloud port. Six calls; what else a cloud can do is a small runtime-checkable protocol, asked by ``isinstance``.

Contract, held by ``tests/contract/`` for every driver:

1. ``launch`` is idempotent on its intent, returns before the machine is ready, names every sub-resource it makes.
2. ``terminate`` returns when termination has started; raises NodeNotFoundError once the machine is really gone.
3. ``get_node`` and ``list_nodes`` never return a machine without our deployment's tag; lists page to the end.
4. ``list_offerings`` returns unavailable ones too, marked, so that a plan can say why not.
5. No retry and no sleep in a driver; the caller owns time.
6. Only ``CloudError`` subclasses leave a driver; the SDK's error is the cause.

Calls are synchronous and thread-safe; ``lifecycle`` runs them in bounded threads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol, runtime_checkable

from hostler.model.enums import CapacityType
from hostler.model.offering import Offering


class MachineState(StrEnum):
    """What the cloud says of a machine, in words common to all clouds."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    TERMINATING = "terminating"
    TERMINATED = "terminated"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferingQuery:
    """What is asked of ``list_offerings``. ``regions`` empty: all regions the driver is configured for."""

    accelerator: str
    accelerators_per_node: int
    capacity_types: tuple[CapacityType, ...]
    regions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOrder:
    """One machine to make.

    Attributes:
        name: the intent's id; the machine's name. client_token: the idempotency token.
        tags: all tags (``cloud.tags.tags_for``), put on the machine and on every sub-resource, in the create call itself.
        user_data: cloud-init text, plain; the driver encodes it. The same intent always gives the same bytes.
        expires_at: dead man's switch for clouds with a means of their own (``SupportsExpiry``); others ignore it.
    """

    name: str
    client_token: str
    offering: Offering
    tags: Mapping[str, str]
    user_data: str
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine as the cloud describes it now.

    Attributes:
        address: where it is reached (private or public as configured); None until the cloud has given one.
        launched_at, ended_at: the cloud's own times of the start and of the end of billing; None when it tells none.
        client_token: as the cloud kept it; None when it does not tell.
        resources: sub-resources as (kind, id) pairs.
        state_reason: the cloud's words for the last change, such as ``Server.SpotInstanceTermination``.
    """

    cloud: str
    region: str
    zone: str
    provider_id: str
    name: str
    instance_type: str
    capacity_type: CapacityType
    state: MachineState
    tags: Mapping[str, str]
    address: str | None = None
    launched_at: datetime | None = None
    ended_at: datetime | None = None
    client_token: str | None = None
    resources: tuple[tuple[str, str], ...] = ()
    state_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """A notice that the cloud will take a machine. ``kind``: interruption, rebalance or maintenance."""

    provider_id: str
    region: str
    kind: str
    noticed_at: datetime
    takes_effect_at: datetime | None


class CloudDriver(Protocol):
    """One cloud, one deployment.

    Attributes:
        name: the cloud, as in ``Offering.cloud``. regions: those configured.
        call_budget_s: a launch call that began this long ago has had its effect or never will (client time-outs included).
        list_lag_s: how long a new machine may be missing from get and list.
    """

    name: str
    regions: tuple[str, ...]
    call_budget_s: float
    list_lag_s: float

    def list_offerings(self, query: OfferingQuery) -> tuple[Offering, ...]:
        """Returns matching offerings, available or marked otherwise, in no particular order; empty when there are none."""
        ...

    def launch(self, order: LaunchOrder) -> Machine:
        """Makes one machine and returns it at once, usually ``pending``. Same order again: the same machine.

        Raises:
            AnswerLostError: it may exist; look up by tag.
            InsufficientCapacityError, SpotUnavailableError, QuotaExceededError: not made; go on as the type says.
            CloudAuthError, CloudConfigError: not made; stop.
            CloudThrottledError, CloudUnavailableError: not made; the same call again later.
            AlreadyExistsError: the token's machine is dead or of another shape; look up by tag.
        """
        ...

    def get_node(self, region: str, provider_id: str) -> Machine:
        """Returns the machine, also while it is ``terminated`` but still listed.

        Raises:
            NodeNotFoundError: the cloud knows no such machine with our tag. Young machines may be missing for ``list_lag_s``.
            NodeNotOursError: it knows one, without our tag.
        """
        ...

    def list_nodes(self, region: str, tags: Mapping[str, str] | None = None) -> tuple[Machine, ...]:
        """Returns every machine of this deployment in the region that carries all of ``tags``, terminated ones included while
        the cloud lists them; to the last page.
        """
        ...

    def terminate(self, region: str, provider_id: str) -> None:
        """Starts termination and returns; again on a terminating machine is fine.

        Raises:
            NodeNotFoundError: really gone. NodeNotOursError: it is there without our tag, and stays.
            TeardownRefusedError: again later. CloudAuthError: stop and page; it still runs.
        """
        ...

    def list_interruptions(self, region: str) -> tuple[Interruption, ...]:
        """Returns the notices in force; empty when there are none or the cloud has no account-wide channel set up."""
        ...


@runtime_checkable
class SupportsPace(Protocol):
    """A driver whose API calls can be held under a rate that all processes of the deployment share."""

    def pace_with(self, claim: Callable[[], float]) -> None:
        """From now on asks ``claim`` before each API call. A number of seconds above 0 leaves the driver as
        CloudThrottledError with that ``retry_after_s``: nothing was sent. ``claim`` may raise CloudUnavailableError.
        """
        ...


@runtime_checkable
class SupportsForeignView(Protocol):
    """A driver that can list machines that are not ours, for ``reap`` reports; they are never touched."""

    def list_foreign(self, region: str) -> tuple[Machine, ...]:
        """Returns accelerator machines without our deployment's tag, or claimed by another owner."""
        ...
