"""The suite on batches that are good or wrong in one way. Great Expectations is loaded once for all of them."""

import importlib.util
import logging
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache

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


@lru_cache(maxsize=1)
def offered():
    return [item for item in load_catalog().offerings if item.cloud == "aws"]


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
    return PriceBatch(
        cloud="aws",
        rows=tuple(found),
        wanted=dict.fromkeys(wanted, NAMES),
        last=tuple(rows() if last is None else last),
        lists={(item.cloud, item.region, item.instance_type): item for item in offered() if item.price_usd_per_hour},
        accelerator_counts={item.instance_type: item.accelerator_count for item in offered()},
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
    assert sum(path.stat().st_size for path in said.report.parent.rglob("*") if path.is_file()) < 2**20
    out, err = capfd.readouterr()
    assert out == err == ""
    assert [record for record in caplog.records if record.name.startswith("great_expectations")] == []


def test_judge_when_rows_are_wrong_then_each_check_names_its_rows_and_the_good_ones_are_not_named(judge):
    # Each row is wrong in one way; one judgement for all, since each takes a second.
    changes = {
        "range: above zero": {"price_per_hour": Decimal(-1)},
        "range: USD an accelerator and hour": {"price_per_hour": Decimal("0.0001")},
        "currency: the one that is sold in": {"currency": "CNY"},
        "currency: a code": {"currency": "dollars"},
        "schema: one cloud": {"cloud": "azure"},
        "schema: a region": {"region": ""},
        "schema: an instance type": {"instance_type": ""},
        "schema: a capacity type": {"capacity_type": CapacityType.RESERVED},
        "jump: spot against the last accepted batch": {"price_per_hour": Decimal(17)},
        "jump: spot": {"price_per_hour": Decimal(16)},
        "jump: spot again": {"price_per_hour": Decimal(15)},
    }
    found = rows()
    for index, fields in enumerate(changes.values(), start=len(NAMES)):
        found[index] = replace(found[index], **fields)
    found[1] = replace(found[1], price_per_hour=Decimal("1.5"))
    said = judge.judge(batch([*found, found[0]]), name="20261201T000001Z")
    assert not said.is_good
    text = "\n".join(said.problems)
    for check in list(changes)[:9]:
        assert check in text
    assert "jump: on demand against the last accepted batch: 1 rows, such as us-east-1//g5.2xlarge/on-demand: 1.5" in text
    assert "schema: one price a machine: 2 rows, such as us-east-1//g5.xlarge" in text
    assert "schema: one cloud: 1 rows" in text
    assert "coverage" not in text
    assert "p5.48xlarge/on-demand" not in text


def test_judge_when_only_jumps_or_only_coverage_are_wrong_then_nothing_else_is_named(judge):
    moved = replace(batch(changed(0, price_per_hour=Decimal("1.21"))), lists={})
    (problem,) = judge.judge(moved, name="20261201T000003Z").problems
    assert problem.startswith("jump: on demand against the last accepted batch: 1 rows, such as us-east-1//g5.xlarge")
    assert judge.judge(batch(rows()[:15]), name="20261201T000004Z").problems == ("coverage: rows: found 15",)


def test_judge_when_second_source_contradicts_or_a_region_is_missing_then_refused_even_for_the_first_batch(judge):
    found = [replace(item, price_per_hour=item.price_per_hour * 2) for item in rows()]
    said = judge.judge(batch(found, last=(), wanted=("us-east-1", "us-west-2")), name="20261201T000002Z")
    second, coverage = sorted(said.problems, reverse=True)
    assert second.startswith("second source: published price lists: 5 rows")
    assert coverage.startswith("coverage: regions: found")


def test_judge_when_a_person_accepts_jumps_then_only_these_pass(judge):
    # Single spot prices may jump anyway: the sixth row does.
    moved = changed(0, price_per_hour=Decimal("1.3"))
    moved[9] = replace(moved[9], price_per_hour=Decimal("0.8"))
    assert judge.judge(replace(batch(moved), lists={}), name="20261201T000006Z", accepts_jumps=True).is_good
    moved[1] = replace(moved[1], currency="CNY")
    (problem,) = judge.judge(replace(batch(moved), lists={}), name="20261201T000007Z", accepts_jumps=True).problems
    assert problem.startswith("currency")


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
