from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import samples

from hostler.ledger.port import StockOut
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering
from hostler.planning.plan import has_true_price, make_plan, stock_out_of

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)

REQUEST = samples.request(capacity_types=(CapacityType.SPOT, CapacityType.ON_DEMAND))


def offering(zone="us-east-1a", price: Decimal | None = Decimal("55.04"), **changes) -> Offering:
    return samples.offering(None, zone, **{"price_usd_per_hour": price, "capacity_type": CapacityType.ON_DEMAND, **changes})


def stock_out(subject: str, minutes: int) -> StockOut:
    return StockOut(subject=subject, until=NOW + timedelta(minutes=minutes), count=1, reason="InsufficientInstanceCapacity")


def zones(plan) -> list[str]:
    return [item.zone for item in plan.offerings]


def reason_for(plan, subject: str) -> str:
    return next(item.reason for item in plan.refusals if item.subject == subject)


def test_make_plan_when_prices_differ_then_cheapest_first_whatever_the_capacity_type():
    dear = offering("us-east-1a", Decimal(60))
    cheap = offering("us-east-1b", Decimal(20), capacity_type=CapacityType.SPOT)
    cheapest = offering("us-east-1c", Decimal(19))
    assert zones(make_plan(REQUEST, [dear, cheap, cheapest], [], NOW)) == ["us-east-1c", "us-east-1b", "us-east-1a"]


def test_make_plan_when_prices_tie_then_key_decides():
    plan = make_plan(REQUEST, [offering("us-east-1c"), offering("us-east-1a"), offering("us-east-1b")], [], NOW)
    assert zones(plan) == ["us-east-1a", "us-east-1b", "us-east-1c"]


@pytest.mark.parametrize("price", [None, Decimal(0), Decimal(-1), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity")])
def test_make_plan_when_price_is_no_price_then_refused_with_words(price):
    bad = offering("us-east-1b", price)
    plan = make_plan(REQUEST, [offering("us-east-1a"), bad], [], NOW)
    assert zones(plan) == ["us-east-1a"]
    assert "price" in reason_for(plan, bad.key)


def test_make_plan_when_price_above_maximum_then_refused_naming_both():
    plan = make_plan(replace(REQUEST, max_price_usd_per_hour=Decimal(50)), [offering()], [], NOW)
    assert plan.offerings == ()
    assert "55.04" in reason_for(plan, offering().key)
    assert "max_price_usd_per_hour 50" in reason_for(plan, offering().key)


def test_make_plan_when_price_equals_maximum_then_kept():
    assert zones(make_plan(replace(REQUEST, max_price_usd_per_hour=Decimal("55.04")), [offering()], [], NOW)) == ["us-east-1a"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"clouds": ("gcp",)}, "cloud aws not asked for (clouds: gcp)"),
        ({"regions": ("us-west-2",)}, "region us-east-1 not asked for (regions: us-west-2)"),
        ({"capacity_types": (CapacityType.SPOT,)}, "capacity type on-demand not asked for (capacity_types: spot)"),
        ({"accelerator": "H200"}, "has 8 x H100, asked for 8 x H200"),
        ({"accelerators_per_node": 1}, "has 8 x H100, asked for 1 x H100"),
    ],
)
def test_make_plan_when_not_asked_for_then_refused_naming_what_was_asked(change, words):
    plan = make_plan(replace(REQUEST, **change), [offering()], [], NOW)
    assert plan.offerings == ()
    assert words in reason_for(plan, offering().key)


def test_make_plan_when_unavailable_then_refused_with_the_clouds_words():
    gone = offering(is_available=False, unavailable_reason="not offered in us-east-1a")
    assert "not offered in us-east-1a" in reason_for(make_plan(REQUEST, [gone], [], NOW), gone.key)


@pytest.mark.parametrize("subject", ["aws/us-east-1", "aws/us-east-1//p5.48xlarge", offering("us-east-1a").key])
def test_make_plan_when_in_stock_out_memory_then_last_although_cheapest(subject):
    empty = offering("us-east-1a", Decimal(1))
    elsewhere = offering("us-west-2a", Decimal(90))
    assert zones(make_plan(REQUEST, [empty, elsewhere], [stock_out(subject, 5)], NOW)) == ["us-west-2a", "us-east-1a"]


def test_make_plan_when_all_are_in_memory_then_soonest_first():
    plan = make_plan(
        REQUEST,
        [offering("us-east-1a", Decimal(1)), offering("us-west-2a", Decimal(2))],
        [stock_out("aws/us-east-1", 9), stock_out("aws/us-west-2", 3)],
        NOW,
    )
    assert zones(plan) == ["us-west-2a", "us-east-1a"]


