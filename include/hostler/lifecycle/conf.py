"""From a Dag run's conf to a NodeRequest: checked whole against the one table of fields, numbers brought to one form. Pure."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError

from hostler.lifecycle.refusal import Problem, RequestRefusedError
from hostler.model.enums import CapacityType
from hostler.model.request import NodeRequest
from hostler.model.request_schema import MAX_CONF_BYTES, REQUEST_FIELDS

SHOWN = 80
"""Most characters of a wrong value that a message repeats."""


def read_conf(conf: Mapping[str, Any]) -> NodeRequest:
    """Returns the request; fields that are missing take the default of the table.

    Whole numbers may come as ``2.0`` where the field is an integer (JSON knows one kind of number): they become ``2``. Truth
    values are no numbers; NaN and infinities are refused.

    Raises:
        RequestRefusedError: with every problem found.
    """
    _check_size(conf)
    problems: list[Problem] = [
        (_shown(name), f"unknown field; allowed: {', '.join(REQUEST_FIELDS)}") for name in conf if name not in REQUEST_FIELDS
    ]
    values: dict[str, Any] = {}
    problems += [(_shown(name), f"has a {what} in it; allowed: text without") for name, what in _unstorable(conf)]
    for name, field in REQUEST_FIELDS.items():
        values[name] = _whole(conf.get(name, field["default"]), field["schema"])
        problems += _problems(name, values[name], field["schema"])
    if problems:
        raise RequestRefusedError(tuple(problems))
    request, more = _request(values)
    if more:
        raise RequestRefusedError(tuple(more))
    return request


def _check_size(conf: Mapping[str, Any]) -> None:
    try:
        size = len(json.dumps(conf, default=str).encode("utf-8", "surrogatepass"))
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestRefusedError(
            (("conf", f"is not JSON: {type(error).__name__}; allowed: an object of JSON values"),)
        ) from error
    if size > MAX_CONF_BYTES:
        raise RequestRefusedError((("conf", f"{size} bytes; allowed: up to {MAX_CONF_BYTES} bytes"),))


def _shown(name: object) -> str:
    """Returns a key as a message may hold it: short, and nothing that a log or a database cannot take."""
    text = str(name)[:SHOWN]
    return text if text.isprintable() else ascii(text)


def _unstorable(conf: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns keys whose texts hold what JSON allows and neither PostgreSQL nor a process' arguments can: NUL, half characters."""
    found: list[tuple[str, str]] = []
    for name, value in conf.items():
        text = f"{name}{json.dumps(value, default=str, ensure_ascii=False)}"
        if "\x00" in str(name) or "\\u0000" in text.replace("\\\\", ""):
            found.append((name, "NUL"))
        elif any("\ud800" <= letter <= "\udfff" for letter in text):
            found.append((name, "half of a surrogate pair"))
    return found


def _whole(value: Any, schema: Mapping[str, Any]) -> Any:
    """Returns 2 for 2.0 where an integer is asked; everything else as it is."""
    if schema["type"] == "integer" and isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return value


def _problems(name: str, value: Any, schema: Mapping[str, Any]) -> list[Problem]:
    if isinstance(value, float) and not math.isfinite(value):
        return [(name, f"{value} is not a number; allowed: {_allowed(schema)}")]
    if isinstance(value, bool):
        return [(name, f"{json.dumps(value)} is not allowed; allowed: {_allowed(schema)}")]
    errors = Draft202012Validator(schema, format_checker=FormatChecker()).iter_errors(value)
    return [(name, f"{_what(error)}; allowed: {_allowed(schema)}") for error in errors]


def _what(error: ValidationError) -> str:
    shown = repr(error.instance)
    shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"
    return f"{shown} does not fit ({error.validator} {error.validator_value!r})"


def _allowed(schema: Mapping[str, Any]) -> str:
    """Returns what a field allows, in words."""
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    words = " or ".join("nothing" if kind == "null" else kind for kind in kinds)
    bounds = [
        f"{label} {schema[key]}"
        for key, label in (
            ("minimum", "from"),
            ("exclusiveMinimum", "above"),
            ("maximum", "up to"),
            ("maxLength", "characters at most"),
            ("pattern", "matching"),
            ("format", "in the form"),
        )
        if key in schema
    ]
    items = schema.get("items")
    if items:
        bounds.append(f"of {_allowed(items)}")
    return " ".join([words, *bounds])


def _request(values: Mapping[str, Any]) -> tuple[NodeRequest, list[Problem]]:
    problems: list[Problem] = []
    deadline_at = None
    if values["deadline"] is not None:
        deadline_at, problem = _deadline(values["deadline"])
        problems += problem
    script = values["script"]
    if (values["recipe"] == "script") != bool(script):
        problems.append(("script", "is set exactly when recipe is `script`"))
    price = values["max_price_usd_per_hour"]
    request = NodeRequest(
        tenant=values["tenant"],
        accelerator=values["accelerator"],
        accelerators_per_node=values["accelerators_per_node"],
        node_count=values["nodes"],
        capacity_types=tuple(CapacityType(kind) for kind in values["capacity_types"]),
        max_cost_usd=Decimal(str(values["max_cost_usd"])),
        clouds=tuple(values["clouds"]),
        regions=tuple(values["regions"]),
        recipe=values["recipe"],
        script=script or None,
        code_uri=values["code_uri"],
        data_uri=values["data_uri"],
        recipe_options=tuple(sorted(values["recipe_options"].items())),
        secrets=tuple(values["secrets"]),
        checkpoint_interval_steps=values["checkpoint_interval_steps"],
        deadline_at=deadline_at,
        keep_s=values["keep_s"],
        max_price_usd_per_hour=None if price is None else Decimal(str(price)),
    )
    return request, problems


def _deadline(text: str) -> tuple[datetime | None, list[Problem]]:
    allowed = "allowed: ISO 8601 with time zone, such as 2026-12-31T18:00:00+00:00"
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None, [("deadline", f"{text[:SHOWN]!r} is not a time; {allowed}")]
    if at.tzinfo is None:
        return None, [("deadline", f"{text[:SHOWN]!r} has no time zone; {allowed}")]
    try:
        return at.astimezone(UTC), []
    except OverflowError:
        return None, [("deadline", f"{text[:SHOWN]!r} is out of range; {allowed}")]
