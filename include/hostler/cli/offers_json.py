"""The answer of ``hostler offers`` as JSON: amounts as texts, so that no digit is lost; the same bytes for the same input."""

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from hostler.catalog.index import CatalogIndex
from hostler.model.offering import Offering
from hostler.model.request import NodeRequest
from hostler.planning.cost import TrueCost
from hostler.planning.quota import plain
from hostler.planning.rank import Ranked, Ranking
from hostler.planning.terms import PlanTerms

if TYPE_CHECKING:
    from hostler.planning.placement import Placement

_json: Final = json.JSONEncoder(ensure_ascii=False).encode
_PER_HOUR: Final = Decimal("0.0001")


def document(ranking: Ranking, request: NodeRequest, terms: PlanTerms, index: CatalogIndex) -> str:
    """Returns the whole answer as one JSON document, an entry a line."""
    return _lines(
        {
            "request": {
                "accelerators": list(terms.accelerators),
                "accelerators_per_node": request.accelerators_per_node,
                "nodes": request.node_count,
                "capacity_types": [kind.value for kind in request.capacity_types],
                "ranked_by": "usd_per_useful_accelerator_hour" if terms.costs is not None else "usd_per_hour",
            },
            "offers": [_offer(place, item) for place, item in enumerate(ranking.ranked, start=1)],
            "placements": [_placement(gang) for gang in ranking.placements],
            "refusals": [{"subject": refusal.subject, "reason": refusal.reason} for refusal in ranking.refusals],
            "sources": {
                name: day.date().isoformat() if day else None for name, day in sorted(index.catalog.loaded_at_source.items())
            },
            "faults": [str(fault) for fault in index.catalog.faults],
        }
    )


def _lines(fields: dict[str, Any]) -> str:
    """Returns an object with each field, and each entry of a list, on its own line: ``indent`` would take the slow encoder."""
    return "{\n" + ",\n".join(f"{_json(name)}: {_value(value)}" for name, value in fields.items()) + "\n}"


def _value(value: Any) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f" {_json(entry)}" for entry in value) + "\n]"
    return _json(value)


def _offer(place: int, item: Ranked) -> dict[str, Any]:
    offering = item.offering
    return {
        "rank": place,
        **_place(offering),
        "vcpus": offering.vcpu_count,
        "memory_mib": offering.memory_mib,
        "usd_per_hour": _amount(offering.price_usd_per_hour),
        "currency": offering.currency,
        "price_in_currency_per_hour": _amount(offering.price_in_currency_per_hour),
        "ranked_at_usd": str(item.rank_usd.quantize(_PER_HOUR)),
        "cost": _cost(item.cost),
        "quotas": [
            {"code": use.code, "name": use.name, "unit": use.unit, "amount": plain(use.amount)} for use in offering.quotas
        ],
        "doubts": list(offering.doubts),
        "notes": list(item.notes),
        "stock_out_until": item.stock_out.until.isoformat() if item.stock_out else None,
        "price_source": offering.price_source,
        "priced_at": offering.priced_at.isoformat() if offering.priced_at else None,
    }


def _place(offering: Offering) -> dict[str, Any]:
    return {
        "key": offering.key,
        "cloud": offering.cloud,
        "region": offering.region,
        "zone": offering.zone,
        "instance_type": offering.instance_type,
        "capacity_type": offering.capacity_type.value,
        "accelerator": offering.accelerator,
        "accelerators_per_node": offering.accelerator_count,
    }


def _placement(gang: "Placement") -> dict[str, Any]:
    return {
        "domain": gang.domain,
        "shares": [{"key": share.offering.key, "nodes": share.node_count} for share in gang.shares],
        "usd_per_hour": _amount(gang.usd_per_hour),
        "cost": _cost(gang.cost),
    }


def _cost(cost: TrueCost | None) -> dict[str, Any] | None:
    if cost is None:
        return None
    return {
        "usd_per_useful_accelerator_hour": str(cost.usd_per_useful_accelerator_hour),
        "total_usd": str(cost.total_usd),
        "machine_usd": str(cost.machine_usd),
        "disk_usd": str(cost.disk_usd),
        "egress_usd": str(cost.egress_usd),
        "wall_hours": str(cost.wall_hours),
        "overhead_ratio": str(cost.overhead_ratio),
        "losses_per_hour": plain(cost.losses_per_hour),
        "checkpoint_interval_s": _amount(cost.checkpoint_interval_s),
    }


def _amount(value: Decimal | None) -> str | None:
    return None if value is None else plain(value)
