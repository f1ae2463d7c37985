"""Explains one error: what to do next, as which of our types, what is hit, and the facts that help."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hostler.catalog.error_rules.hints import hints_of
from hostler.catalog.error_rules.reading import read, told
from hostler.catalog.error_rules.ruling import decide
from hostler.catalog.error_rules.tables import cloud_of
from hostler.catalog.error_rules.words import RETRY_ATTEMPTS, Action

_log = logging.getLogger(__name__)

_SHOWN: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What an error means.

    Attributes:
        error: name of our type in ``hostler.cloud.errors``; None: a notice, which is no error.
        scope: what is hit, parts joined by ``+``, such as ``zone+type``. hints: facts of the text; empty: it told none.
        is_unknown: nothing in the text was known; the action is the safe default.
    """

    action: Action
    error: str | None
    scope: str
    hints: Mapping[str, Any] = field(default_factory=dict)
    is_unknown: bool = False


def explain(cloud: str, call: str, raw: object) -> Explanation:
    """Returns what an error means; for any input, also one that nobody has seen.

    Args:
        cloud: name of the cloud as people write it; one without a table is answered by shape. call: the API call or what was
            asked (``RunInstances``, ``tpu create``, ``IMDS spot``). raw: text, bytes, or a document.
    """
    evidence = read(cloud_of(cloud), call, raw)
    meaning, basis = decide(evidence)
    hints = hints_of(evidence, meaning)
    if meaning.action == "retry_same_zone_later" and evidence.effect != "start":
        then = "replace_node" if meaning.error and meaning.error.__name__ == "NodeNotFoundError" else "next_zone"
        hints |= {"attempts": RETRY_ATTEMPTS, "then": then}
    is_unknown = basis in {"status", "nothing"}
    if is_unknown:
        _log.warning("unknown error of %s in %s: %s", cloud[:_SHOWN], call[:_SHOWN], told(evidence.text))
    return Explanation(
        action=meaning.action,
        error=meaning.error.__name__ if meaning.error else None,
        scope=meaning.scope,
        hints=hints,
        is_unknown=is_unknown,
    )
