"""What is free now, from a JSON file: quotas with their use, reservations, open spot requests, spending."""

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from hostler.model.capacity import CapacityNow, OpenSpotRequest, QuotaState, Reservation
from hostler.model.offering import QuotaUse

_FIELDS = ("quotas", "reservations", "open_spot_requests", "max_usd_per_hour", "spent_usd_per_hour")


def read_capacity(path: str) -> CapacityNow:
    """Returns what the file says.

    Raises:
        ValueError: it cannot be read or a field is wrong; names the file, the entry and the field.
    """
    try:
        with open(path, encoding="utf-8") as stream:  # noqa: PTH123 - pathlib costs the command a tenth of its start
            document = json.load(stream, parse_float=Decimal)
    except (OSError, ValueError) as error:
        raise ValueError(f"--capacity-file {path}: {error}") from error
    if not isinstance(document, dict) or (unknown := sorted(set(document) - set(_FIELDS))):
        wrong = "is not a JSON object" if not isinstance(document, dict) else f"has no field {', '.join(unknown)}"
        raise ValueError(f"--capacity-file {path}: {wrong}; the fields are {', '.join(_FIELDS)}")
    reservations = document.get("reservations")
    return CapacityNow(
        quotas=tuple(_each(path, "quotas", document.get("quotas", []), _quota)),
        reservations=None if reservations is None else tuple(_each(path, "reservations", reservations, _reservation)),
        open_spot_requests=tuple(_each(path, "open_spot_requests", document.get("open_spot_requests", []), _spot_request)),
        max_usd_per_hour=_optional(document, "max_usd_per_hour", path),
        spent_usd_per_hour=_optional(document, "spent_usd_per_hour", path) or Decimal(0),
    )


def _each(path: str, name: str, rows: Any, make: Callable[[Mapping[str, Any], str], Any]) -> list[Any]:
    if not isinstance(rows, list):
        raise ValueError(f"--capacity-file {path}: {name} is not a list")  # noqa: TRY004 - a wrong file, not a wrong call
    found = []
    for index, row in enumerate(rows):
        where = f"--capacity-file {path}: {name}[{index}]"
        if not isinstance(row, dict):
            raise ValueError(f"{where} is not an object")  # noqa: TRY004 - as above
        found.append(make(row, where))
    return found


def _quota(row: Mapping[str, Any], where: str) -> QuotaState:
    return QuotaState(
        cloud=_text(row, "cloud", where),
        region=str(row.get("region", "")),
        code=_text(row, "code", where),
        unit=_text(row, "unit", where),
        limit=_optional(row, "limit", where),
        used=_optional(row, "used", where),
    )


def _reservation(row: Mapping[str, Any], where: str) -> Reservation:
    return Reservation(
        reservation_id=_text(row, "reservation_id", where),
        cloud=_text(row, "cloud", where),
        region=_text(row, "region", where),
        zone=_text(row, "zone", where),
        instance_type=_text(row, "instance_type", where),
        total_count=_count(row, "total_count", where),
        used_count=_count({"used_count": 0, **row}, "used_count", where),
    )


def _spot_request(row: Mapping[str, Any], where: str) -> OpenSpotRequest:
    return OpenSpotRequest(
        request_id=_text(row, "request_id", where),
        cloud=_text(row, "cloud", where),
        region=_text(row, "region", where),
        node_count=_count(row, "node_count", where),
        price_usd_per_hour=_optional(row, "price_usd_per_hour", where),
        quotas=tuple(_each(where, "quotas", row.get("quotas", []), _use)),
    )


def _use(row: Mapping[str, Any], where: str) -> QuotaUse:
    amount = _optional(row, "amount", where)
    if amount is None:
        raise ValueError(f"{where}: amount is missing")
    code = _text(row, "code", where)
    scope = str(row.get("scope", "region"))
    if scope not in {"region", "global"}:
        raise ValueError(f"{where}: scope {scope!r} is not one of region, global")
    return QuotaUse(code=code, name=str(row.get("name", code)), unit=_text(row, "unit", where), amount=amount, scope=scope)


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{where}: {name} {value!r} is not a text")
    return value


def _count(row: Mapping[str, Any], name: str, where: str) -> int:
    value = row.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{where}: {name} {value!r} is not a whole number of 0 or more")
    return value


def _optional(row: Mapping[str, Any], name: str, where: str) -> Decimal | None:
    """Returns the amount; None when it is missing or null, which means not known."""
    value = row.get(name)
    if value is None:
        return None
    amount = Decimal(value) if isinstance(value, (int, Decimal)) and not isinstance(value, bool) else Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise ValueError(f"{where}: {name} {value!r} is not a number of 0 or more")
    return amount
