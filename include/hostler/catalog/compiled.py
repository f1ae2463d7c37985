"""The catalog as bytes: quick to read, read in part by accelerator and count, and safe to read from anybody.

Form: ``MAGIC``, a version byte, a SHA-256 of the head, the head's length (4 bytes, big end first), the head (JSON), then one JSON
block for each accelerator and count. The head holds what offerings share (texts, quota uses, times), where each block lies, and
its SHA-256: only what is read is checked.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from hostler.catalog.errors import CatalogError
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering, QuotaUse

if TYPE_CHECKING:  # its readers of price lists cost more to import than all of this
    from hostler.catalog.offerings import Catalog

MAGIC: Final = b"HOSTLER-CATALOG\n"
VERSION: Final = 2

_DIGEST: Final = 32
_HEAD: Final = len(MAGIC) + 1 + _DIGEST
_NAMES: Final = tuple(field.name for field in fields(Offering))
_QUOTA_NAMES: Final = tuple(field.name for field in fields(QuotaUse))
_KINDS: Final = {kind.value: kind for kind in CapacityType}
_KIND, _PRICE, _OWN_PRICE, _QUOTAS, _PRICED_AT, _DOUBTS = (
    _NAMES.index(name)
    for name in ("capacity_type", "price_usd_per_hour", "price_in_currency_per_hour", "quotas", "priced_at", "doubts")
)


class CompiledError(ValueError):
    """The bytes are no catalog of this version. Nothing of them is used: make them again from the price lists."""


def packed(catalog: "Catalog") -> bytes:
    """Returns the catalog as bytes; equal catalogs give equal bytes."""
    quotas: dict[tuple[QuotaUse, ...], int] = {}
    times: dict[datetime | None, int] = {}
    blocks: dict[tuple[str, int], list[list[Any]]] = {}
    for index, item in enumerate(catalog.offerings):
        row: list[Any] = [getattr(item, name) for name in _NAMES]
        row[_QUOTAS] = quotas.setdefault(item.quotas, len(quotas))
        row[_PRICED_AT] = times.setdefault(item.priced_at, len(times))
        blocks.setdefault((item.accelerator, item.accelerator_count), []).append([index, *row])
    bodies = [(name, count, len(rows), _json(rows)) for (name, count), rows in sorted(blocks.items())]
    places: list[tuple[str, int, int, int, int, str]] = []
    start = 0
    for name, count, size, body in bodies:
        places.append((name, count, size, start, len(body), hashlib.sha256(body).hexdigest()))
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
    signed = len(head).to_bytes(4, "big") + head
    return b"".join((MAGIC, bytes([VERSION]), hashlib.sha256(signed).digest(), signed, *(body for *_, body in bodies)))


class CompiledCatalog:
    """A catalog as bytes, of which only what is asked for is read.

    Attributes:
        sizes: accelerator -> its count in a machine -> number of offerings. faults, remarks, loaded_at_source: see ``Catalog``.
    """

    def __init__(self, data: bytes) -> None:
        """Reads the head. Raises CompiledError."""
        if not data.startswith(MAGIC) or len(data) < _HEAD + 4:
            raise CompiledError("not a compiled catalog")
        if data[len(MAGIC)] != VERSION:
            raise CompiledError(f"a compiled catalog of version {data[len(MAGIC)]}; this is version {VERSION}")
        start = _HEAD + 4
        self._start = start + int.from_bytes(data[_HEAD:start], "big")
        self._data = memoryview(data)
        if hashlib.sha256(self._data[_HEAD : self._start]).digest() != data[_HEAD - _DIGEST : _HEAD]:
            raise CompiledError("a damaged compiled catalog")
        try:
            self._read_head(json.loads(data[start : self._start]))
        except (ValueError, KeyError, IndexError, TypeError, ArithmeticError) as error:
            raise CompiledError(f"a compiled catalog that does not fit: {error}") from error

    def offerings(self, accelerator: str, count: int) -> list[tuple[int, Offering]]:
        """Returns the offerings with so many of the accelerator, each with its place in the catalog; empty when there are none.

        Raises:
            CompiledError: the block is damaged.
        """
        place = self._blocks.get((accelerator, count))
        if place is None:
            return []
        start, length, digest = place
        body = self._data[self._start + start : self._start + start + length]
        if hashlib.sha256(body).hexdigest() != digest:
            raise CompiledError("a damaged compiled catalog")
        try:
            return [self._offering(row) for row in json.loads(bytes(body))]
        except (ValueError, KeyError, IndexError, TypeError, ArithmeticError) as error:
            raise CompiledError(f"a compiled catalog that does not fit: {error}") from error

    def _read_head(self, head: dict[str, Any]) -> None:
        if tuple(head["names"]) != _NAMES:
            raise CompiledError("a compiled catalog with other fields")
        self._quotas = [tuple(_quota_use(use) for use in uses) for uses in head["quotas"]]
        self._times = [_time(text) for text in head["times"]]
        self._blocks: dict[tuple[str, int], tuple[int, int, str]] = {}
        self.sizes: dict[str, dict[int, int]] = {}
        for name, count, size, start, length, digest in head["blocks"]:
            self._blocks[name, count] = (start, length, digest)
            self.sizes.setdefault(name, {})[count] = size
        self.faults = tuple(CatalogError(*fault) for fault in head["faults"])
        self.remarks: tuple[str, ...] = tuple(head["remarks"])
        self.loaded_at_source: Mapping[str, datetime | None] = {name: _time(text) for name, text in head["sources"].items()}

    def _offering(self, row: list[Any]) -> tuple[int, Offering]:
        index = row.pop(0)
        row[_KIND] = _KINDS[row[_KIND]]
        row[_PRICE] = _decimal(row[_PRICE])
        row[_OWN_PRICE] = _decimal(row[_OWN_PRICE])
        row[_QUOTAS] = self._quotas[row[_QUOTAS]]
        row[_PRICED_AT] = self._times[row[_PRICED_AT]]
        row[_DOUBTS] = tuple(row[_DOUBTS])
        return int(index), Offering(**dict(zip(_NAMES, row, strict=True)))


def unpacked(data: bytes, accelerators: Collection[str] | None = None) -> "Catalog":
    """Returns the catalog, or the part of it with these accelerators; see ``Catalog.from_bytes``. Raises CompiledError."""
    from hostler.catalog.offerings import Catalog

    compiled = CompiledCatalog(data)
    numbered: list[tuple[int, Offering]] = []
    for name, counts in compiled.sizes.items():
        if accelerators is None or name in accelerators:
            for count in counts:
                numbered += compiled.offerings(name, count)
    numbered.sort(key=lambda pair: pair[0])
    return Catalog(
        offerings=tuple(item for _, item in numbered),
        faults=compiled.faults,
        remarks=compiled.remarks,
        loaded_at_source=compiled.loaded_at_source,
    )


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
