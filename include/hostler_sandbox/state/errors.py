"""Why the state model refuses a machine. Fronts put these into their cloud's own words."""


class RefusedError(Exception):
    """A machine cannot be had."""


class NoStockError(RefusedError):
    """The pool is empty.

    Attributes:
        zone: the zone asked for. others: zones of the region that have stock of it, by name.
    """

    def __init__(self, zone: str, others: tuple[str, ...]) -> None:
        self.zone = zone
        self.others = others
        super().__init__(f"no stock in {zone}")


class QuotaError(RefusedError):
    """The account's quota does not allow it. ``limit``: in the quota's unit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"over the quota of {limit}")


class PriceTooLowError(RefusedError):
    """The most that one would pay is below the spot price."""

    def __init__(self, offered: object, needed: object) -> None:
        self.offered = offered
        self.needed = needed
        super().__init__(f"offered {offered}, needed {needed}")


class UnknownMachineError(Exception):
    """No such machine, or it is no longer listed."""


class WrongStateError(Exception):
    """The machine is not in a state that allows this. ``state``: the one it is in."""

    def __init__(self, machine_id: str, state: str) -> None:
        self.machine_id = machine_id
        self.state = state
        super().__init__(f"{machine_id} is {state}")
