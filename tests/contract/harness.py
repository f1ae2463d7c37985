"""What the contract suite asks of a cloud under test, beside its driver: orders that fit it, its owner's view, faults."""

from collections.abc import Mapping
from typing import Literal, Protocol

from hostler.cloud.driver import CloudDriver, LaunchOrder, OfferingQuery
from hostler.model.enums import CapacityType

Call = Literal["launch", "get", "list", "terminate", "offerings", "interruptions", "foreign"]

Power = Literal["tokens", "stock", "quota", "lag", "zones", "take"]
"""What a cloud under test can play. ``tokens``: honours client tokens; ``zones``: scopes them to a zone; ``stock``, ``quota``:
has pools and limits; ``lag``: lists lag behind creates; ``take``: takes spot machines.
"""

PAGE_SIZE = 5
"""Machines a page of the drivers under test, so that lists have several."""


class CloudUnderTest(Protocol):
    """One account with one driver.

    Attributes:
        retry_after_s: what a throttled call is told to wait.
        zones: at least two in ``region`` where the order's type is sold. powers: what can be tested here.
    """

    driver: CloudDriver
    deployment: str
    region: str
    zones: tuple[str, ...]
    retry_after_s: float | None
    powers: frozenset[Power]

    def order(
        self,
        *,
        slot: int = 0,
        attempt: int = 1,
        lease: str = "lease0",
        zone: str | None = None,
        kind: CapacityType = CapacityType.SPOT,
    ) -> LaunchOrder:
        """Returns an order of the driver's deployment; ``zone`` None: the first."""
        ...

    def query(self) -> OfferingQuery:
        """Returns the query that finds the order's offering."""
        ...

    def live_ids(self) -> frozenset[str]:
        """Returns every machine that lives, by the account's own books and not through the driver."""
        ...

    def put_foreign(self, tags: Mapping[str, str]) -> str:
        """Makes a machine by hand, with these tags, and returns its id."""
        ...

    def settle(self) -> None:
        """Lets pass what time it takes until terminating machines are terminated and new ones are listed."""
        ...

    def calls(self, call: Call) -> int:
        """Returns how many calls of the kind reached the cloud."""
        ...

    def throttle(self, call: Call) -> None:
        """The next call is refused: too many calls."""
        ...

    def break_down(self, call: Call) -> None:
        """The next call is answered: internal error; it has no effect."""
        ...

    def deny(self, *calls: Call) -> None:
        """From now on these calls are answered: not authorised."""
        ...

    def lose_answer(self) -> None:
        """The next launch has its effect and its answer never comes."""
        ...

    def empty(self, zone: str) -> None:
        """There is no stock in the zone any more (power ``stock``)."""
        ...

    def limit(self, machines: int) -> None:
        """The on-demand quota has room for this many machines of the order (power ``quota``)."""
        ...

    def lag(self) -> None:
        """New machines are missing from get and list until ``settle`` (power ``lag``)."""
        ...

    def take(self, provider_id: str) -> None:
        """The cloud takes a spot machine."""
        ...
