"""What the options of ``hostler offers`` mean, as a request and the terms of a plan. Errors name the option."""

import argparse
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation

from hostler.model.enums import CapacityType
from hostler.model.request import NodeRequest
from hostler.planning.terms import CostTerms, Domain, PlanTerms

_DOMAINS = [domain.value for domain in Domain]
_MOST = Decimal(10**12)
"""More hours, GiB or USD than any work has; beyond it sums would overflow."""
_SPREADS = [domain.value for domain in Domain if domain is not Domain.ANY]


def request_of(options: argparse.Namespace, accelerators: tuple[str, ...]) -> NodeRequest:
    """Returns the request. Raises ValueError: an option is wrong; names it."""
    _between("--count", options.count, 1, 16)
    _between("--nodes", options.nodes, 1, 1024)
    if options.limit < 0:
        raise ValueError(f"--limit {options.limit} is below 0; 0 shows all")
    return NodeRequest(
        tenant="default",
        accelerator=accelerators[0],
        accelerators_per_node=options.count,
        node_count=options.nodes,
        capacity_types=_kinds(options),
        max_cost_usd=Decimal(1),
        clouds=words(options.cloud),
        regions=words(options.region),
        max_price_usd_per_hour=_above_zero("--max-price", options.max_price),
    )


def terms_of(options: argparse.Namespace, accelerators: tuple[str, ...]) -> PlanTerms:
    """Returns the terms without capacity. Raises ValueError: an option is wrong; names it."""
    if options.max_total is not None and options.hours is None:
        raise ValueError("--max-total needs --hours: without the work's length there is no total to judge")
    return PlanTerms(
        accelerators=accelerators,
        costs=None if options.list_price else _costs(options),
        preferred_regions=words(options.prefer),
        preference_ratio=number("--prefer-ratio", options.prefer_ratio),
        zones=words(options.zone),
        excluded=words(options.exclude),
        needs_interconnect=options.interconnect,
        domain=_domain("--domain", options.domain, _DOMAINS),
        steady_count=options.steady,
        spread=options.spread,
        spread_over=_domain("--spread-over", options.spread_over, _SPREADS),
        max_total_usd=_above_zero("--max-total", options.max_total),
    )


def words(values: Iterable[str]) -> tuple[str, ...]:
    """Returns the words of an option that takes commas and may be repeated, each once, in order."""
    found = (word.strip() for value in values for word in value.split(","))
    return tuple(dict.fromkeys(word for word in found if word))


def number(name: str, text: str) -> Decimal:
    """Returns a number of 0 or more, at most a million millions. Raises ValueError naming the option."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or value < 0:
        raise ValueError(f"{name} {text!r} is not a number of 0 or more")
    if value > _MOST:
        raise ValueError(f"{name} {text!r} is above {_MOST:f}")
    return value


def _above_zero(name: str, text: str | None) -> Decimal | None:
    if text is None:
        return None
    value = number(name, text)
    if value == 0:
        raise ValueError(f"{name} {text!r} is not a number above 0")
    return value


def _between(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise ValueError(f"{name} {value} is not between {least} and {most}")


def _kinds(options: argparse.Namespace) -> tuple[CapacityType, ...]:
    if options.capacity is None:
        return (CapacityType.SPOT, CapacityType.ON_DEMAND) if options.spot else (CapacityType.ON_DEMAND,)
    allowed = [kind.value for kind in CapacityType]
    names = words([options.capacity])
    for name in names or ("",):
        if name not in allowed:
            raise ValueError(f"--capacity {name!r} is not one of {', '.join(allowed)}")
    return tuple(CapacityType(name) for name in names)


def _costs(options: argparse.Namespace) -> CostTerms:
    hours = _above_zero("--hours", options.hours)
    return CostTerms(
        useful_hours=hours or Decimal(24),
        is_length_known=hours is not None,
        checkpoint_s=number("--checkpoint-s", options.checkpoint_s),
        restore_s=number("--restore-s", options.restore_s),
        startup_s=number("--startup-s", options.startup_s),
        disk_gib=number("--disk-gib", options.disk_gib),
        data_gib=number("--data-gib", options.data_gib),
        output_gib=number("--output-gib", options.output_gib),
        data_at=options.data_at,
        interruptions=_rates(options.interruptions),
    )


def _rates(values: Iterable[str]) -> Mapping[str, Decimal]:
    rates = {}
    for value in values:
        where, equals, rate = value.rpartition("=")
        if not equals or not where:
            raise ValueError(f"--interruptions {value!r} is not of the form WHERE=RATE, such as aws/us-east-1=0.1")
        rates[where] = number(f"--interruptions {where}", rate)
    return rates


def _domain(name: str, value: str, allowed: list[str]) -> Domain:
    if value not in allowed:
        raise ValueError(f"{name} {value!r} is not one of {', '.join(allowed)}")
    return Domain(value)
