from dataclasses import replace
from decimal import Decimal

import pytest
from tests.planning.made import NOW, REQUEST, offering, reason_for, spot, vcpus

from hostler.catalog.known import known_of
from hostler.model.capacity import CapacityNow, QuotaState, Reservation
from hostler.model.enums import CapacityType
from hostler.planning.placement import domain_of
from hostler.planning.rank import rank_offerings
from hostler.planning.reserved import with_reserved
from hostler.planning.terms import CostTerms, Domain, PlanTerms

FOUR = replace(REQUEST, node_count=4)


def gangs(offers, request=FOUR, **terms):
    return rank_offerings(request, offers, (), NOW, PlanTerms(**terms))


def shares(gang) -> list[tuple[str, str, int]]:
    return [(share.offering.zone, share.offering.capacity_type.value, share.node_count) for share in gang.shares]


def test_mix_when_one_node_must_be_steady_then_the_others_are_spot_in_its_zone():
    offers = [offering("us-east-1a", "50"), spot("us-east-1a", "20"), spot("us-east-1b", "1")]
    ranking = gangs(offers, steady_count=1)
    assert shares(ranking.placements[0]) == [("us-east-1a", "on-demand", 1), ("us-east-1a", "spot", 3)]
    assert ranking.placements[0].usd_per_hour == 110
    words = reason_for(ranking, spot("us-east-1b").key)
    assert "us-east-1b (p5.48xlarge): 1 of 1 nodes find no on-demand or reserved offering" in words


def test_mix_when_on_demand_is_cheaper_than_spot_then_all_nodes_take_it():
    ranking = gangs([offering("us-east-1a", "10"), spot("us-east-1a", "20")], steady_count=1)
    assert shares(ranking.placements[0]) == [("us-east-1a", "on-demand", 4)]
    assert "cheaper ones fill the gang" in reason_for(ranking, spot().key)


def test_gang_when_types_differ_then_its_nodes_are_equal():
    offers = [offering("us-east-1a", "50"), spot("us-east-1a", "1", instance_type="p5en.48xlarge")]
    ranking = gangs(offers, steady_count=1)
    assert shares(ranking.placements[0]) == [("us-east-1a", "on-demand", 4)]


def test_spread_when_over_two_zones_of_a_region_then_even_shares_of_the_cheapest():
    offers = [
        offering("us-east-1a", "50"),
        offering("us-east-1b", "60"),
        offering("us-east-1c", "70"),
        offering("us-west-2a", "1"),
    ]
    ranking = gangs(offers, replace(FOUR, node_count=5), spread=2, domain=Domain.REGION)
    assert shares(ranking.placements[0]) == [("us-east-1a", "on-demand", 3), ("us-east-1b", "on-demand", 2)]
    assert "1 zones have it, spread asks for 2" in reason_for(ranking, offers[3].key)


def test_spread_when_a_zone_is_lost_then_at_most_its_share_is():
    offers = [offering(f"us-east-1{letter}", str(50 + index)) for index, letter in enumerate("abc")]
    ranking = gangs(offers, spread=3, domain=Domain.REGION)
    assert max(share.node_count for share in ranking.placements[0].shares) == 2
    assert len(ranking.placements[0].shares) == 3


def test_spread_when_over_clouds_then_one_accelerator_in_each():
    other = offering("us-central1-a", "90", cloud="gcp", region="us-central1", instance_type="a3-highgpu-8g")
    ranking = gangs([offering("us-east-1a", "50"), other], domain=Domain.ANY, spread=2, spread_over=Domain.CLOUD)
    assert [(share.offering.cloud, share.node_count) for share in ranking.placements[0].shares] == [("aws", 2), ("gcp", 2)]


def test_spread_when_steady_nodes_are_asked_for_then_parts_that_have_them_come_first():
    offers = [spot("us-east-1a", "1"), spot("us-east-1b", "2"), offering("us-east-1c", "50"), spot("us-east-1c", "3")]
    ranking = gangs(offers, spread=2, domain=Domain.REGION, steady_count=1)
    assert shares(ranking.placements[0]) == [
        ("us-east-1a", "spot", 2),
        ("us-east-1c", "on-demand", 1),
        ("us-east-1c", "spot", 1),
    ]


def test_spread_when_too_few_nodes_find_a_steady_offering_then_refused():
    offers = [spot("us-east-1a", "1"), spot("us-east-1b", "2"), offering("us-east-1b", "50")]
    ranking = gangs(offers, spread=2, domain=Domain.REGION, steady_count=3)
    assert ranking.placements == ()
    assert "1 of 3 nodes find no on-demand or reserved offering" in reason_for(ranking, offers[2].key)


