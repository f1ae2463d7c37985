"""EC2's query protocol, both ways, by Amazon's own service model: what the model does not know is refused."""

import base64
import functools
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from xml.sax.saxutils import escape

from moto.core.utils import get_service_model

from hostler_sandbox.aws.errors import Ec2Error

Tree = dict[str, Any]
_ENVELOPE: Final = frozenset(
    {"Action", "Version", "AWSAccessKeyId", "Signature", "SignatureMethod", "SignatureVersion", "Timestamp"}
)
_TRUE: Final = frozenset({"true", "1"})


@functools.cache
def operation(name: str) -> Any:
    """Returns botocore's model of an EC2 operation. Raises Ec2Error InvalidAction for one that EC2 does not have."""
    model = get_service_model("ec2")
    if name not in model.operation_names:
        raise Ec2Error("InvalidAction", f"The action {name} is not valid for this web service.")
    return model.operation_model(name)


def parse(action: str, form: Mapping[str, str]) -> dict[str, Any]:
    """Returns the parameters of a request, typed as the model says.

    Raises:
        Ec2Error: UnknownParameter, or InvalidParameterValue for text that is no number or boolean.
    """
    tree: Tree = {}
    for key, value in form.items():
        if key not in _ENVELOPE:
            _plant(tree, key.split("."), value, key)
    shape = operation(action).input_shape
    return _structure(shape, tree, "") if shape is not None else {}


def _plant(tree: Tree, path: list[str], value: str, key: str) -> None:
    for part in path[:-1]:
        tree = tree.setdefault(part, {})
        if not isinstance(tree, dict):
            raise Ec2Error("InvalidQueryParameter", f"The parameter {key} is not valid.")
    tree[path[-1]] = value


def _query_name(name: str, shape: Any) -> str:
    """Returns a member's name in a query. Source: botocore ``serialize.EC2Serializer``: queryName, else locationName capitalised."""
    if "queryName" in shape.serialization:
        return str(shape.serialization["queryName"])
    found = shape.serialization.get("name")
    return found[0].upper() + found[1:] if found else name


@functools.cache
def _members(shape: Any) -> dict[str, tuple[str, Any]]:
    return {_query_name(name, member): (name, member) for name, member in shape.members.items()}


def _structure(shape: Any, tree: Tree, path: str) -> dict[str, Any]:
    members = _members(shape)
    found = {}
    for key, value in tree.items():
        if key not in members:
            raise Ec2Error("UnknownParameter", f"The parameter {path}{key} is not recognized")
        name, member = members[key]
        found[name] = _value(member, value, f"{path}{key}.")
    return found


def _value(shape: Any, value: Any, path: str) -> Any:
    if shape.type_name in {"structure", "list"}:
        if not isinstance(value, dict):
            raise Ec2Error("InvalidParameterValue", f"The parameter {path[:-1]} may not be a plain value")
        if shape.type_name == "structure":
            return _structure(shape, value, path)
        try:
            numbers = sorted(value, key=int)
        except ValueError:
            raise Ec2Error("InvalidQueryParameter", f"The parameter {path[:-1]} must be a list") from None
        return [_value(shape.member, value[number], f"{path}{number}.") for number in numbers]
    if isinstance(value, dict):
        raise Ec2Error("UnknownParameter", f"The parameter {path}{next(iter(value))} is not recognized")
    return _scalar(shape.type_name, value, path[:-1])


def _scalar(kind: str, text: str, name: str) -> Any:
    try:
        if kind in {"integer", "long"}:
            return int(text)
        if kind in {"double", "float"}:
            return float(text)
        if kind == "timestamp":
            return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        raise Ec2Error("InvalidParameterValue", f"Invalid value '{text}' for {name}.") from None
    return text.lower() in _TRUE if kind == "boolean" else text


# -- answers ------------------------------------------------------------------------------------------------------------------


def answer(action: str, result: Mapping[str, Any]) -> bytes:
    """Returns the answer document. Raises TypeError for a member that the model does not have."""
    shape = operation(action).output_shape
    body = members_xml(shape, result) if shape is not None else "<return>true</return>"
    return envelope(action, body)


def envelope(action: str, body: str) -> bytes:
    """Returns the answer document around a body that is XML already."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{action}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
        f"<requestId>{uuid.uuid4()}</requestId>{body}</{action}Response>"
    ).encode()


def error(failure: Ec2Error) -> bytes:
    """Returns EC2's error document."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error>'
        f"<Code>{escape(failure.code)}</Code><Message>{escape(failure.text)}</Message></Error></Errors>"
        f"<RequestID>{uuid.uuid4()}</RequestID></Response>"
    ).encode()


def members_xml(shape: Any, values: Mapping[str, Any]) -> str:
    """Returns a structure's members as XML; None members are left out."""
    parts = []
    for name, value in values.items():
        if name not in shape.members:
            raise TypeError(f"{shape.name} has no member {name}")
        if value is not None:
            member = shape.members[name]
            tag = member.serialization.get("name", name)
            parts.append(f"<{tag}>{value_xml(member, value)}</{tag}>")
    return "".join(parts)


def value_xml(shape: Any, value: Any) -> str:
    """Returns a value as XML, without its own tag."""
    kind = shape.type_name
    if kind == "structure":
        return members_xml(shape, value)
    if kind == "list":
        tag = shape.member.serialization.get("name", "item")
        return "".join(f"<{tag}>{value_xml(shape.member, item)}</{tag}>" for item in value)
    if kind == "timestamp":
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}Z"
    if kind == "boolean":
        return "true" if value else "false"
    if kind == "blob":
        return base64.b64encode(value).decode()
    return escape(str(value))
