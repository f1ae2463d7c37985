"""The 60 published cases: action exact, and scope and hints where the case gives them."""

import json
from pathlib import Path

import pytest

from hostler.catalog.error_rules import explain

CASES = next(
    (
        found
        for folder in Path(__file__).parents
        if (found := folder / "shared" / "data" / "cloud-errors" / "cases.jsonl").exists()
    ),
    None,
)


def cases() -> list[dict]:
    return [json.loads(line) for line in CASES.read_text().splitlines()] if CASES else []


@pytest.mark.skipif(CASES is None, reason="shared/data/cloud-errors/cases.jsonl is not here; it may not be redistributed")
def test_cases_when_counted_then_sixty():
    assert len(cases()) == 60


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_explain_when_a_published_case_is_met_then_action_scope_and_hints_are_right(case):
    right = case["right"]
    found = explain(case["cloud"], case["call"], case["raw"])
    assert (found.action, found.scope) == (right["action"], right["scope"]), case["why"]
    assert {key: found.hints.get(key) for key in right["hints"]} == right["hints"], case["why"]
    assert not found.is_unknown
