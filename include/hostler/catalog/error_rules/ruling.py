"""Decides what an error means: notices, shared rules, the cloud's table, families of codes, texts, status, safe default.

The order is what keeps a rate from being called a quota and stock from being called a permission.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Final, Literal

from hostler.catalog.error_rules import notices, shape, texts
from hostler.catalog.error_rules.reading import Evidence
from hostler.catalog.error_rules.tables import NO_TABLE, TABLES, Table
from hostler.catalog.error_rules.words import Effect, Meaning, Rule
from hostler.cloud.errors import (
    AnswerLostError,
    CloudConfigError,
    CloudUnavailableError,
    InsufficientCapacityError,
    NodeNotFoundError,
    TeardownRefusedError,
)

Basis = Literal["code", "family", "text", "status", "nothing"]
"""What decided. ``status`` and ``nothing``: the error is not known."""

_TOO_MANY_REQUESTS: Final = 429
_REFUSED: Final = (401, 403)
_TELLING: Final = (401, 429)
"""These say all that a code would."""
_BAD_REQUEST: Final = 400
_SERVER_ERROR: Final = 500


def decide(evidence: Evidence) -> tuple[Meaning, Basis]:
    """Returns what an error means, and what decided."""
    meaning, basis = _raw(evidence)
    return shape.without_zones(evidence.cloud, for_effect(meaning, evidence.effect)), basis


def _raw(evidence: Evidence) -> tuple[Meaning, Basis]:
    table = TABLES.get(evidence.cloud, NO_TABLE)
    for step, basis in _STEPS:
        if found := step(table, evidence):
            return found, basis
    default = by_status(evidence.status, evidence.effect, is_403_auth=table.is_403_auth)
    if evidence.status in _TELLING:
        return default, "code"
    return default, "status" if evidence.status else "nothing"


def for_effect(meaning: Meaning, effect: Effect) -> Meaning:
    """Returns what a row means for the call that met it.

    A lost answer is a matter of creates only: reads and deletes are made again.
    """
    if effect == "start":
        return _for_start(meaning)
    if meaning.error is AnswerLostError and effect not in {"create", "unknown"}:
        return meaning.with_(error=CloudUnavailableError)
    if meaning.error is TeardownRefusedError and effect not in {"delete", "unknown"}:
        return meaning.with_(action="fatal_config")
    if effect == "delete" and meaning.is_weak and meaning.action == "fatal_config":
        return shape.BUSY
    if effect == "read" and meaning.is_weak and meaning.error is InsufficientCapacityError:
        return shape.RATE  # a look needs no stock: "exhausted" can only be the rate
    return _for_absent(meaning, effect) if meaning.error is NodeNotFoundError else meaning


def _for_absent(meaning: Meaning, effect: Effect) -> Meaning:
    """A delete wanted it gone; a create misses something that its order names; whoever looks may look too early."""
    if effect == "delete":
        return meaning.with_(action="no_action", error=NodeNotFoundError)
    return meaning.with_(action="fatal_config") if effect == "create" else meaning


def _for_start(meaning: Meaning) -> Meaning:
    """A machine that exists has its disk in its zone: starting it never moves, and never makes a second one."""
    stays = {**meaning.hints, "no_failover": True}
    if meaning.error is AnswerLostError:
        return meaning.with_(error=CloudUnavailableError)
    if meaning.error is TeardownRefusedError:
        return meaning.with_(action="retry_same_zone_later", hints=stays)
    if meaning.error is InsufficientCapacityError:
        return meaning.with_(action="retry_same_zone_later", error=InsufficientCapacityError, hints=stays)
    return meaning.with_(error=meaning.error, hints=stays) if meaning.action == "fatal_quota" else meaning


def by_status(status: int, effect: Effect, *, is_403_auth: bool = True) -> Meaning:
    """Returns the safe default for what nothing is known of.

    A create may have worked unless the cloud clearly refused it. A refused one is tried a few times and then goes on like a
    stock-out: the next offering, this one again later and ever more seldom. A delete is tried without end.
    """
    if status == _TOO_MANY_REQUESTS:
        return shape.RATE
    if status in _REFUSED and (is_403_auth or status == _REFUSED[0]):
        return shape.DENIED
    is_refusal = _BAD_REQUEST <= status < _SERVER_ERROR
    if effect == "delete":
        return shape.BUSY if is_refusal or not status else shape.LOST
    if effect == "create" and is_refusal:
        return shape.LOST.with_(error=InsufficientCapacityError)
    return shape.LOST


def _notice(_table: Table, evidence: Evidence) -> Meaning | None:
    if evidence.effect in {"delete", "create", "start"}:
        return None
    found = first(notices.NOTICES, evidence)
    if found is None and _pattern(notices.METADATA).search(evidence.call):
        return first(notices.BARE, evidence)
    return found


def _rate(_table: Table, evidence: Evidence) -> Meaning | None:
    """A rate of Google's counts a project; one "per region" a project in a region."""
    found = first(shape.FIRST, evidence)
    if found is None or evidence.cloud != "gcp":
        return found
    scope = "project+region" if re.search(r"(?i)per (?:minute per )?region|perregion", evidence.text) else "project"
    return found.with_(scope=scope, error=found.error)


