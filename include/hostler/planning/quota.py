"""Does it fit into what the cloud lets us have? Quotas in the cloud's own unit, reservations, the cap on spending.

Every machine may count against several quotas at once (AWS: vCPU of its family's bucket; Azure: cores of the family and of the
region, low-priority cores for spot; Google: GPUs of the type and of all regions, CPUs, disk); it fits only when it fits all.
A quota that was not read, or whose reading failed, is unknown: it refuses nothing, and the plan says that it was not checked.
"""

from collections.abc import Iterable
from decimal import Decimal

from hostler.model.capacity import CapacityNow, QuotaState, Reservation
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering, QuotaUse
from hostler.planning.filters import is_price

_Place = tuple[str, str, str]
"""(cloud, region or empty, code)"""

Taken = dict[_Place, Decimal]
"""What a gang that is being put together has taken of each quota."""


class CapacityBook:
    """What is free now. Open spot requests count as bought: they may become machines at any moment."""

    def __init__(self, capacity: CapacityNow) -> None:
        self._capacity = capacity
        self._states = _by_place(capacity.quotas)
        self._taken: dict[_Place, Decimal] = {}
        self._verdicts: dict[tuple[str, str, int, int], tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self._reserved = _by_zone(capacity.reservations)
        self.spent_usd_per_hour = capacity.spent_usd_per_hour
        for request in capacity.open_spot_requests:
            if is_price(request.price_usd_per_hour):
                self.spent_usd_per_hour += (request.price_usd_per_hour or Decimal(0)) * request.node_count
            for use in request.quotas:
                self._take(_place_of(request.cloud, request.region, use), use.amount * request.node_count)

    def reasons(self, offering: Offering, node_count: int) -> tuple[str, ...]:
        """Returns why so many nodes of the offering do not fit, in words; empty when they do or nothing is known."""
        reasons = self._judge(offering, node_count)[0]
        if offering.capacity_type is CapacityType.RESERVED and self._reserved is not None:
            reasons += self._reservation_reasons(offering, node_count)
        return reasons

    def unknown(self, offering: Offering, node_count: int) -> tuple[str, ...]:
        """Returns the names of the offering's quotas that nothing is known of, in their order."""
        return self._judge(offering, node_count)[1]

    def spending_reason(self, usd_per_hour: Decimal) -> str:
        """Returns why the cap on spending forbids so much more; empty when it does not."""
        cap = self._capacity.max_usd_per_hour
        if cap is None or self.spent_usd_per_hour + usd_per_hour <= cap:
            return ""
        open_count = len(self._capacity.open_spot_requests)
        counted = f" ({open_count} open spot requests counted)" if open_count else ""
        return (
            f"{plain(usd_per_hour)} USD per hour more is above max_usd_per_hour {plain(cap)}: "
            f"{plain(self.spent_usd_per_hour)} are spent already{counted}"
        )

    def room(self, offering: Offering, taken: Taken, *, held: int, most: int) -> int:
        """Returns how many more nodes of the offering fit, 0 to ``most``.

        Args:
            taken: of the quotas, by what is chosen already. held: nodes of this offering that are chosen already.
        """
        room = most
        for use in offering.quotas:
            place = _place_of(offering.cloud, offering.region, use)
            free = self._free(place, use)
            if free is not None and use.amount > 0:
                room = min(room, int((free - taken.get(place, Decimal(0))) // use.amount))
        if offering.capacity_type is CapacityType.RESERVED and self._reserved is not None:
            room = min(room, sum(item.free_count for item in self._reserved.get(_zone_of(offering), ())) - held)
        return max(0, room)

    def take(self, offering: Offering, node_count: int, taken: Taken) -> None:
        """Writes into ``taken`` what so many nodes of the offering use."""
        for use in offering.quotas:
            place = _place_of(offering.cloud, offering.region, use)
            taken[place] = taken.get(place, Decimal(0)) + use.amount * node_count

    def _judge(self, offering: Offering, node_count: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Returns (which quotas so many nodes pass, in words; names of those that nothing is known of)."""
        # Offerings of one type and region share one tuple of quotas; asking once is asking for all.
        cell = (offering.cloud, offering.region, id(offering.quotas), node_count)
        known = self._verdicts.get(cell)
        if known is None:
            over, unknown = [], []
            for use in offering.quotas:
                place = _place_of(offering.cloud, offering.region, use)
                free = self._free(place, use)
                if free is None:
                    unknown.append(use.name)
                elif use.amount > 0 and use.amount * node_count > free:
                    over.append(self._over(place, use, node_count))
            known = self._verdicts[cell] = (tuple(over), tuple(unknown))
        return known

    def _take(self, place: _Place, amount: Decimal) -> None:
        self._taken[place] = self._taken.get(place, Decimal(0)) + amount

    def _free(self, place: _Place, use: QuotaUse) -> Decimal | None:
        state = self._states.get(place)
        if state is None or state.limit is None or state.used is None or not same_unit(state.unit, use.unit):
            return None
        return state.limit - state.used - self._taken.get(place, Decimal(0))

    def _over(self, place: _Place, use: QuotaUse, node_count: int) -> str:
        state, waiting, wanted = self._states[place], self._taken.get(place, Decimal(0)), use.amount * node_count
        in_requests = f", {plain(waiting)} asked for by open spot requests" if waiting else ""
        nodes = "1 node needs" if node_count == 1 else f"{node_count} nodes need"
        return (
            f"quota {use.name} ({use.code}): limit {plain(state.limit or Decimal(0))} {use.unit}, "
            f"{plain(state.used or Decimal(0))} in use{in_requests}; {nodes} {plain(wanted)} {use.unit} more"
        )

    def _reservation_reasons(self, offering: Offering, node_count: int) -> tuple[str, ...]:
        """Adds up every reservation of the zone: a gang may sit in several."""
        held = (self._reserved or {}).get(_zone_of(offering), ())
        free = sum(item.free_count for item in held)
        if free >= node_count:
            return ()
        if not held:
            return (f"nothing of {offering.instance_type} is reserved in {offering.zone or offering.region}",)
        listed = ", ".join(f"{item.reservation_id} {item.free_count}" for item in held)
        return (f"{free} free machines in all reservations of the zone ({listed}), {node_count} needed",)


def same_unit(one: str, other: str) -> bool:
    """True for two spellings of one unit (``vCPU``, ``vCPUs``, ``vcpu``; Azure says ``cores`` for it)."""
    return _unit(one) == _unit(other)


def _unit(word: str) -> str:
    plain_word = word.casefold().removesuffix("s")
    return "vcpu" if plain_word == "core" else plain_word


def plain(amount: Decimal) -> str:
    """Returns a number without exponent and without zeros that say nothing."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _place_of(cloud: str, region: str, use: QuotaUse) -> _Place:
    return (cloud, "" if use.scope == "global" else region, use.code)


def _by_place(states: Iterable[QuotaState]) -> dict[_Place, QuotaState]:
    """Returns one state a quota; of several the one that leaves least, and one that says something before one that does not."""
    found: dict[_Place, QuotaState] = {}
    for state in states:
        place = (state.cloud, state.region, state.code)
        rival = found.get(place)
        if rival is None or _tightness(state) < _tightness(rival):
            found[place] = state
    return found


def _tightness(state: QuotaState) -> tuple[bool, Decimal, Decimal, str]:
    limit, used = state.limit, state.used
    if limit is None or used is None:
        return (True, Decimal(0), Decimal(0), state.unit)
    return (False, limit - used, limit, state.unit)


def _by_zone(reservations: Iterable[Reservation] | None) -> dict[tuple[str, str, str, str], tuple[Reservation, ...]] | None:
    """Returns the reservations of each zone and type, each once, in the order of their ids; None when none were read."""
    if reservations is None:
        return None
    found: dict[tuple[str, str, str, str], dict[str, Reservation]] = {}
    for item in reservations:
        zone = found.setdefault((item.cloud, item.region, item.zone, item.instance_type), {})
        rival = zone.get(item.reservation_id)
        if rival is None or (item.free_count, item.total_count) < (rival.free_count, rival.total_count):
            zone[item.reservation_id] = item
    return {place: tuple(items[name] for name in sorted(items)) for place, items in found.items()}


def _zone_of(offering: Offering) -> tuple[str, str, str, str]:
    return (offering.cloud, offering.region, offering.zone, offering.instance_type)