def test_mix_when_quota_holds_part_of_the_gang_then_the_rest_goes_elsewhere():
    quota = (vcpus("SPOT", 192),)
    offers = [offering("us-east-1a", "50"), spot("us-east-1a", "20", quotas=quota)]
    limit = QuotaState(cloud="aws", region="us-east-1", code="SPOT", unit="vCPU", limit=Decimal(400), used=Decimal(0))
    ranking = gangs(offers, steady_count=1, capacity=CapacityNow(quotas=(limit,)))
    assert shares(ranking.placements[0]) == [("us-east-1a", "on-demand", 2), ("us-east-1a", "spot", 2)]


def test_mix_when_two_offerings_share_a_quota_then_it_is_taken_once():
    quota = (vcpus("P", 192),)
    offers = [
        offering("us-east-1a", "50", CapacityType.ON_DEMAND, quotas=quota),
        offering("us-east-1a", "40", CapacityType.RESERVED, quotas=quota),
    ]
    limit = QuotaState(cloud="aws", region="us-east-1", code="P", unit="vCPU", limit=Decimal(576), used=Decimal(0))
    ranking = gangs(offers, steady_count=4, capacity=CapacityNow(quotas=(limit,)))
    assert ranking.placements == ()
    assert "1 of 4 nodes find no on-demand or reserved offering with room" in reason_for(ranking, offers[0].key)


HELD = Reservation(
    reservation_id="cr-1", cloud="aws", region="us-east-1", zone="us-east-1a", instance_type="p5.48xlarge", total_count=3
)


def test_mix_when_a_reservation_holds_part_then_it_is_filled_first_and_never_over():
    known = with_reserved([known_of(offering("us-east-1a", "50"))], [HELD])
    assert [item.offering.capacity_type for item in known] == [CapacityType.ON_DEMAND, CapacityType.RESERVED]
    offers = [replace(item.offering, price_usd_per_hour=Decimal(49 if item.key.endswith("reserved") else 50)) for item in known]
    ranking = gangs(offers, steady_count=2, capacity=CapacityNow(reservations=(HELD,)))
    assert shares(ranking.placements[0]) == [("us-east-1a", "on-demand", 1), ("us-east-1a", "reserved", 3)]


def test_reserved_when_the_list_names_no_zone_then_the_regions_price_is_lent():
    known = with_reserved([known_of(replace(offering("us-east-1a", "50"), zone=""))], [HELD])
    made = [item for item in known if item.offering.capacity_type is CapacityType.RESERVED]
    assert [(item.offering.zone, item.offering.price_usd_per_hour) for item in made] == [("us-east-1a", Decimal(50))]
    assert [item.key for item in known] == sorted(item.key for item in known)


def test_gang_when_cap_on_spending_is_passed_then_refused_with_words():
    ranking = gangs(
        [offering("us-east-1a", "50"), spot("us-east-1a", "20")],
        steady_count=1,
        capacity=CapacityNow(max_usd_per_hour=Decimal(100)),
    )
    assert ranking.placements == ()
    assert "110 USD per hour more is above max_usd_per_hour 100" in reason_for(ranking, spot().key)


def test_gang_when_costs_are_given_then_losses_of_its_spot_nodes_alone_count():
    offers = [offering("us-east-1a", "50"), spot("us-east-1a", "20")]
    half = gangs(offers, steady_count=2, costs=CostTerms()).placements[0].cost
    most = gangs(offers, steady_count=1, costs=CostTerms()).placements[0].cost
    assert half.losses_per_hour < most.losses_per_hour
    assert half.overhead_ratio < most.overhead_ratio


def test_gang_when_the_work_costs_too_much_then_refused():
    costs = CostTerms(useful_hours=Decimal(10), is_length_known=True)
    ranking = gangs([offering(), spot()], steady_count=1, costs=costs, max_total_usd=Decimal(500))
    assert ranking.placements == ()
    assert "the most is 500" in reason_for(ranking, offering().key)


def test_gang_when_a_share_is_doubted_then_it_ranks_after_a_sure_one_of_like_price():
    offers = [
        *(offering("us-east-1a", "50"), spot("us-east-1a", "20", doubts=("two sources",))),
        *(offering("us-west-2a", "60"), spot("us-west-2a", "25")),
    ]
    assert gangs(offers, steady_count=1).placements[0].domain == "aws/us-west-2/us-west-2a"


@pytest.mark.parametrize(
    ("domain", "name"),
    [
        (Domain.ZONE, "aws/us-east-1/us-east-1a"),
        (Domain.REGION, "aws/us-east-1"),
        (Domain.CLOUD, "aws"),
        (Domain.ANY, "anywhere"),
    ],
)
def test_domain_when_named_then_of_its_width(domain, name):
    assert domain_of(offering(), domain) == name


def test_domain_when_a_cloud_names_no_zones_then_it_says_so():
    assert domain_of(offering(zone="", region="eastus"), Domain.ZONE) == "aws/eastus/(zone not named)"
