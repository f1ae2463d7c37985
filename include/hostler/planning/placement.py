"""Whole gangs: which nodes on which offering, when a gang mixes capacity types or is spread against disaster.

All nodes of a gang lie in one domain (zone, region, cloud) and are equal: one instance type, or, in a domain that spans clouds, one
accelerator. Within the domain, first the steady nodes take the cheapest on-demand or reserved offerings, then the others take the
cheapest of all, each as far as quotas and reservations reach. A spread deals the nodes evenly to the cheapest sub-domains. Each
step takes what is cheapest at that moment: good and explainable, not proven the best of all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from hostler.model.enums import CapacityType
from hostler.model.offering import Offering
from hostler.planning.cost import DOUBT_RATIO, HOPELESS, CostModel, Share, TrueCost
from hostler.planning.quota import CapacityBook, Taken, plain
from hostler.planning.terms import Domain, PlanTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A gang that can be bought as a whole.

    Attributes:
        domain: what its nodes share, such as ``aws/us-east-1/us-east-1a``. shares: by key; not empty.
        usd_per_hour: all its machines. cost: of the whole work; None when ranked by list price.
    """

    domain: str
    shares: tuple[Share, ...]
    usd_per_hour: Decimal
    cost: TrueCost | None


class _MisfitError(Exception):
    """The gang cannot be filled; the text says why. Never leaves this module."""


def gangs_of(
    node_count: int, offerings: Sequence[Offering], terms: PlanTerms, book: CapacityBook, model: CostModel | None
) -> tuple[tuple[Placement, ...], Mapping[str, str]]:
    """Returns every gang that fits, cheapest first, and why the others do not: offering key -> words.

    Args:
        offerings: those that fit on their own, best first.
    """
    groups: dict[tuple[str, str], list[Offering]] = {}
    for offering in offerings:
        groups.setdefault((domain_of(offering, terms.domain), _kind_of(offering, terms.domain)), []).append(offering)
    gangs: list[tuple[Decimal, str, Placement]] = []
    reasons: dict[str, str] = {}
    for (domain, kind), members in sorted(groups.items()):
        try:
            shares = _fill(node_count, sorted(members, key=_dearness), terms, book)
            gang, worth = _placement(domain, shares, terms, book, model)
        except _MisfitError as misfit:
            reasons |= {offering.key: f"{domain} ({kind}): {misfit}" for offering in members}
            continue
        reasons |= {offering.key: f"{domain} ({kind}): cheaper ones fill the gang" for offering in members}
        gangs.append((worth, f"{domain} {kind}", gang))
    gangs.sort(key=lambda item: item[:2])
    return tuple(gang for _, _, gang in gangs), reasons


def domain_of(offering: Offering, domain: Domain) -> str:
    """Returns the name of the offering's domain of this width; one without a zone's name has its region as zone."""
    if domain is Domain.ANY:
        return "anywhere"
    if domain is Domain.CLOUD:
        return offering.cloud
    if domain is Domain.REGION:
        return f"{offering.cloud}/{offering.region}"
    return f"{offering.cloud}/{offering.region}/{offering.zone or '(zone not named)'}"


def _kind_of(offering: Offering, domain: Domain) -> str:
    return offering.accelerator if domain is Domain.ANY else offering.instance_type


def _dearness(offering: Offering) -> tuple[Decimal, str]:
    """Orders offerings of one gang; a doubted price counts as in the ranking."""
    price = offering.price_usd_per_hour or Decimal(0)
    return (price * DOUBT_RATIO if offering.doubts else price, offering.key)


