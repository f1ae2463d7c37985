from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.planning.made import NOW, REQUEST, keys, offering, reason_for, spot, stock_out, vcpus, zones

from hostler.catalog.disks import disk_usd_per_gib_hour
from hostler.model.capacity import CapacityNow, OpenSpotRequest, QuotaState, Reservation
from hostler.model.enums import CapacityType
from hostler.planning.cost import DOUBT_RATIO
from hostler.planning.filters import has_true_price
from hostler.planning.plan import make_plan
from hostler.planning.rank import rank_offerings
from hostler.planning.terms import CostTerms, Domain, PlanTerms

COSTS = CostTerms(useful_hours=Decimal(10), is_length_known=True)
TRUE = PlanTerms(costs=COSTS)


def rank(offers, terms=TRUE, request=REQUEST, stock_outs=()):
    return rank_offerings(request, offers, stock_outs, NOW, terms)


def test_rank_when_on_demand_then_cost_is_price_disk_and_startup():
    terms = PlanTerms(costs=CostTerms(useful_hours=Decimal(10), startup_s=Decimal(3600), interruptions={}))
    cost = rank([offering(price="50")], terms).ranked[0].cost
    # 2 nodes; faults of 16 H100 lose 0.0003 an hour, which costs about 0.6 % at this checkpoint.
    assert cost.wall_hours == pytest.approx(Decimal(11), rel=Decimal("0.02"))
    assert cost.machine_usd == pytest.approx(2 * 50 * cost.wall_hours, rel=Decimal("0.0001"))
    assert cost.disk_usd == (2 * 200 * disk_usd_per_gib_hour("aws") * cost.wall_hours).quantize(Decimal("0.01"))
    assert cost.usd_per_useful_accelerator_hour == pytest.approx(cost.total_usd / (10 * 16), rel=Decimal("0.001"))


def test_rank_when_spot_is_lost_all_the_time_then_on_demand_comes_first():
    offers = [spot(price="45"), offering(price="55")]
    assert keys(rank(offers))[0].endswith("/on-demand")
    calm = replace(TRUE, costs=replace(COSTS, interruptions={"aws": Decimal("0.001")}))
    assert keys(rank(offers, calm))[0].endswith("/spot")


def test_rank_when_a_type_has_its_own_rate_then_the_narrowest_counts():
    rates = {"aws": Decimal("0.001"), "aws/us-east-1//p5.48xlarge": Decimal(2)}
    terms = replace(TRUE, costs=replace(COSTS, interruptions=rates))
    ranking = rank([spot("us-east-1a", "40"), spot("us-west-2a", "40")], terms)
    assert zones(ranking) == ["us-west-2a", "us-east-1a"]
    assert ranking.ranked[1].cost.losses_per_hour > 4


def test_rank_when_spot_could_never_finish_then_refused_with_words():
    terms = replace(TRUE, costs=replace(COSTS, interruptions={"aws": Decimal(50)}))
    ranking = rank([spot(), offering()], terms)
    assert keys(ranking) == [offering().key]
    assert "never ends" in reason_for(ranking, spot().key)


def test_rank_when_no_progress_is_only_assumed_then_not_refused_but_last_and_told():
    large = replace(REQUEST, node_count=200)
    ranking = rank([spot(), offering()], TRUE, large)
    assert keys(ranking) == [offering().key, spot().key]
    assert "give your own rate" in ranking.ranked[1].notes[0]
    own = replace(TRUE, costs=replace(COSTS, interruptions={"aws": Decimal("0.001")}))
    assert keys(rank([spot(), offering()], own, large))[0] == spot().key


def test_rank_when_data_lies_elsewhere_then_its_region_wins_over_a_cheaper_one():
    far, near = offering("us-west-2a", "50"), offering("us-east-1a", "51")
    assert zones(rank([far, near])) == ["us-west-2a", "us-east-1a"]
    heavy = replace(TRUE, costs=replace(COSTS, data_gib=Decimal(50_000), data_at="aws/us-east-1"))
    ranking = rank([far, near], heavy)
    assert zones(ranking) == ["us-east-1a", "us-west-2a"]
    assert ranking.ranked[0].cost.egress_usd == 0
    assert ranking.ranked[1].cost.egress_usd == Decimal("0.02") * 50_000


