"""The words in which errors are explained: actions, effects of a call, and one row of a table.

An action is what to do next; the drawn error says the same to a driver's caller. A row ties both to a source.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from hostler.cloud.errors import (
    AlreadyExistsError,
    CloudAuthError,
    CloudConfigError,
    CloudError,
    CloudThrottledError,
    CloudUnavailableError,
    InsufficientCapacityError,
    QuotaExceededError,
    SpotUnavailableError,
    TeardownRefusedError,
)

Action = Literal[
    "next_zone",
    "next_region",
    "next_instance_type",
    "switch_capacity_type",
    "fatal_quota",
    "fatal_auth",
    "fatal_config",
    "throttle_backoff",
    "retry_same_zone_later",
    "adopt_existing",
    "teardown_retry",
    "replace_node",
    "no_action",
]
"""``retry_same_zone_later``: same call again, at most ``hints["attempts"]`` times, then ``hints["then"]``."""

Effect = Literal["read", "create", "start", "delete", "unknown"]
"""What a call does to the cloud. ``start``: of a machine that exists, which has its disk in its zone and never moves."""

ERROR_OF: Final[Mapping[Action, type[CloudError] | None]] = {
    "next_zone": InsufficientCapacityError,
    "next_region": InsufficientCapacityError,
    "next_instance_type": InsufficientCapacityError,
    "switch_capacity_type": SpotUnavailableError,
    "fatal_quota": QuotaExceededError,
    "fatal_auth": CloudAuthError,
    "fatal_config": CloudConfigError,
    "throttle_backoff": CloudThrottledError,
    "retry_same_zone_later": CloudUnavailableError,
    "adopt_existing": AlreadyExistsError,
    "teardown_retry": TeardownRefusedError,
    "replace_node": None,
    "no_action": None,
}
"""What a driver raises where the action is that; None: a notice, which is a record and no error."""

RETRY_ATTEMPTS: Final = 3
"""How often an unknown refusal is tried again before the next offering. Ours: enough for a hiccup, cheap for a refusal."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a fact comes from, and the day (ISO) on which it was read there."""

    text: str
    read_on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """One row: what a code or a text means.

    Attributes:
        error: the drawn error; None for a notice. scope: what is hit, parts joined by ``+`` (``zone+type``).
        unit: of a quota; empty when it is none or not known. hints: facts that hold for every such error.
        is_weak: a wrapper or a generic name, believed only when nothing else in the text says more.
    """

    action: Action
    error: type[CloudError] | None
    scope: str
    source: Source
    unit: str = ""
    hints: Mapping[str, Any] = field(default_factory=dict)
    is_weak: bool = False

    def with_(self, **changes: Any) -> "Meaning":
        """Returns a copy with these fields changed; a changed action brings its own error unless one is given."""
        if "action" in changes:
            changes.setdefault("error", ERROR_OF[changes["action"]])
        return replace(self, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of shape: the first one whose parts all match says what is meant.

    Attributes:
        text: pattern searched in the text; empty: any. also: a second one that must be found anywhere, too; empty: none.
        unless: pattern that must not be found; empty: none. effects: calls for which it holds; empty: all.
    """

    then: Meaning
    text: str = ""
    also: str = ""
    unless: str = ""
    effects: frozenset[Effect] = frozenset()


def either(*patterns: str) -> str:
    """Returns one pattern that matches what any of these does."""
    return f"(?:{'|'.join(patterns)})"


def row(action: Action, scope: str, source: Source, **more: Any) -> Meaning:
    """Returns a row; its error is the one of its action unless ``error`` is given."""
    more.setdefault("error", ERROR_OF[action])
    return Meaning(action=action, scope=scope, source=source, **more)
