"""Loads fleet.yaml: every error names the line, the field and what is allowed."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from hostler.config.clouds import CloudSettings
from hostler.config.schema import FleetFile

FLEET_VARIABLE = "HOSTLER_FLEET"
"""Environment variable that names the file; otherwise ``./fleet.yaml``, then ``~/.hostler/fleet.yaml``."""

CloudModels = Mapping[str, type[CloudSettings]]

_Location = tuple[str | int, ...]


class FleetFileError(ValueError):
    """The file cannot be used. Each problem is ``file:line: field: what is wrong``. Nothing was started."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def find_fleet_file() -> Path:
    """Returns the path of the file to use. Raises FleetFileError, which says where it was looked for."""
    named = os.environ.get(FLEET_VARIABLE)
    candidates = (Path(named),) if named else (Path("fleet.yaml"), Path.home() / ".hostler" / "fleet.yaml")
    for path in candidates:
        if path.is_file():
            return path
    looked = ", ".join(str(path) for path in candidates)
    raise FleetFileError((f"no fleet.yaml: looked for {looked}; set {FLEET_VARIABLE} to its path",))


def load_fleet(path: Path, cloud_models: CloudModels) -> FleetFile:
    """Reads and checks a fleet file.

    Args:
        path: the YAML file. cloud_models: settings model of each installed driver, by cloud name.

    Raises:
        FleetFileError: with every problem found, each with its line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FleetFileError((f"{path}: cannot be read: {error}",)) from error
    return parse_fleet(text, str(path), cloud_models)


def parse_fleet(text: str, name: str, cloud_models: CloudModels) -> FleetFile:
    """Checks the text of a fleet file; ``name`` is what errors call it. Raises FleetFileError."""
    root, document = _parsed(text, name)
    lines: dict[_Location, int] = {(): 1}
    problems: list[str] = []
    _walk(root, (), lines, problems, name)
    document = _expand(document, (), lines, problems, name)
    clouds = _clouds(document, lines, problems, name, cloud_models)
    try:
        fleet = FleetFile.model_validate({**document, "clouds": clouds} if clouds is not None else document)
    except ValidationError as error:
        own = (item for item in error.errors() if clouds is None or item["loc"][:1] != ("clouds",))
        problems.extend(_problem(name, lines, (), item) for item in own)
    if problems:
        raise FleetFileError(tuple(problems))
    return fleet


def _parsed(text: str, name: str) -> tuple[yaml.MappingNode, Any]:
    """Returns the tree, for line numbers, and the values."""
    try:
        if alias := next((token for token in yaml.scan(text) if isinstance(token, yaml.AliasToken)), None):
            # An alias may point at its own parent or blow up a few lines to gigabytes; no fleet file needs one.
            raise FleetFileError((f"{name}:{alias.start_mark.line + 1}: *{alias.value}: YAML aliases are not allowed here",))
        root, document = yaml.compose(text, Loader=yaml.SafeLoader), yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise FleetFileError((_yaml_problem(name, error),)) from error
    except (RecursionError, ValueError, OverflowError) as error:
        # nested thousands deep, or a date such as 2026-99-99: PyYAML lets these through unworded
        raise FleetFileError((f"{name}: not a fleet file: {error}",)) from error
    if not isinstance(root, yaml.MappingNode):
        raise FleetFileError((f"{name}:1: a fleet file is a mapping; the least is deployment, limits, backup, clouds",))
    return root, document


def _clouds(
    document: dict[str, Any], lines: dict[_Location, int], problems: list[str], name: str, models: CloudModels
) -> dict[str, CloudSettings] | None:
    """Checks each cloud's part by its driver's own model; None when there is nothing to check there."""
    parts = document.get("clouds")
    if not isinstance(parts, dict) or not parts:
        return None
    checked: dict[str, CloudSettings] = {}
    for cloud, part in parts.items():
        where: _Location = ("clouds", cloud)
        if cloud not in models:
            allowed = ", ".join(sorted(models)) or "none"
            problems.append(f"{name}:{lines.get(where, 1)}: clouds.{cloud}: unknown cloud; installed drivers: {allowed}")
            continue
        try:
            checked[cloud] = models[cloud].model_validate(part)
        except ValidationError as error:
            problems.extend(_problem(name, lines, where, item) for item in error.errors())
    return checked


def _walk(node: yaml.Node, where: _Location, lines: dict[_Location, int], problems: list[str], name: str) -> None:
    """Notes the line of every key and refuses a key that stands twice (YAML would keep the last one silently)."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.value in seen:
                problems.append(f"{name}:{line}: {_dotted((*where, key.value))}: stands twice")
            seen.add(key.value)
            lines[(*where, key.value)] = line
            _walk(value, (*where, key.value), lines, problems, name)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            lines[(*where, index)] = value.start_mark.line + 1
            _walk(value, (*where, index), lines, problems, name)


def _expand(value: Any, where: _Location, lines: dict[_Location, int], problems: list[str], name: str) -> Any:
    """Replaces ``${NAME}`` in texts by the environment's value; an unset one is a problem, not an empty text."""
    if isinstance(value, dict):
        return {key: _expand(item, (*where, key), lines, problems, name) for key, item in value.items()}
    if isinstance(value, list):
        return [_expand(item, (*where, index), lines, problems, name) for index, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    unset = [variable for variable in re.findall(r"\$\{(\w+)\}", value) if variable not in os.environ]
    line = lines.get(where, 1)
    problems.extend(f"{name}:{line}: {_dotted(where)}: environment variable {variable} is not set" for variable in unset)
    return re.sub(r"\$\{(\w+)\}", lambda match: os.environ.get(match[1], ""), value)


def _problem(name: str, lines: dict[_Location, int], prefix: _Location, item: Any) -> str:
    """Words one pydantic error with its line; a missing field is reported at the line of its parent."""
    location: _Location = (*prefix, *item["loc"])
    known = location
    while known not in lines:
        known = known[:-1]
    message = item["msg"].removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        message = "unknown field"
    elif item["type"] == "missing":
        message = "is missing"
    return f"{name}:{lines[known]}: {_dotted(location)}: {message}"


def _dotted(location: _Location) -> str:
    return ".".join(str(part) for part in location) or "fleet file"


def _yaml_problem(name: str, error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    line = mark.line + 1 if mark is not None else 1
    return f"{name}:{line}: not YAML: {getattr(error, 'problem', None) or error}"