def test_rank_when_results_come_back_then_the_other_clouds_exit_is_paid():
    terms = replace(TRUE, costs=replace(COSTS, output_gib=Decimal(1000), data_at="aws/us-east-1"))
    other = offering(cloud="gcp", zone="us-central1-a", region="us-central1", instance_type="a3-highgpu-8g")
    ranking = rank([offering(), other], terms)
    assert ranking.ranked[0].cost.egress_usd == 0
    assert ranking.ranked[1].cost.egress_usd == 120
    assert "gcp to aws" in ranking.ranked[1].basis.egress_words


def test_rank_when_cheapest_is_doubted_then_it_is_not_first_and_says_why():
    doubted = offering("us-east-1a", "43", doubts=("sources disagree by 105 %: 43 and 88",))
    sure = offering("us-east-1b", "60")
    ranking = rank([doubted, sure])
    assert zones(ranking) == ["us-east-1b", "us-east-1a"]
    assert "sources disagree by 105 %" in ranking.ranked[1].notes[0]
    assert zones(make_and_list([doubted, sure])) == ["us-east-1b", "us-east-1a"]


def test_rank_when_doubted_is_cheaper_even_at_its_worst_then_first_with_the_doubt_shown():
    ranking = rank([offering("us-east-1a", "43", doubts=("two sources",)), offering("us-east-1b", "120")])
    assert zones(ranking) == ["us-east-1a", "us-east-1b"]
    assert ranking.ranked[0].notes == ("price doubted: two sources",)
    assert ranking.ranked[0].rank_usd > ranking.ranked[0].cost.usd_per_useful_accelerator_hour


def make_and_list(offers):
    return rank_offerings(REQUEST, offers, (), NOW, PlanTerms())


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (PlanTerms(zones=("us-west-2a",)), "zone us-east-1a not asked for (zones: us-west-2a)"),
        (PlanTerms(excluded=("aws/us-east-1",)), "aws/us-east-1 is excluded"),
        (PlanTerms(excluded=("us-east-1a",)), "us-east-1a is excluded"),
        (PlanTerms(excluded=("aws",)), "aws is excluded"),
        (PlanTerms(needs_interconnect=True), "no fast interconnect"),
        (PlanTerms(costs=COSTS, max_total_usd=Decimal(100)), "the most is 100"),
        (PlanTerms(accelerators=("A100", "H200")), "asked for 8 x A100 or H200"),
    ],
)
def test_rank_when_terms_rule_it_out_then_refused_with_words(terms, words):
    ranking = rank([offering()], terms)
    assert ranking.ranked == ()
    assert words in reason_for(ranking, offering().key)


def test_rank_when_any_accelerator_will_do_then_all_are_in():
    terms = PlanTerms(accelerators=("H100", "H200"))
    ranking = rank([offering(), offering("us-east-1b", "50", accelerator="H200", instance_type="p5e.48xlarge")], terms)
    assert zones(ranking) == ["us-east-1b", "us-east-1a"]


def test_rank_when_work_would_end_after_the_deadline_then_refused():
    request = replace(REQUEST, deadline_at=NOW + timedelta(hours=9))
    assert "the deadline is 2026-12-01 21:00 UTC" in reason_for(rank([offering()], request=request), offering().key)
    assert rank([offering()], request=replace(request, deadline_at=NOW + timedelta(hours=12))).refusals == ()


def test_rank_when_length_is_only_assumed_then_no_deadline_and_no_total_are_judged():
    request = replace(REQUEST, deadline_at=NOW + timedelta(hours=1))
    assert zones(rank([offering()], PlanTerms(costs=CostTerms(), max_total_usd=Decimal(1)), request)) == ["us-east-1a"]