class _Filling:
    """One gang while it is filled: what it has taken of quotas and reservations so far."""

    def __init__(self, book: CapacityBook) -> None:
        self._book = book
        self._quotas: Taken = {}
        self._counts: dict[str, int] = {}

    def choose(self, size: int, steady: int, members: Sequence[Offering]) -> list[Share]:
        """Returns shares for ``size`` nodes, ``steady`` of them safe from interruption. Raises _MisfitError."""
        shares = self._take(steady, [offering for offering in members if offering.capacity_type is not CapacityType.SPOT])
        if (missing := steady - _size(shares)) > 0:
            raise _MisfitError(f"{missing} of {steady} nodes find no on-demand or reserved offering with room")
        rest = self._take(size - steady, members)
        if (missing := size - steady - _size(rest)) > 0:
            raise _MisfitError(f"quotas and reservations leave no room for {missing} of {size} nodes")
        return shares + rest

    def _take(self, size: int, members: Sequence[Offering]) -> list[Share]:
        shares = []
        for offering in members:
            held = self._counts.get(offering.key, 0)
            count = self._book.room(offering, self._quotas, held=held, most=size)
            if count > 0:
                self._book.take(offering, count, self._quotas)
                self._counts[offering.key] = held + count
                shares.append(Share(offering=offering, node_count=count))
                size -= count
        return shares


def _fill(node_count: int, members: Sequence[Offering], terms: PlanTerms, book: CapacityBook) -> list[Share]:
    """Returns the shares of one gang. Raises _MisfitError."""
    filling = _Filling(book)
    if terms.spread == 1:
        return _joined(filling.choose(node_count, terms.steady_count, members))
    parts: dict[str, list[Offering]] = {}
    for offering in members:
        parts.setdefault(domain_of(offering, terms.spread_over), []).append(offering)
    if len(parts) < terms.spread:
        raise _MisfitError(f"{len(parts)} {terms.spread_over}s have it, spread asks for {terms.spread}")
    # Where steady nodes are asked for, a part that has none to offer comes last.
    order = sorted(parts, key=lambda name: (terms.steady_count > 0 and not _has_steady(parts[name]), _dearness(parts[name][0])))
    shares, left, steady_left = [], node_count, terms.steady_count
    for index, name in enumerate(order[: terms.spread]):
        size = -(-left // (terms.spread - index))
        steady = min(size, steady_left) if _has_steady(parts[name]) else 0
        shares += filling.choose(size, steady, parts[name])
        left, steady_left = left - size, steady_left - steady
    if steady_left:
        raise _MisfitError(f"{steady_left} of {terms.steady_count} nodes find no on-demand or reserved offering")
    return _joined(shares)


def _has_steady(members: Sequence[Offering]) -> bool:
    return any(offering.capacity_type is not CapacityType.SPOT for offering in members)


def _size(shares: Sequence[Share]) -> int:
    return sum(share.node_count for share in shares)


def _joined(shares: Sequence[Share]) -> list[Share]:
    """Returns one share an offering, by key."""
    counts: dict[str, int] = {}
    by_key: dict[str, Offering] = {}
    for share in shares:
        by_key[share.offering.key] = share.offering
        counts[share.offering.key] = counts.get(share.offering.key, 0) + share.node_count
    return [Share(offering=by_key[key], node_count=counts[key]) for key in sorted(counts)]


def _placement(
    domain: str, shares: Sequence[Share], terms: PlanTerms, book: CapacityBook, model: CostModel | None
) -> tuple[Placement, Decimal]:
    """Returns the gang and what it is ranked by. Raises _MisfitError: too dear, or its nodes would be lost all the time."""
    per_hour = sum((share.node_count * (share.offering.price_usd_per_hour or Decimal(0)) for share in shares), Decimal(0))
    if words := book.spending_reason(per_hour):
        raise _MisfitError(words)
    basis = model.basis_of(shares) if model is not None else None
    if basis is not None and basis.is_refused:
        raise _MisfitError(HOPELESS)
    cost = None if basis is None else basis.cost(per_hour)
    _check_length(cost, terms)
    doubted = any(share.offering.doubts for share in shares)
    worth = per_hour if cost is None else cost.usd_per_useful_accelerator_hour
    gang = Placement(domain=domain, shares=tuple(shares), usd_per_hour=per_hour, cost=cost)
    return gang, worth * DOUBT_RATIO if doubted else worth


def _check_length(cost: TrueCost | None, terms: PlanTerms) -> None:
    """Raises _MisfitError: the whole work on this gang costs more than is allowed."""
    most = terms.max_total_usd
    if (
        cost is not None
        and most is not None
        and terms.costs is not None
        and terms.costs.is_length_known
        and cost.total_usd > most
    ):
        raise _MisfitError(f"the work costs {plain(cost.total_usd)} USD, the most is {plain(most)}")
