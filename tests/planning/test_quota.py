"""Limits in the cloud's own unit: the kinds of B34, B44 and B47 of the public bug reports, as far as planning meets them."""

from dataclasses import replace
from decimal import Decimal

import pytest
from tests.planning.made import NOW, REQUEST, keys, offering, reason_for, spot, stock_out, vcpus, zones

from hostler.model.capacity import CapacityNow, OpenSpotRequest, QuotaState, Reservation
from hostler.model.enums import CapacityType
from hostler.model.offering import QuotaUse
from hostler.planning.quota import CapacityBook, plain, same_unit
from hostler.planning.rank import rank_offerings
from hostler.planning.terms import PlanTerms


def state(limit, used=0, *, code="P", unit="vCPU", cloud="aws", region="us-east-1") -> QuotaState:
    return QuotaState(
        cloud=cloud,
        region=region,
        code=code,
        unit=unit,
        limit=None if limit is None else Decimal(limit),
        used=None if used is None else Decimal(used),
    )


def reservation(name, total, used=0, zone="us-east-1a", instance_type="p5.48xlarge") -> Reservation:
    return Reservation(
        reservation_id=name,
        cloud="aws",
        region="us-east-1",
        zone=zone,
        instance_type=instance_type,
        total_count=total,
        used_count=used,
    )


def rank(offers, request=REQUEST, stock_outs=(), **capacity):
    return rank_offerings(request, offers, stock_outs, NOW, PlanTerms(capacity=CapacityNow(**capacity)))


P5 = offering(quotas=(vcpus("P", 192),))


def test_quota_when_500_machines_of_2_vcpus_then_1000_are_needed_not_500():
    # B34, first case: m5.large has 2 vCPUs; a limit of 500 vCPUs holds 250 of them.
    small = replace(P5, quotas=(vcpus("P", 2),))
    ranking = rank([small], replace(REQUEST, node_count=500), quotas=(state(500),))
    assert ranking.ranked == ()
    assert "limit 500 vCPU, 0 in use; 500 nodes need 1000 vCPU more" in reason_for(ranking, small.key)
    assert rank([small], replace(REQUEST, node_count=250), quotas=(state(500),)).refusals == ()


def test_quota_when_one_p3_16xlarge_then_64_vcpus_not_1():
    # B34, second case.
    big = replace(P5, quotas=(vcpus("P", 64),))
    one = replace(REQUEST, node_count=1)
    assert rank([big], one, quotas=(state(64),)).refusals == ()
    assert "1 node needs 64 vCPU more" in reason_for(rank([big], one, quotas=(state(63),)), big.key)


def test_quota_when_azure_family_has_room_and_region_has_not_then_refused_naming_the_region():
    uses = (vcpus("standardNDASv4Family", 96, unit="core"), vcpus("cores", 96, unit="core"))
    node = offering(cloud="azure", zone="", region="eastus", instance_type="Standard_ND96asr_v4", quotas=uses)
    states = (
        state(960, 0, code="standardNDASv4Family", unit="cores", cloud="azure", region="eastus"),
        state(350, 200, code="cores", unit="cores", cloud="azure", region="eastus"),
    )
    reason = reason_for(rank([node], quotas=states), node.key)
    assert "quota cores (cores): limit 350 core, 200 in use; 2 nodes need 192 core more" in reason
    assert "standardNDASv4Family" not in reason


def test_quota_when_azure_spot_then_low_priority_cores_count():
    uses = (vcpus("lowPriorityCores", 96, unit="core"),)
    node = spot(cloud="azure", zone="", region="eastus", instance_type="Standard_ND96asr_v4", quotas=uses)
    states = (state(100, 0, code="lowPriorityCores", unit="core", cloud="azure", region="eastus"),)
    assert "lowPriorityCores" in reason_for(rank([node], quotas=states), node.key)


