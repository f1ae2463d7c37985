"""The suite on batches that are good or wrong in one way. Great Expectations is loaded once for all of them."""

import importlib.util
import logging
import re
from dataclasses import replace
from decimal import Decimal

import pytest
from tests.catalog.test_price_batch import NOW, row

from hostler.catalog.offerings import load_catalog
from hostler.catalog.price_batch import PriceBatch
from hostler.catalog.price_suite import ChecksMissingError, Judge
from hostler.catalog.rates import shipped_rates
from hostler.model.enums import CapacityType

pytestmark = [
    pytest.mark.checks,
    pytest.mark.skipif(importlib.util.find_spec("great_expectations") is None, reason="the extra `checks` is not installed"),
]

SPOT = CapacityType.SPOT
NAMES = ("g5.xlarge", "g5.2xlarge", "g5.48xlarge", "p4d.24xlarge", "p5.48xlarge")


def rows():
    listed = {
        item.instance_type: item for item in load_catalog().offerings if item.region == "us-east-1" and item.cloud == "aws"
    }
    here = [row(instance_type=name, price_per_hour=listed[name].price_usd_per_hour) for name in NAMES]
    spot = [
        replace(item, zone=f"us-east-1{letter}", capacity_type=SPOT, price_per_hour=item.price_per_hour * Decimal("0.4"))
        for item in here
        for letter in "abcd"
    ]
    return [*here, *spot]


def batch(found, *, last=None, wanted=("us-east-1",)):
    offered = [item for item in load_catalog().offerings if item.cloud == "aws"]
    return PriceBatch(
        cloud="aws",
        rows=tuple(found),
        wanted=dict.fromkeys(wanted, NAMES),
        last=tuple(rows() if last is None else last),
        lists={(item.cloud, item.region, item.instance_type): item for item in offered if item.price_usd_per_hour},
        accelerator_counts={item.instance_type: item.accelerator_count for item in offered},
        rates=shipped_rates(),
    )


def changed(index, **changes):
    found = rows()
    found[index] = replace(found[index], **changes)
    return found


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    return Judge(tmp_path_factory.mktemp("reports"), kept=3)


def test_judge_when_batch_is_good_then_accepted_with_pages_to_look_at(judge, capfd, caplog):
    with caplog.at_level(logging.INFO):
        said = judge.judge(batch(rows()), name="20261201T000000Z")
    assert (said.is_good, said.problems) == (True, ())
    assert said.report.is_file()
    pages = "".join(path.read_text() for path in said.report.parent.rglob("*.html"))
    assert "gap_to_second_source" in pages
    assert "usd_per_accelerator_hour" in pages
    out, err = capfd.readouterr()
    assert out == err == ""
    assert [record for record in caplog.records if record.name.startswith("great_expectations")] == []


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (
            changed(0, price_per_hour=Decimal("1.3")),
            "jump: on demand against the last accepted batch: 1 rows, such as us-east-1//g5.xlarge",
        ),
        ([replace(item, price_per_hour=item.price_per_hour * 2) if item.zone else item for item in rows()], "jump: spot"),
        (changed(0, price_per_hour=Decimal(-1)), "range: above zero: 1 rows"),
        (changed(0, price_per_hour=Decimal("0.0001")), "range: USD an accelerator and hour: 1 rows"),
        (changed(4, price_per_hour=Decimal(5504)), "range: USD an accelerator and hour: 1 rows"),
        (changed(0, currency="CNY"), "currency: the one that is sold in: 1 rows"),
        (changed(0, currency="dollars"), "currency: a code: 1 rows"),
        (changed(0, cloud="azure"), "schema: one cloud: 1 rows"),
        (changed(0, region=""), "schema: a region: 1 rows"),
        (changed(0, capacity_type=CapacityType.RESERVED), "schema: a capacity type: 1 rows"),
        ([*rows(), rows()[0]], "schema: one price a machine: 2 rows"),
        (rows()[:15], "coverage: rows: found 15"),
        ([], "coverage: rows: found 0"),
    ],
)
def test_judge_when_one_thing_is_wrong_then_refused_and_named(judge, found, problem):
    said = judge.judge(batch(found), name="20261201T000001Z")
    assert not said.is_good
    assert any(problem in words for words in said.problems), said.problems


def test_judge_when_second_source_contradicts_then_refused_even_for_the_first_batch(judge):
    found = [replace(item, price_per_hour=item.price_per_hour * 2) for item in rows()]
    said = judge.judge(batch(found, last=()), name="20261201T000002Z")
    assert [words for words in said.problems if words.startswith("second source: published price lists: 5 rows")]
    assert len(said.problems) == 1


def test_judge_when_a_region_is_missing_then_refused(judge):
    said = judge.judge(batch(rows(), wanted=("us-east-1", "us-west-2")), name="20261201T000003Z")
    assert [re.sub(":.*", "", words) for words in said.problems] == ["coverage"]


def test_judge_when_single_spot_prices_jump_then_still_accepted(judge):
    said = judge.judge(batch(changed(9, price_per_hour=Decimal("0.8"))), name="20261201T000004Z")
    assert said.problems == ()


def test_judge_when_a_person_accepts_jumps_then_only_these_pass(judge):
    found = changed(0, price_per_hour=Decimal("1.3"))
    lists = {}
    moved = replace(batch(found), lists=lists)
    assert not judge.judge(moved, name="20261201T000005Z").is_good
    assert judge.judge(moved, name="20261201T000006Z", accepts_jumps=True).is_good
    assert not judge.judge(
        replace(batch(changed(0, currency="CNY")), lists=lists), name="20261201T000007Z", accepts_jumps=True
    ).is_good


def test_judge_when_many_reports_are_there_then_the_oldest_go(judge):
    said = judge.judge(batch(rows()), name="20261201T000009Z")
    left = sorted(path.name for path in said.report.parents[1].iterdir())
    assert len(left) == 3
    assert left[-1] == "20261201T000009Z"


def test_judge_when_not_installed_then_nothing_is_judged(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "great_expectations", None)
    with pytest.raises(ChecksMissingError, match=r"hostler\[checks\]"):
        Judge(tmp_path).judge(batch(rows()), name=f"{NOW:%Y}")
