"""The catalog as bytes: quick to read, read in part by accelerator, and safe to read from anybody.

Form: ``MAGIC``, a version byte, a SHA-256 of the rest, the length of a JSON head (4 bytes, big end first), the head, then one
JSON block an accelerator. The head holds what offerings share (texts, quota uses, times) and where each block lies.
"""

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import fields
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from hostler.catalog.errors import CatalogError
from hostler.catalog.offerings import Catalog
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering, QuotaUse

MAGIC: Final = b"HOSTLER-CATALOG\n"
VERSION: Final = 1

_DIGEST: Final = 32
_HEAD: Final = len(MAGIC) + 1 + _DIGEST
_NAMES: Final = tuple(field.name for field in fields(Offering))
_QUOTA_NAMES: Final = tuple(field.name for field in fields(QuotaUse))


class CompiledError(ValueError):
    """The bytes are no catalog of this version. Nothing of them is used: make them again from the price lists."""


def packed(catalog: Catalog) -> bytes:
    """Returns the catalog as bytes; equal catalogs give equal bytes."""
    quotas: dict[tuple[QuotaUse, ...], int] = {}
    times: dict[datetime | None, int] = {}
    blocks: dict[str, list[list[Any]]] = {}
    for index, item in enumerate(catalog.offerings):
        row: list[Any] = [index, *(getattr(item, name) for name in _NAMES)]
        row[1 + _NAMES.index("quotas")] = quotas.setdefault(item.quotas, len(quotas))
        row[1 + _NAMES.index("priced_at")] = times.setdefault(item.priced_at, len(times))
        blocks.setdefault(item.accelerator, []).append(row)
    bodies = {name: _json(rows) for name, rows in sorted(blocks.items())}
    places, start = {}, 0
    for name, body in bodies.items():
        places[name] = [start, len(body)]
        start += len(body)
    head = _json(
        {
            "names": _NAMES,
            "blocks": places,
            "quotas": [[[getattr(use, name) for name in _QUOTA_NAMES] for use in uses] for uses in quotas],
            "times": list(times),
            "faults": [[fault.source, fault.line, fault.problem] for fault in catalog.faults],
            "remarks": catalog.remarks,
            "sources": dict(catalog.loaded_at_source),
        }
    )
    rest = len(head).to_bytes(4, "big") + head + b"".join(bodies.values())
    return MAGIC + bytes([VERSION]) + hashlib.sha256(rest).digest() + rest


def unpacked(data: bytes, accelerators: Collection[str] | None = None) -> Catalog:
    """Returns the catalog, or the part of it with these accelerators; see ``Catalog.from_bytes``. Raises CompiledError."""
    if not data.startswith(MAGIC) or len(data) < _HEAD + 4:
        raise CompiledError("not a compiled catalog")
    if data[len(MAGIC)] != VERSION:
        raise CompiledError(f"a compiled catalog of version {data[len(MAGIC)]}; this is version {VERSION}")
    if hashlib.sha256(memoryview(data)[_HEAD:]).digest() != data[_HEAD - _DIGEST : _HEAD]:
        raise CompiledError("a damaged compiled catalog")
    try:
        return _read(data, accelerators)
    except (ValueError, KeyError, IndexError, TypeError, ArithmeticError) as error:
        raise CompiledError(f"a compiled catalog that does not fit: {error}") from error


def _read(data: bytes, accelerators: Collection[str] | None) -> Catalog:
    start = _HEAD + 4
    end = start + int.from_bytes(data[_HEAD:start], "big")
    head = json.loads(data[start:end])
    if tuple(head["names"]) != _NAMES:
        raise CompiledError("a compiled catalog with other fields")
    quotas = _Quotas(head["quotas"])
    times = [_time(text) for text in head["times"]]
    numbered: list[tuple[int, Offering]] = []
    for name, (offset, length) in head["blocks"].items():
        if accelerators is None or name in accelerators:
            numbered += (_offering(row, quotas, times) for row in json.loads(data[end + offset : end + offset + length]))
    numbered.sort(key=lambda pair: pair[0])
    return Catalog(
        offerings=tuple(item for _, item in numbered),
        faults=tuple(CatalogError(*fault) for fault in head["faults"]),
        remarks=tuple(head["remarks"]),
        loaded_at_source={name: _time(text) for name, text in head["sources"].items()},
    )


def _offering(row: Sequence[Any], quotas: "_Quotas", times: Sequence[datetime | None]) -> tuple[int, Offering]:
    index, *cells = row
    values = dict(zip(_NAMES, cells, strict=True))
    values["capacity_type"] = CapacityType(values["capacity_type"])
    values["price_usd_per_hour"] = _decimal(values["price_usd_per_hour"])
    values["price_in_currency_per_hour"] = _decimal(values["price_in_currency_per_hour"])
    values["quotas"] = quotas[values["quotas"]]
    values["priced_at"] = times[values["priced_at"]]
    values["doubts"] = tuple(values["doubts"])
    return int(index), Offering(**values)


class _Quotas:
    """Quota uses by number, made when they are first asked for: a part of the catalog needs a part of them."""

    def __init__(self, raw: Sequence[Sequence[Sequence[Any]]]) -> None:
        self._raw = raw
        self._made: dict[int, tuple[QuotaUse, ...]] = {}

    def __getitem__(self, number: int) -> tuple[QuotaUse, ...]:
        found = self._made.get(number)
        if found is None:
            self._made[number] = found = tuple(_quota_use(use) for use in self._raw[number])
        return found


def _quota_use(cells: Sequence[Any]) -> QuotaUse:
    values = dict(zip(_QUOTA_NAMES, cells, strict=True))
    return QuotaUse(**{**values, "amount": Decimal(values["amount"])})


def _decimal(text: str | None) -> Decimal | None:
    """Returns the price; NaN and the like are no price and no catalog."""
    if text is None:
        return None
    value = Decimal(text)
    if not value.is_finite() or value <= 0:
        raise ValueError(f"{text} is not a price")
    return value


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_plain).encode()


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no place in a compiled catalog")