@pytest.mark.parametrize(
    ("code", "region", "unit", "limit"),
    [
        ("NVIDIA_H100_GPUS", "us-central1", "GPU", 15),
        ("GPUS_ALL_REGIONS", "", "GPU", 15),
        ("CPUS", "us-central1", "vCPU", 415),
        ("SSD_TOTAL_GB", "us-central1", "GB", 399),
    ],
)
def test_quota_when_google_lacks_any_of_its_four_then_refused_naming_that_one(code, region, unit, limit):
    uses = (
        vcpus("NVIDIA_H100_GPUS", 8, unit="GPU"),
        vcpus("GPUS_ALL_REGIONS", 8, scope="global", unit="GPU"),
        vcpus("CPUS", 208),
        vcpus("SSD_TOTAL_GB", 200, unit="GB"),
    )
    node = offering(cloud="gcp", zone="us-central1-a", region="us-central1", quotas=uses)
    enough = (
        state(16, code="NVIDIA_H100_GPUS", unit="GPU", cloud="gcp", region="us-central1"),
        state(16, code="GPUS_ALL_REGIONS", unit="GPU", cloud="gcp", region=""),
        state(416, code="CPUS", cloud="gcp", region="us-central1"),
        state(400, code="SSD_TOTAL_GB", unit="GB", cloud="gcp", region="us-central1"),
    )
    assert rank([node], quotas=enough).refusals == ()
    short = state(limit, code=code, unit=unit, cloud="gcp", region=region)
    reason = reason_for(rank([node], quotas=(*enough, short)), node.key)
    assert code in reason
    assert reason.count("quota ") == 2  # the word of the sentence and of the made-up name: one quota, not several


def test_quota_when_two_units_would_meet_then_they_are_not_compared_and_it_says_so():
    ranking = rank([P5], quotas=(state(1, unit="instances"),))
    assert keys(ranking) == [P5.key]
    assert ranking.ranked[0].notes == ("quota not checked: quota P",)


@pytest.mark.parametrize("unread", [state(None), state(384, None)])
def test_quota_when_reading_was_throttled_then_nothing_is_refused_and_it_says_so(unread):
    # B47's kind: a throttled reading is no answer, least of all "no room".
    ranking = rank([P5], quotas=(unread,))
    assert keys(ranking) == [P5.key]
    assert "quota not checked" in ranking.ranked[0].notes[0]


def test_quota_when_a_rate_quota_of_reads_is_used_up_then_machines_are_not_refused():
    # B47: "Quota exceeded ... Read requests per minute" is about calls.
    calls = state(100, 100, code="ReadRequestsPerMinutePerProject", unit="requests")
    assert keys(rank([P5], quotas=(calls,))) == [P5.key]


def test_quota_when_a_code_is_spelled_in_a_new_way_then_it_is_unknown_and_the_plan_goes_on():
    # B44's kind: a name nobody knows yet must not stop the search, and must be told.
    ranking = rank([P5], quotas=(state(0, code="P_WITH_DETAILS"),))
    assert keys(ranking) == [P5.key]
    assert ranking.ranked[0].notes == ("quota not checked: quota P",)


def test_rank_when_a_stock_out_has_a_subject_of_a_new_kind_then_the_next_zone_is_there_all_the_same():
    # B44: a scope that nobody knows bars nothing; known ones still move on to the next zone.
    offers = [offering("us-east-1a", "50"), offering("us-east-1b", "51")]
    memory = [stock_out("aws/us-east-1/somewhere/new", 9), stock_out(offers[0].key, 9)]
    assert zones(rank(offers, stock_outs=memory)) == ["us-east-1b", "us-east-1a"]


def test_quota_when_used_and_open_spot_requests_take_it_then_both_count():
    node = spot(quotas=(vcpus("SPOT", 192),))
    waiting = OpenSpotRequest(
        request_id="sir-1", cloud="aws", region="us-east-1", node_count=2, price_usd_per_hour=Decimal(20), quotas=node.quotas
    )
    states = (state(960, 384, code="SPOT"),)
    assert keys(rank([node], quotas=states)) == [node.key]
    ranking = rank([node], quotas=states, open_spot_requests=(waiting,))
    assert "limit 960 vCPU, 384 in use, 384 asked for by open spot requests; 2 nodes need 384 vCPU more" in reason_for(
        ranking, node.key
    )
    elsewhere = replace(waiting, region="us-west-2")
    assert keys(rank([node], quotas=states, open_spot_requests=(elsewhere,))) == [node.key]