def test_make_plan_when_memory_is_over_then_it_counts_for_nothing():
    cheap, dear = offering("us-east-1a", Decimal(1)), offering("us-west-2a", Decimal(2))
    assert zones(make_plan(REQUEST, [dear, cheap], [stock_out("aws/us-east-1", 0)], NOW)) == ["us-east-1a", "us-west-2a"]


def test_stock_out_of_when_several_speak_then_longest():
    memories = [stock_out("aws/us-east-1", 3), stock_out(offering().key, 9), stock_out("aws/us-west-2", 99)]
    found = stock_out_of(offering(), memories, NOW)
    assert found is not None
    assert found.until == NOW + timedelta(minutes=9)


def test_make_plan_when_nothing_is_offered_then_says_so():
    plan = make_plan(REQUEST, [], [], NOW)
    assert reason_for(plan, "accelerator") == "no cloud offers a node with 8 x H100 here"


def test_make_plan_when_a_region_offers_nothing_then_it_is_named():
    plan = make_plan(replace(REQUEST, regions=("us-east-1", "mars-1"), clouds=("aws", "acme")), [offering()], [], NOW)
    assert zones(plan) == ["us-east-1a"]
    assert "mars-1" in reason_for(plan, "regions")
    assert "acme" in reason_for(plan, "clouds")


def test_make_plan_when_key_comes_twice_then_least_attractive_counts():
    twice = [offering(price=Decimal(1)), offering(price=Decimal(55)), offering(price=Decimal(2))]
    plan = make_plan(REQUEST, twice, [], NOW)
    assert [item.price_usd_per_hour for item in plan.offerings] == [Decimal(55)]
    plan = make_plan(REQUEST, [*twice, offering(price=None)], [], NOW)
    assert plan.offerings == ()


PRICES = st.none() | st.decimals(allow_nan=True, allow_infinity=True, places=None) | st.decimals(min_value="0.01", max_value=99)
OFFERINGS = st.builds(
    offering,
    zone=st.sampled_from(["us-east-1a", "us-east-1b", "us-west-2a", "eu-west-1c"]),
    price=PRICES,
    cloud=st.sampled_from(["aws", "gcp"]),
    capacity_type=st.sampled_from(CapacityType),
    accelerator=st.sampled_from(["H100", "H200"]),
    is_available=st.booleans(),
    instance_type=st.sampled_from(["p5.48xlarge", "p5en.48xlarge"]),
)
STOCK_OUTS = st.builds(
    stock_out,
    st.sampled_from(["aws/us-east-1", "aws/us-west-2//p5.48xlarge", offering().key, "gcp/us-east-1"]),
    st.integers(-5, 60),
)
REQUESTS = st.builds(
    lambda clouds, regions, kinds, highest: replace(
        REQUEST, clouds=tuple(clouds), regions=tuple(regions), capacity_types=tuple(kinds), max_price_usd_per_hour=highest
    ),
    st.sets(st.sampled_from(["aws", "gcp"])).map(sorted),
    st.sets(st.sampled_from(["us-east-1", "us-west-2", "mars-1"])).map(sorted),
    st.sets(st.sampled_from(CapacityType), min_size=1).map(sorted),
    st.none() | st.decimals(min_value="0.01", max_value=99),
)


@given(REQUESTS, st.lists(OFFERINGS, max_size=12), st.lists(STOCK_OUTS, max_size=4), st.randoms(use_true_random=False))
def test_make_plan_when_input_is_shuffled_then_bytes_are_the_same(request_, offers, memories, rng):
    first = repr(make_plan(request_, offers, memories, NOW))
    rng.shuffle(offers)
    rng.shuffle(memories)
    assert repr(make_plan(request_, offers, memories, NOW)).encode() == first.encode()


@given(REQUESTS, st.lists(OFFERINGS, max_size=12), st.lists(STOCK_OUTS, max_size=4))
def test_make_plan_when_anything_comes_in_then_only_true_prices_asked_for_are_in(request_, offers, memories):
    plan = make_plan(request_, offers, memories, NOW)
    highest = request_.max_price_usd_per_hour
    for item in plan.offerings:
        assert has_true_price(item)
        assert item.is_available
        assert highest is None or item.price_usd_per_hour <= highest
        assert item.capacity_type in request_.capacity_types
        assert not request_.regions or item.region in request_.regions
    refused = {refusal.subject for refusal in plan.refusals}
    kept = {item.key for item in plan.offerings}
    assert kept.isdisjoint(refused)
    assert {item.key for item in offers} <= kept | refused


@given(st.lists(OFFERINGS, max_size=12))
def test_make_plan_when_no_memory_then_prices_rise(offers):
    plan = make_plan(replace(REQUEST, capacity_types=tuple(CapacityType)), offers, [], NOW)
    prices = [item.price_usd_per_hour for item in plan.offerings]
    assert prices == sorted(prices)
