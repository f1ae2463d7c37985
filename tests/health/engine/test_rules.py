import pytest

from hostler.health.catalog import xids
from hostler.health.catalog.tables import rows
from hostler.health.engine.rules import CLEARS, LADDER, hardest, next_rung, rule_of
from hostler.model.enums import HealthAction, Verdict


@pytest.mark.parametrize("rule", [rule for rule in xids() if rule.verdict is Verdict.FAILED], ids=lambda rule: str(rule.code))
def test_rule_when_an_xid_is_fatal_then_it_has_a_cause_of_its_own_and_no_quiet_hour_clears_it(rule):
    found = rule_of(f"xid.{rule.code}")

    assert found.is_event
    assert found.cause != "program"
    assert found.clears in {"reset", "boot"}


@pytest.mark.parametrize("code", [rule.code for rule in xids() if rule.fault_class == "app"])
def test_rule_when_an_xid_is_of_the_program_then_its_fault_is_too(code):
    assert rule_of(f"xid.{code}").cause == "program"


def test_rules_when_listed_then_each_row_can_be_reached_and_the_last_takes_the_rest():
    seen = []
    for row in rows("faults"):
        code = row["code"].replace("*", "x") if row["code"] != "*" else "made_up"
        assert rule_of(code).cause == row["cause"], row["code"]
        assert row["clears"] in CLEARS
        seen.append(row["code"])
    assert len(seen) == len(set(seen))
    assert rule_of("made_up").cause == "other"


def test_ladder_when_climbed_then_it_ends_with_replacement():
    rung, climbed = HealthAction.RECORD, []
    for _ in LADDER:
        rung = next_rung(rung)
        climbed.append(rung)
    assert climbed == list(LADDER)
    assert next_rung(HealthAction.DRAIN_AND_DIAG) is HealthAction.DRAIN_AND_REPLACE
    assert next_rung(HealthAction.DRAIN_AND_REPLACE) is HealthAction.DRAIN_AND_REPLACE
    assert hardest("looks", "boot") == "boot"
