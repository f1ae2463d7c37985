"""Labelled texts: action exact, and scope and hints where the label gives them."""

import pytest
from tests.catalog.error_rules.texts_of_errors import CASES, VARIANTS, read

from hostler.catalog.error_rules import explain


@pytest.mark.skipif(CASES is None, reason="shared/data/cloud-errors/cases.jsonl is not here; it may not be redistributed")
def test_cases_when_counted_then_sixty():
    assert len(read(CASES)) == 60


def test_variants_when_counted_then_many_with_sources_and_other_texts_than_the_cases():
    variants = read(VARIANTS)
    assert len(variants) >= 200
    assert all(variant["source"] for variant in variants)
    assert {variant["raw"] for variant in variants}.isdisjoint({case["raw"] for case in read(CASES)} - {DOUBLE})


DOUBLE = "APIException('forbidden_action', \"Can't discontinue a provisioning instance\")"


@pytest.mark.parametrize("case", [*read(CASES), *read(VARIANTS)], ids=lambda case: case["id"])
def test_explain_when_a_labelled_text_is_met_then_action_scope_and_hints_are_right(case):
    right = case["right"]
    hints = right.get("hints", {})
    found = explain(case["cloud"], case["call"], case["raw"])
    assert (found.action, found.scope) == (right["action"], right.get("scope", found.scope)), case.get("why", case["source"])
    assert {key: found.hints.get(key, "missing") for key in hints} == hints
    assert not found.is_unknown
