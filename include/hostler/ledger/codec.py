"""Records to JSON documents and back, for stores that keep rows.

A document holds the record's fields plus ``kind`` and ``format``. A row of an older program, without newer fields, loads with
their defaults; a row of a newer program is refused, because writing it back would drop what this program cannot read.
Decimals and datetimes are strings (ISO 8601, UTC), enums their values, tuples lists.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from hostler.ledger.errors import LedgerUnavailableError
from hostler.model.lease import Backup, Event, Intent, Job, Lease, Node, Receipt, Record

FORMAT: Final = 1
"""Version of the documents. Raise it when a field changes its meaning; a new field with a default needs no new number."""

KINDS: Final[dict[str, type[Record | Event]]] = {
    "lease": Lease,
    "intent": Intent,
    "node": Node,
    "job": Job,
    "backup": Backup,
    "receipt": Receipt,
    "event": Event,
}

_NAMES: Final = {type_: kind for kind, type_ in KINDS.items()}


def kind_of(record: Record | Event) -> str:
    """Returns the record's name in ``KINDS``."""
    return _NAMES[type(record)]


def encode(record: Record | Event) -> dict[str, Any]:
    """Returns the record as a document of JSON types.

    Characters that no JSON store keeps (NUL, lone surrogates, as they come in output of machines) become U+FFFD.

    Raises:
        ValueError: a datetime has no time zone; a defect of the caller.
    """
    return {"kind": kind_of(record), "format": FORMAT, **_plain_record(record)}


def decode(document: Mapping[str, Any]) -> Record | Event:
    """Returns the record of a document.

    Raises:
        LedgerUnavailableError: the document is of a newer program or is damaged; a person has to look.
    """
    values = dict(document)
    kind, format_ = values.pop("kind", None), values.pop("format", None)
    if kind not in KINDS or not isinstance(format_, int):
        raise LedgerUnavailableError(f"a row of the ledger is damaged: kind {kind!r}, format {format_!r}")
    if format_ > FORMAT:
        raise LedgerUnavailableError(
            f"a {kind} row has format {format_}, this program reads up to {FORMAT}: update the program"
        )
    try:
        return _adapter(kind).validate_python(values)
    except ValidationError as error:
        where = ", ".join(".".join(map(str, problem["loc"])) for problem in error.errors(include_input=False))
    raise LedgerUnavailableError(f"a {kind} row of the ledger is damaged in: {where}")


def to_json(record: Record | Event) -> str:
    """Returns the document as one line of JSON, keys sorted."""
    return json.dumps(encode(record), sort_keys=True, allow_nan=False)


def from_json(text: str) -> Record | Event:
    """Returns the record of ``to_json``'s text. Raises LedgerUnavailableError as ``decode`` does."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise LedgerUnavailableError("a row of the ledger is damaged: not a JSON object")
    return decode(document)


@cache
def _adapter(kind: str) -> TypeAdapter[Record | Event]:
    return TypeAdapter(KINDS[kind])


def _plain_record(record: Any) -> dict[str, Any]:
    return {field.name: _plain(getattr(record, field.name)) for field in fields(record)}


def _plain(value: Any) -> Any:  # noqa: PLR0911 - one arm a type
    match value:
        case Enum():
            return value.value
        case None | bool() | int():
            return value
        case str():
            return _plain_text(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return str(value)
        case datetime():
            return _plain_time(value)
        case tuple():
            return [_plain(item) for item in value]
    return _plain_record(value)


def _plain_text(text: str) -> str:
    if text.isascii() and "\0" not in text:
        return text
    # The detour over UTF-16 mends pairs of surrogates, which text from other tools may hold, and replaces lone ones.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\0", "\ufffd")


def _plain_time(moment: datetime) -> str:
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone; times are aware UTC")
    return moment.astimezone(UTC).isoformat()
