"""Why an offering is out, in words, before anything is ranked."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from hostler.model.offering import Offering, Refusal
from hostler.model.request import NodeRequest
from hostler.planning.terms import PlanTerms

LEAST_USD_PER_HOUR: Final = Decimal("0.001")
MOST_USD_PER_HOUR: Final = Decimal(1_000_000)
"""Outside of these bounds a number is no price of a machine but a slip: public rows lie between about 0.04 and 200."""


def has_true_price(offering: Offering) -> bool:
    """True when the price is a number that a machine can cost; everything else means that no price is known."""
    return is_price(offering.price_usd_per_hour)


def is_price(price: Decimal | None) -> bool:
    """True for a finite number between ``LEAST_USD_PER_HOUR`` and ``MOST_USD_PER_HOUR``: never zero, negative or not a number."""
    return price is not None and price.is_finite() and LEAST_USD_PER_HOUR <= price <= MOST_USD_PER_HOUR


class Filters:
    """The checks of one request, made ready once for many offerings."""

    def __init__(self, request: NodeRequest, terms: PlanTerms) -> None:
        self._request = request
        self._terms = terms
        self._accelerators = frozenset(terms.accelerators or (request.accelerator,))
        self._kinds = frozenset(request.capacity_types)
        self._clouds, self._regions = frozenset(request.clouds), frozenset(request.regions)
        self._zones, self._excluded = frozenset(terms.zones), frozenset(terms.excluded)
        highest = request.max_price_usd_per_hour
        self._most = MOST_USD_PER_HOUR if highest is None else min(highest, MOST_USD_PER_HOUR)
        self._has_rare_checks = bool(self._zones or self._excluded or terms.needs_interconnect)

    @property
    def wanted(self) -> str:
        """What each node must have, in words."""
        names = self._terms.accelerators or (self._request.accelerator,)
        return f"{self._request.accelerators_per_node} x {' or '.join(names)}"

    def fits_place(self, offering: Offering) -> bool:
        """True when kind, place and capacity type are what was asked for; the same for all offerings that share them."""
        return not self._mismatches(offering)

    def passes(self, offering: Offering, price: Decimal) -> bool:
        """True when ``reasons`` would be empty, of an offering that fits by kind and place. Quick: no words are made."""
        return (
            offering.is_available
            and price.is_finite()
            and LEAST_USD_PER_HOUR <= price <= self._most
            and not (self._has_rare_checks and self._rare(offering))
        )

    def reasons(self, offering: Offering) -> list[str]:
        """Returns why the offering does not fit, in words; empty when it does."""
        reasons = self._mismatches(offering)
        reasons += self._rare(offering)
        reasons += self._price_faults(offering.price_usd_per_hour)
        if not offering.is_available:
            reasons.append(f"unavailable: {offering.unavailable_reason or 'the cloud does not offer it now'}")
        return reasons

    def nothing_offered(self, known: Sequence[Offering]) -> list[Refusal]:
        """Returns a refusal for each part of the request that no offering was found for."""
        if not known:
            return [Refusal(subject="accelerator", reason=f"no cloud offers a node with {self.wanted} here")]
        clouds = self._clouds - {offering.cloud for offering in known}
        regions = self._regions - {offering.region for offering in known}
        return [
            *(Refusal(subject="clouds", reason=f"{cloud} offers nothing of this kind") for cloud in clouds),
            *(Refusal(subject="regions", reason=f"nothing of this kind is offered in {region}") for region in regions),
        ]

    def _mismatches(self, offering: Offering) -> list[str]:
        """Returns what the offering is or where it lies that the request did not ask for."""
        reasons: list[str] = []
        if offering.accelerator not in self._accelerators or offering.accelerator_count != self._request.accelerators_per_node:
            reasons.append(f"has {offering.accelerator_count} x {offering.accelerator}, asked for {self.wanted}")
        if (self._clouds and offering.cloud not in self._clouds) or (self._regions and offering.region not in self._regions):
            reasons += self._wrong_place(offering)
        if offering.capacity_type not in self._kinds:
            kinds = ", ".join(self._request.capacity_types)
            reasons.append(f"capacity type {offering.capacity_type} not asked for (capacity_types: {kinds})")
        return reasons

    def _wrong_place(self, offering: Offering) -> list[str]:
        reasons = []
        if self._clouds and offering.cloud not in self._clouds:
            reasons.append(f"cloud {offering.cloud} not asked for (clouds: {', '.join(self._request.clouds)})")
        if self._regions and offering.region not in self._regions:
            reasons.append(f"region {offering.region} not asked for (regions: {', '.join(self._request.regions)})")
        return reasons

    def _rare(self, offering: Offering) -> list[str]:
        """Returns what speaks against it by zone, exclusion or interconnect: checks that few requests ask for."""
        reasons = []
        if self._terms.needs_interconnect and not offering.interconnect:
            reasons.append("no fast interconnect between machines is known, asked for one")
        if self._zones and offering.zone not in self._zones:
            reasons.append(f"zone {offering.zone or '(not named)'} not asked for (zones: {', '.join(self._terms.zones)})")
        places = (offering.cloud, offering.region, f"{offering.cloud}/{offering.region}", offering.zone)
        reasons += [f"{place} is excluded" for place in dict.fromkeys(places) if place in self._excluded]
        return reasons

    def _price_faults(self, price: Decimal | None) -> list[str]:
        """Returns what is wrong with the price."""
        if price is None:
            return ["no price is known"]
        if not is_price(price):
            return [f"price {price} USD per hour is not a price"]
        highest = self._request.max_price_usd_per_hour
        if highest is not None and price > highest:
            return [f"price {price} USD per hour is above max_price_usd_per_hour {highest}"]
        return []
