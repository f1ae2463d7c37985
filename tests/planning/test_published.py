"""Plans over the published price lists."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from tests.catalog.published import FOLDER, needs_lists
from tests.planning.made import NOW, REQUEST, stock_out

from hostler.catalog.cache import open_index
from hostler.cli.offers import rank_all
from hostler.model.enums import CapacityType
from hostler.planning.filters import has_true_price
from hostler.planning.terms import CostTerms, PlanTerms

pytestmark = needs_lists


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return open_index([FOLDER], folder=str(tmp_path_factory.mktemp("cache")))


def rank(index, *names, count=8, kinds=(CapacityType.SPOT, CapacityType.ON_DEMAND), stock_outs=(), **terms):
    request = replace(REQUEST, accelerator=names[0], accelerators_per_node=count, capacity_types=kinds)
    return rank_all(index, request, PlanTerms(accelerators=names, costs=CostTerms(), **terms), stock_outs, NOW)


def test_plan_when_every_accelerator_is_asked_for_then_no_price_that_is_none_is_ever_in(index):
    for name, counts in index.sizes.items():
        for count in counts:
            if not 1 <= count <= 16:
                continue
            ranking = rank(index, name, count=count)
            assert all(has_true_price(item.offering) for item in ranking.ranked)
            assert {item.key for item in index.known((name,), count)} <= {
                *(item.offering.key for item in ranking.ranked),
                *(refusal.subject for refusal in ranking.refusals),
            }


def test_plan_when_vast_asks_nothing_for_spot_then_refused_and_its_other_rows_are_marked(index):
    ranking = rank(index, "RTX5090", count=1)
    assert not [item for item in ranking.ranked if item.offering.capacity_type is CapacityType.SPOT]
    assert [refusal for refusal in ranking.refusals if refusal.subject.startswith("vast/") and "no price" in refusal.reason]
    assert all("not one of the clouds" in item.notes[-1] for item in ranking.ranked if item.offering.cloud == "vast")


def test_plan_when_google_lists_disagree_then_a3_of_us_central1_shows_its_doubt_and_counts_as_the_dearer(index):
    ranking = rank(index, "H100", kinds=(CapacityType.ON_DEMAND,))
    doubted = [item for item in ranking.ranked if "/us-central1-a/a3-highgpu-8g/" in item.offering.key]
    assert doubted
    for item in doubted:
        assert "sources disagree" in item.notes[0]
        assert item.rank_usd > 2 * item.cost.usd_per_useful_accelerator_hour
    assert not ranking.ranked[0].offering.doubts


def test_plan_when_four_are_asked_for_then_the_same_winner_as_the_peer_found(index):
    # SkyPilot 0.14.1 over the same rows: GCP g2-standard-96, spot.
    first = rank(index, "A100", "A100-80GB", "H100", "L4").ranked[0].offering
    assert (first.cloud, first.instance_type, first.capacity_type) == ("gcp", "g2-standard-96", CapacityType.SPOT)


@pytest.mark.parametrize(
    ("name", "count", "kind", "cheapest"),
    [
        ("H100", 1, CapacityType.ON_DEMAND, ("Standard_NC40ads_H100_v5", "6.98")),
        ("A100-80GB", 1, CapacityType.ON_DEMAND, ("Standard_NC24ads_A100_v4", "3.673")),
        ("T4", 1, CapacityType.ON_DEMAND, ("Standard_NC4as_T4_v3", "0.526")),
        ("H100", 1, CapacityType.SPOT, ("Standard_NCC40ads_H100_v5", "1.2899")),
        ("A100-80GB", 1, CapacityType.SPOT, ("Standard_NC24ads_A100_v4", "0.7467")),
        ("T4", 1, CapacityType.SPOT, ("Standard_NC4as_T4_v3", "0.0684")),
    ],
)
def test_plan_when_azure_alone_then_the_known_cheapest(index, name, count, kind, cheapest):
    request = replace(REQUEST, accelerator=name, accelerators_per_node=count, capacity_types=(kind,), clouds=("azure",))
    ranking = rank_all(index, request, PlanTerms(accelerators=(name,)), (), NOW)
    first = ranking.ranked[0].offering
    assert first.instance_type == cheapest[0]
    assert first.price_usd_per_hour == pytest.approx(Decimal(cheapest[1]), abs=Decimal("0.0001"))


def test_plan_when_a_region_is_out_of_stock_then_the_next_one_is_first(index):
    names = ("A100", "H100")
    first = rank(index, *names).ranked[0].offering
    again = rank(index, *names, stock_outs=[stock_out(f"{first.cloud}/{first.region}", 30)])
    assert (again.ranked[0].offering.cloud, again.ranked[0].offering.region) != (first.cloud, first.region)
    assert again.ranked[-1].stock_out.until == NOW + timedelta(minutes=30)
