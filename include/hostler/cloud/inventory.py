"""What an account holds and pays for: machines, volumes and addresses of every owner. An extra of the cloud port."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Protocol, runtime_checkable

from hostler.cloud.driver import MachineState


class ThingKind(StrEnum):
    """What a thing is."""

    MACHINE = "machine"
    VOLUME = "volume"
    ADDRESS = "address"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """Something in an account that costs.

    Attributes:
        state: of a machine, as the cloud says it; None for others. attached_to: machine that a volume or an address is at; None:
            none, and for machines.
        words: size and kind for a person, such as ``200 GiB gp3``.
        usd_per_month: what a volume or an address costs in 730 hours, whatever its machine does; None: no price is known.
        usd_per_hour: what a machine costs while it runs, where the driver knows it; None: it does not.
        made_at: when it was made or last started; None when the cloud does not tell.
    """

    cloud: str
    region: str
    zone: str
    kind: ThingKind
    thing_id: str
    tags: Mapping[str, str] = field(default_factory=dict)
    state: MachineState | None = None
    attached_to: str | None = None
    name: str = ""
    words: str = ""
    size_gib: int | None = None
    usd_per_month: Decimal | None = None
    usd_per_hour: Decimal | None = None
    made_at: datetime | None = None

    @property
    def key(self) -> str:
        """Identity: ``cloud/region/id``."""
        return f"{self.cloud}/{self.region}/{self.thing_id}"


@runtime_checkable
class SupportsInventory(Protocol):
    """A driver that can list what costs, and remove what is attached to nothing."""

    def list_inventory(self, region: str) -> tuple[Thing, ...]:
        """Returns every machine that is not terminated, every volume and every address of the account there, whoever's; to the
        last page.

        Raises:
            CloudError: a list that broke off is no list.
        """
        ...

    def remove_unattached(self, region: str, kind: ThingKind, thing_id: str) -> None:
        """Removes a volume or an address of this deployment that is attached to nothing. It looks again before it does.

        Raises:
            NodeNotFoundError: it is not there any more. NodeNotOursError: it is there without our tag, or another owner's.
            TeardownRefusedError: it is attached, or the cloud will not now. CloudAuthError: it stays.
        """
        ...
