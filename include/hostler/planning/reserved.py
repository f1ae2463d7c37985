"""Offerings out of our own reservations: price lists do not have them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import itemgetter

from hostler.catalog.known import Known, known_of
from hostler.model.capacity import Reservation
from hostler.model.enums import CapacityType


def with_reserved(known: Sequence[Known], reservations: Iterable[Reservation]) -> list[Known]:
    """Returns the offerings, and one of capacity type ``reserved`` for each zone and type that has a reservation, by key.

    It has the on-demand price: a reservation is paid for at that price whether it is used or not, so calling it free would only
    hide the cost. A list that names no zones lends its price to every zone of the region.
    """
    places = {(item.cloud, item.region, item.zone, item.instance_type) for item in reservations}
    by_key = {item.key: item for item in known}
    for place in sorted(places):
        cloud, region, zone, instance_type = place
        for item in known:
            offering = item.offering
            if (
                offering.capacity_type is CapacityType.ON_DEMAND
                and (offering.cloud, offering.region, offering.instance_type) == (cloud, region, instance_type)
                and offering.zone in {zone, ""}
            ):
                made = known_of(replace(offering, zone=zone, capacity_type=CapacityType.RESERVED))
                by_key.setdefault(made.key, made)
    return sorted(by_key.values(), key=itemgetter(0))