def _opening(table: Table, evidence: Evidence) -> Meaning | None:
    return first(table.opening, evidence)


def _fine_code(table: Table, evidence: Evidence) -> Meaning | None:
    return of_codes(table, evidence, weak=False) if table.is_code_first else None


def _rule(table: Table, evidence: Evidence) -> Meaning | None:
    return first(table.rules, evidence)


def _code(table: Table, evidence: Evidence) -> Meaning | None:
    """Returns what a code means, also at a cloud without a table: many speak Amazon's or Google's codes."""
    if table.codes:
        return of_codes(table, evidence, weak=False)
    lent = (of_codes(other, replace(evidence, cloud=cloud), weak=False) for cloud, other in TABLES.items())
    return next((meaning for meaning in lent if meaning and meaning.error is not CloudConfigError), None)


def _text(_table: Table, evidence: Evidence) -> Meaning | None:
    """Returns what the words say, also those of a code that is a sentence (``insufficient_funds``, ``NotEnoughResources``)."""
    found = first(notices.ANYWHERE, evidence) or first(texts.TEXTS, evidence)
    if found and found.action != "fatal_config":
        return found
    worded = replace(evidence, text=_SEAMS.sub(" ", evidence.text))
    return first(texts.TEXTS, worded) or found


_SEAMS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|[_/-]")
"""Where the words of a code meet."""


def _wrong_family(_table: Table, evidence: Evidence) -> Meaning | None:
    return shape.WRONG if any(shape.WRONG_FAMILY.search(code) for code in evidence.codes) else None


def _own_retries(_table: Table, evidence: Evidence) -> Meaning | None:
    return shape.OWN_RETRIES if evidence.has_spent_retries else None


def _weak_code(table: Table, evidence: Evidence) -> Meaning | None:
    return of_codes(table, evidence, weak=True)


def _family(table: Table, evidence: Evidence) -> Meaning | None:
    known = _lower(evidence.cloud) if table.codes else {}
    codes = [code for code in evidence.codes if code.lower() not in known]
    words = [word for word in evidence.tokens if word not in known]
    return by_family(codes) or _of_family(words, shape.WORD_FAMILIES)


_STEPS: Final[tuple[tuple[Callable[[Table, Evidence], Meaning | None], Basis], ...]] = (
    (_notice, "text"),
    (_rate, "text"),
    (_opening, "text"),
    (_fine_code, "code"),
    (_rule, "text"),
    (_code, "code"),
    (_family, "family"),
    (_text, "text"),
    (_own_retries, "text"),
    (_weak_code, "code"),
    (_wrong_family, "family"),
)
"""Met in order; the first that finds something decides."""


def by_family(codes: Iterable[str]) -> Meaning | None:
    """Returns what a code of a known kind means, however it is spelled; None when it is of no known kind."""
    return _of_family(list(codes), shape.CODE_FAMILIES)


def _of_family(words: list[str], families: tuple[tuple[re.Pattern[str], Meaning], ...]) -> Meaning | None:
    return next((meaning for pattern, meaning in families if any(pattern.search(word) for word in words)), None)


def first(rules: Iterable[Rule], evidence: Evidence) -> Meaning | None:
    """Returns what the first rule that holds says; None when none does."""
    return next((rule.then for rule in rules if holds(rule, evidence)), None)


def holds(rule: Rule, evidence: Evidence) -> bool:
    """Says whether every part of a rule matches."""
    if rule.effects and evidence.effect not in rule.effects:
        return False
    wanted = all(_pattern(part).search(evidence.text) for part in (rule.text, rule.also) if part)
    return wanted and not (rule.unless and _pattern(rule.unless).search(evidence.text))


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


@cache
def _lower(cloud: str) -> dict[str, Meaning]:
    return {code.lower(): meaning for code, meaning in TABLES[cloud].codes.items()}


def of_codes(table: Table, evidence: Evidence, *, weak: bool) -> Meaning | None:
    """Returns the last listed code of that strength: wrappers come first, the cause last."""
    if not table.codes:
        return None
    rows = _lower(evidence.cloud)
    places = [_listed(code.lower(), rows) for code in evidence.codes]
    words = [word for word in (_listed(token, rows) for token in evidence.tokens) if _is_unmistakable(word)]
    for code in (*reversed(places), *reversed(words)):
        if (found := rows.get(code)) and found.is_weak is weak:
            return found
    return None


def _listed(word: str, rows: Mapping[str, Meaning]) -> str:
    """Returns the word, without what stands before its last dots if only so it is listed; empty when it is not.

    A class comes with its package (``exceptions.ResourceExhausted``), a code with its side (``Client.RequestLimitExceeded``).
    """
    while word and word not in rows:
        _, _, word = word.partition(".")
    return word


_LONGEST_WORD: Final = 13
"""Letters of the longest plain word that is also a code (``unauthorized``, ``unsupported``, with room)."""


def _is_unmistakable(word: str) -> bool:
    """Says whether a listed word cannot be plain English: such a code counts wherever it stands."""
    return any(mark in word for mark in "._-") or len(word) > _LONGEST_WORD
