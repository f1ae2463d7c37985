"""Which table answers for which cloud: the only place where clouds are named."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hostler.catalog.error_rules import alibaba, aws, azure, google
from hostler.catalog.error_rules.words import Meaning, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One cloud's facts.

    Attributes:
        opening: rules that count more than any code. is_code_first: its codes are finer than its texts.
        is_403_auth: HTTP 403 is about permissions.
    """

    codes: Mapping[str, Meaning]
    rules: tuple[Rule, ...]
    opening: tuple[Rule, ...] = ()
    is_code_first: bool = False
    is_403_auth: bool = True


TABLES: Final[dict[str, Table]] = {
    "aws": Table(codes=aws.CODES, rules=aws.RULES, opening=aws.OPENING, is_code_first=True),
    "gcp": Table(codes=google.CODES, rules=google.RULES),
    "azure": Table(codes=azure.CODES, rules=azure.RULES),
    "alibaba": Table(codes=alibaba.CODES, rules=alibaba.RULES, is_code_first=True, is_403_auth=False),
}
NO_TABLE: Final = Table(codes={}, rules=())

_NAMES: Final = (
    (r"aws|amazon|\bec2|\beks", "aws"),
    (r"gcp|google|\bgce|\bgke|\btpu", "gcp"),
    (r"azure|microsoft|\baks\b|\barm\b", "azure"),
    (r"ali(?:baba|yun|cloud)|\backs?\b", "alibaba"),
)


def cloud_of(name: str) -> str:
    """Returns the table's name for a cloud's name (``gcp-tpu``, ``EKS``); the name itself where there is no table."""
    lower = name.strip().lower()
    return next((table for pattern, table in _NAMES if re.search(pattern, lower)), lower)