def test_spending_when_open_spot_requests_would_pass_the_cap_then_refused_and_they_are_named():
    waiting = OpenSpotRequest(request_id="sir-1", cloud="aws", region="eu-west-1", node_count=3, price_usd_per_hour=Decimal(20))
    cap = {"max_usd_per_hour": Decimal(150), "spent_usd_per_hour": Decimal(30)}
    assert keys(rank([offering(price="50")], **cap)) == [offering().key]
    ranking = rank([offering(price="50")], **cap, open_spot_requests=(waiting,))
    reason = reason_for(ranking, offering().key)
    assert "100 USD per hour more is above max_usd_per_hour 150: 90 are spent already (1 open spot requests counted)" in reason


@pytest.mark.parametrize("price", [None, Decimal("NaN"), Decimal(-5), Decimal("Infinity")])
def test_spending_when_an_open_request_has_no_price_then_it_takes_quota_alone(price):
    waiting = OpenSpotRequest(request_id="s", cloud="aws", region="us-east-1", node_count=3, price_usd_per_hour=price)
    book = CapacityBook(CapacityNow(open_spot_requests=(waiting,), max_usd_per_hour=Decimal(10)))
    assert book.spent_usd_per_hour == 0


RESERVED = offering(kind=CapacityType.RESERVED)


def test_reservations_when_several_lie_in_a_zone_then_they_are_added_up():
    assert keys(rank([RESERVED], reservations=(reservation("cr-1", 1), reservation("cr-2", 3, 2)))) == [RESERVED.key]


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (
            (reservation("cr-1", 1), reservation("cr-2", 2, 2)),
            "1 free machines in all reservations of the zone (cr-1 1, cr-2 0), 2",
        ),
        ((reservation("cr-1", 8, zone="us-east-1b"),), "nothing of p5.48xlarge is reserved in us-east-1a"),
        ((reservation("cr-1", 8, instance_type="p4d.24xlarge"),), "nothing of p5.48xlarge is reserved"),
        ((reservation("cr-1", 1), reservation("cr-1", 1)), "1 free machines"),
        ((), "nothing of p5.48xlarge is reserved"),
    ],
)
def test_reservations_when_they_do_not_hold_the_gang_then_refused_with_the_sum(held, words):
    assert words in reason_for(rank([RESERVED], reservations=held), RESERVED.key)


def test_reservations_when_never_read_then_reserved_is_not_refused():
    assert keys(rank([RESERVED])) == [RESERVED.key]


def test_reservation_when_more_is_used_than_held_then_nothing_is_free():
    assert reservation("cr-1", 2, 5).free_count == 0


def test_book_when_a_quota_comes_twice_then_the_tighter_counts():
    book = CapacityBook(CapacityNow(quotas=(state(1000), state(100), state(None))))
    assert book.reasons(P5, 1) != ()


def test_book_when_nothing_is_known_then_nothing_is_refused():
    assert CapacityBook(CapacityNow()).reasons(P5, 1000) == ()


@pytest.mark.parametrize(("one", "other", "same"), [("vCPU", "vcpus", True), ("cores", "vCPU", True), ("vCPU", "GPU", False)])
def test_units_when_spelled_differently_then_same(one, other, same):
    assert same_unit(one, other) is same


@pytest.mark.parametrize(("amount", "words"), [("1E+3", "1000"), ("1.500", "1.5"), ("100", "100"), ("0", "0"), ("0.0", "0")])
def test_plain_when_written_then_without_exponent_and_idle_zeros(amount, words):
    assert plain(Decimal(amount)) == words


def test_quota_use_when_it_takes_nothing_then_never_over():
    free = replace(P5, quotas=(QuotaUse(code="P", name="P", unit="vCPU", amount=Decimal(0)),))
    assert keys(rank([free], quotas=(state(0),))) == [free.key]