def test_rank_when_a_region_is_preferred_then_it_is_worth_a_tenth_and_no_more():
    near, far = offering("us-east-1a", "54"), offering("us-west-2a", "50")
    terms = PlanTerms(preferred_regions=("us-east-1",))
    assert zones(rank([near, far], terms)) == ["us-east-1a", "us-west-2a"]
    assert zones(rank([replace(near, price_usd_per_hour=Decimal(56)), far], terms)) == ["us-west-2a", "us-east-1a"]
    assert zones(rank([near, far], PlanTerms(preferred_regions=("gcp",)))) == ["us-west-2a", "us-east-1a"]


def test_rank_when_in_stock_out_memory_then_last_and_soonest_first():
    offers = [offering("us-east-1a", "1"), offering("us-east-1b", "2"), offering("us-west-2a", "90")]
    memory = [stock_out(offers[0].key, 9), stock_out(offers[1].key, 3)]
    ranking = rank(offers, stock_outs=memory)
    assert zones(ranking) == ["us-west-2a", "us-east-1b", "us-east-1a"]
    assert ranking.ranked[1].stock_out.reason == "InsufficientInstanceCapacity"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"steady_count": -1}, "steady_count -1 is below 0"),
        ({"spread": 0}, "spread 0 is below 1"),
        ({"spread": 2}, "domain must be wider than a zone"),
        ({"preference_ratio": Decimal("NaN")}, "preference_ratio NaN"),
        ({"max_total_usd": Decimal(0)}, "max_total_usd 0"),
    ],
)
def test_terms_when_they_contradict_then_refused_naming_the_field(wrong, words):
    with pytest.raises(ValueError, match=words):
        PlanTerms(**wrong)


@pytest.mark.parametrize("field", ["checkpoint_s", "restore_s", "startup_s", "disk_gib", "data_gib", "output_gib"])
@pytest.mark.parametrize("value", [Decimal(-1), Decimal("NaN"), Decimal("Infinity")])
def test_cost_terms_when_a_field_is_no_number_then_refused_naming_it(field, value):
    with pytest.raises(ValueError, match=field):
        CostTerms(**{field: value})


@pytest.mark.parametrize("value", [Decimal(0), Decimal(-1), Decimal("NaN")])
def test_cost_terms_when_hours_are_none_then_refused(value):
    with pytest.raises(ValueError, match="useful_hours"):
        CostTerms(useful_hours=value)


def test_rank_when_terms_ask_more_than_the_gang_has_then_refused_naming_the_field():
    with pytest.raises(ValueError, match="steady_count 3 is more than the gang's 2 nodes"):
        rank([offering()], PlanTerms(steady_count=3))
    with pytest.raises(ValueError, match="needs on-demand or reserved"):
        rank([offering()], PlanTerms(steady_count=1), replace(REQUEST, capacity_types=(CapacityType.SPOT,)))


