"""Kernel lines that carry no number: PCIe, network, driver and host messages, as rows of data (pure)."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from hostler.health.catalog.tables import rows
from hostler.health.kernel_event import LineKind
from hostler.model.enums import HealthAction, Verdict

WORDS_CHARS: Final = 2048
"""So much of a line is compared with the rows: twice what the kernel writes, and it bounds the time of any line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordRule:
    """One row. hints: one must be in the lower-case line, tested first because it is cheap."""

    name: str
    kind: LineKind
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    action: HealthAction
    verdict: Verdict
    is_fatal: bool
    words: str
    source: str


@lru_cache(maxsize=1)
def word_rules() -> tuple[WordRule, ...]:
    """Returns every row in the table's order, which is the order of precedence."""
    return tuple(
        WordRule(
            name=row["name"],
            kind=LineKind(row["kind"]),
            hints=tuple(row["hint"].split(";")),
            pattern=re.compile(row["pattern"]),
            action=HealthAction(row["action"]),
            verdict=Verdict(row["verdict"]),
            is_fatal=row["is_fatal"] == "yes",
            words=row["words"],
            source=f"{row['source']} (read {row['read_on']})",
        )
        for row in rows("kernel_lines")
    )


def word_rule(message: str) -> WordRule | None:
    """Returns the first row that fits the message; None when none does."""
    low = message[:WORDS_CHARS].lower()
    for rule in word_rules():
        for hint in rule.hints:
            if hint in low:
                if rule.pattern.search(low):
                    return rule
                break
    return None
