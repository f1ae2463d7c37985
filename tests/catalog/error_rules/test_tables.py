"""The tables themselves: every row has its source and its day, and action and error agree."""

import re
from collections.abc import Iterator
from datetime import date

import pytest

from hostler.catalog.error_rules import notices, shape, texts
from hostler.catalog.error_rules.answers import answered
from hostler.catalog.error_rules.tables import TABLES
from hostler.catalog.error_rules.words import ERROR_OF, Meaning, Rule
from hostler.cloud.errors import AnswerLostError, NodeNotFoundError, SpotUnavailableError

RULES = [
    *(rule for table in TABLES.values() for rule in (*table.opening, *table.rules)),
    *shape.FIRST,
    *texts.TEXTS,
    *notices.NOTICES,
    *notices.BARE,
    *notices.ANYWHERE,
]


def rows() -> Iterator[Meaning]:
    yield from (meaning for table in TABLES.values() for meaning in table.codes.values())
    yield from (rule.then for rule in RULES)


def test_tables_when_counted_then_four_clouds_with_hundreds_of_codes():
    assert set(TABLES) == {"aws", "gcp", "azure", "alibaba"}
    assert sum(len(table.codes) for table in TABLES.values()) > 300


def test_rows_when_read_then_each_has_a_source_and_a_day():
    for meaning in rows():
        assert meaning.source.text
        assert date.fromisoformat(meaning.source.read_on)


def test_rows_when_read_then_action_and_error_agree():
    own = {AnswerLostError, NodeNotFoundError, SpotUnavailableError}
    odd = [meaning for meaning in rows() if meaning.error not in {ERROR_OF[meaning.action], *own}]
    assert odd == []


@pytest.mark.parametrize("cloud", TABLES)
def test_codes_when_case_is_dropped_then_none_are_two(cloud):
    codes = [code.lower() for code in TABLES[cloud].codes]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.text[:30])
def test_rules_when_compiled_then_they_are_patterns_without_unbounded_dots(rule: Rule):
    for part in filter(None, (rule.text, rule.also, rule.unless)):
        re.compile(part)
        assert not re.search(r"\.[*+]", part.replace(r"\.", "")), "an unbounded dot makes a long text slow"


@pytest.mark.parametrize("cloud", TABLES)
@pytest.mark.parametrize("effect", ["read", "create", "start", "delete", "unknown"])
def test_answered_when_any_listed_code_comes_to_a_driver_then_there_is_an_error_to_raise(cloud, effect):
    for code in [*TABLES[cloud].codes, "BrandNew", ""]:
        meaning, _ = answered(cloud, code=code, text="", status=400, effect=effect)
        assert meaning.error is not None, code