PRICES = st.none() | st.decimals(allow_nan=True, allow_infinity=True) | st.decimals(min_value="0.01", max_value=99, places=3)
OFFERINGS = st.builds(
    offering,
    zone=st.sampled_from(["us-east-1a", "us-east-1b", "us-west-2a", "eu-west-1c"]),
    price=st.none(),
    kind=st.sampled_from(CapacityType),
    price_usd_per_hour=PRICES,
    cloud=st.sampled_from(["aws", "gcp", "nowhere"]),
    instance_type=st.sampled_from(["p5.48xlarge", "p5en.48xlarge"]),
    is_available=st.booleans(),
    doubts=st.sampled_from([(), ("doubt",)]),
    quotas=st.sampled_from([(), (vcpus("P", 192),), (vcpus("P", 96), vcpus("ALL", 8, "global"))]),
)
CAPACITIES = st.builds(
    lambda limit, used, free, cap, nodes: CapacityNow(
        quotas=(
            QuotaState(cloud="aws", region="us-east-1", code="P", unit="vCPU", limit=limit, used=used),
            QuotaState(cloud="aws", region="", code="ALL", unit="vCPUs", limit=Decimal(100), used=used),
        ),
        reservations=(
            Reservation(
                reservation_id="cr-1",
                cloud="aws",
                region="us-east-1",
                zone="us-east-1a",
                instance_type="p5.48xlarge",
                total_count=free,
            ),
        ),
        open_spot_requests=(
            OpenSpotRequest(request_id="sir-1", cloud="aws", region="us-east-1", node_count=nodes, quotas=(vcpus("P", 192),)),
        ),
        max_usd_per_hour=cap,
    ),
    st.none() | st.decimals(min_value=0, max_value=1000, places=0),
    st.decimals(min_value=0, max_value=500, places=0),
    st.integers(0, 4),
    st.none() | st.decimals(min_value=1, max_value=200, places=0),
    st.integers(0, 2),
)
TERMS = st.builds(
    lambda costs, capacity, steady, spread, domain, preferred: PlanTerms(
        costs=costs,
        capacity=capacity,
        steady_count=steady,
        spread=spread if domain is not Domain.ZONE else 1,
        domain=domain,
        preferred_regions=preferred,
    ),
    st.none() | st.just(CostTerms()) | st.just(replace(COSTS, data_gib=Decimal(100), data_at="gcp/us-west-2")),
    st.just(CapacityNow()) | CAPACITIES,
    st.integers(0, 2),
    st.integers(1, 2),
    st.sampled_from(Domain),
    st.sampled_from([(), ("us-west-2",)]),
)
STOCK_OUTS = st.builds(
    stock_out, st.sampled_from(["aws/us-east-1", "aws/us-west-2//p5.48xlarge", offering().key]), st.integers(-5, 60)
)


@given(TERMS, st.lists(OFFERINGS, max_size=12), st.lists(STOCK_OUTS, max_size=3), st.randoms(use_true_random=False))
def test_rank_when_input_is_shuffled_then_bytes_are_the_same(terms, offers, memory, rng):
    first = repr(rank(offers, terms, stock_outs=memory)).encode()
    rng.shuffle(offers)
    rng.shuffle(memory)
    assert repr(rank(offers, terms, stock_outs=memory)).encode() == first


@given(TERMS, st.lists(OFFERINGS, max_size=12), st.lists(STOCK_OUTS, max_size=3))
def test_rank_when_anything_comes_in_then_no_price_that_is_none_is_in_and_nothing_is_lost(terms, offers, memory):
    ranking = rank(offers, terms, stock_outs=memory)
    kept = set(keys(ranking))
    refused = {refusal.subject for refusal in ranking.refusals}
    assert all(has_true_price(item.offering) and item.offering.is_available for item in ranking.ranked)
    assert all(item.rank_usd > 0 for item in ranking.ranked)
    assert kept.isdisjoint(refused)
    assert {item.key for item in offers} <= kept | refused
    for gang in ranking.placements:
        assert sum(share.node_count for share in gang.shares) == REQUEST.node_count
        steady = sum(s.node_count for s in gang.shares if s.offering.capacity_type is not CapacityType.SPOT)
        assert steady >= terms.steady_count


@given(st.lists(OFFERINGS, max_size=12))
def test_rank_when_first_is_doubted_then_every_sure_one_costs_more_than_its_worst(offers):
    ranking = rank_offerings(REQUEST, offers, (), NOW, PlanTerms())
    if ranking.ranked and ranking.ranked[0].offering.doubts:
        worst = ranking.ranked[0].offering.price_usd_per_hour * DOUBT_RATIO
        assert all(item.offering.price_usd_per_hour >= worst for item in ranking.ranked if not item.offering.doubts)


def test_make_plan_when_terms_are_given_then_they_count():
    plan = make_plan(REQUEST, [spot(price="45"), offering(price="55")], (), NOW, TRUE)
    assert [item.capacity_type for item in plan.offerings] == [CapacityType.ON_DEMAND, CapacityType.SPOT]
