from datetime import UTC, datetime

import boto3
import pytest
from botocore.stub import Stubber
from tests.clouds.aws import ENVIRONMENT, IMAGE, REGION, order

from hostler.cloud.driver import OfferingQuery
from hostler.cloud.errors import CloudConfigError
from hostler.drivers.aws.calls import Calls
from hostler.drivers.aws.lookups import KEPT_S, Lookups
from hostler.drivers.aws.offers import Offers
from hostler.drivers.aws.settings import AwsSettings
from hostler.model.enums import CapacityType


@pytest.fixture
def stub(monkeypatch):
    """Answers in the vendor's own shapes; the stub refuses others. For what no local server knows."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("ec2", region_name=REGION)
    with Stubber(client) as stubber:
        yield stubber


class OneClient:
    def __init__(self, stub: Stubber) -> None:
        self._client = stub.client

    def client(self, cloud, service, region, connection, options=None):
        return self._client


def settings(**changes) -> AwsSettings:
    kinds = ["spot", "on-demand", "reserved"]
    return AwsSettings.model_validate(
        {"regions": [REGION], "image": IMAGE, "capacity_types": kinds, "reservations": ["cr-1", "cr-2"], **changes}
    )


def lookups(stub: Stubber, clock=lambda: 0.0, **changes) -> tuple[Lookups, Calls, AwsSettings]:
    chosen = settings(**changes)
    calls = Calls(sessions=OneClient(stub), connection=None, timeout_s=30)
    return Lookups(calls, chosen, clock), calls, chosen


def reservation(name: str, *, free: int = 1, zone: str = "us-east-1a", kind: str = "default") -> dict:
    return {
        "CapacityReservationId": name,
        "InstanceType": "g6.xlarge",
        "AvailabilityZone": zone,
        "AvailableInstanceCount": free,
        "ReservationType": kind,
        "State": "active",
    }


def add_site(stub: Stubber, *subnets: str) -> None:
    found = [{"SubnetId": name, "AvailabilityZone": "us-east-1a", "VpcId": "vpc-1"} for name in subnets or ("subnet-1",)]
    stub.add_response("describe_subnets", {"Subnets": found})
    stub.add_response("describe_images", {"Images": [{"ImageId": IMAGE, "RootDeviceName": "/dev/xvda"}]})


def site_with(stub: Stubber, *reservations: dict, **changes):
    add_site(stub)
    stub.add_response("describe_capacity_reservations", {"CapacityReservations": list(reservations)})
    found, _, _ = lookups(stub, **changes)
    return found.site(order(capacity_type=CapacityType.RESERVED))


def test_site_when_reservations_fit_then_one_with_room_first(stub):
    site = site_with(stub, reservation("cr-1", free=0), reservation("cr-2"), reservation("cr-stranger"))
    assert site.reservation is not None
    assert site.reservation.reservation_id == "cr-2"
    assert site.root_device == "/dev/xvda"


@pytest.mark.parametrize("other", [reservation("cr-1", zone="us-east-1b"), reservation("cr-stranger")])
def test_site_when_no_reservation_fits_then_config_error(stub, other):
    with pytest.raises(CloudConfigError, match=r"none for g6\.xlarge in us-east-1a"):
        site_with(stub, other)


def test_site_when_it_is_a_capacity_block_then_only_with_approval(stub):
    block = reservation("cr-1", kind="capacity-block")
    with pytest.raises(CloudConfigError, match="approve_capacity_blocks is false"):
        site_with(stub, block)
    stub.assert_no_pending_responses()
    site = site_with(stub, block, approve_capacity_blocks=True)
    assert site.reservation is not None
    assert site.reservation.is_block


def test_site_when_asked_again_then_kept_until_it_is_old(stub):
    at = [0.0]
    add_site(stub)
    found, _, _ = lookups(stub, clock=lambda: at[0])
    assert found.site(order()) == found.site(order())
    stub.assert_no_pending_responses()
    at[0] = KEPT_S
    add_site(stub, "subnet-2")
    assert found.site(order()).subnet_id == "subnet-2"


def test_site_when_zone_has_several_subnets_then_the_token_picks_always_the_same(stub):
    names = [f"subnet-{number}" for number in range(4)]
    add_site(stub, *names)
    found, _, _ = lookups(stub)
    chosen = {slot: found.site(order(slot=slot)).subnet_id for slot in range(40)}
    assert set(chosen.values()) == set(names)
    assert chosen == {slot: found.site(order(slot=slot)).subnet_id for slot in range(40)}


def test_site_when_security_groups_are_elsewhere_then_config_error(stub):
    add_site(stub)
    stub.add_response("describe_security_groups", {"SecurityGroups": []})
    found, _, _ = lookups(stub, security_groups={"ids": ["sg-of-another-vpc"]})
    with pytest.raises(CloudConfigError, match="vpc-1"):
        found.site(order())


def offers_with(stub: Stubber, *reservations: dict, spot: list[dict] | None = None, **changes):
    found, calls, chosen = lookups(stub, **changes)
    zones = [{"ZoneName": "us-east-1a"}, {"ZoneName": "us-east-1b"}]
    stub.add_response("describe_availability_zones", {"AvailabilityZones": zones})
    sold = [{"InstanceType": "g6.xlarge", "Location": zone["ZoneName"], "LocationType": "availability-zone"} for zone in zones]
    stub.add_response("describe_instance_type_offerings", {"InstanceTypeOfferings": sold})
    subnets = [{"SubnetId": zone["ZoneName"], "AvailabilityZone": zone["ZoneName"], "VpcId": "vpc-1"} for zone in zones]
    stub.add_response("describe_subnets", {"Subnets": subnets})
    if spot is not None:
        stub.add_response("describe_spot_price_history", {"SpotPriceHistory": spot})
    else:
        stub.add_response("describe_capacity_reservations", {"CapacityReservations": list(reservations)})
    kind = CapacityType.RESERVED if spot is None else CapacityType.SPOT
    query = OfferingQuery(accelerator="L4", accelerators_per_node=1, capacity_types=(kind,))
    offered = Offers(calls, found, chosen).find(query)
    stub.assert_no_pending_responses()
    return {offering.zone: offering for offering in offered if offering.instance_type == "g6.xlarge"}


def spot_price(zone: str, amount: str, hour: int) -> dict:
    at = datetime(2026, 12, 1, hour, tzinfo=UTC)
    return {"InstanceType": "g6.xlarge", "AvailabilityZone": zone, "SpotPrice": amount, "Timestamp": at}


def test_offers_when_spot_prices_change_then_the_newest_of_each_zone(stub):
    prices = [spot_price("us-east-1a", "0.3", 9), spot_price("us-east-1a", "0.4", 11), spot_price("us-east-1a", "0.2", 10)]
    found = offers_with(stub, spot=prices)
    assert str(found["us-east-1a"].price_usd_per_hour) == "0.4"
    assert found["us-east-1b"].price_usd_per_hour is None


@pytest.mark.parametrize("amount", ["0.000000", "", "free"])
def test_offers_when_spot_price_is_no_price_then_none(stub, amount):
    assert offers_with(stub, spot=[spot_price("us-east-1a", amount, 9)])["us-east-1a"].price_usd_per_hour is None


def test_offers_when_reserved_then_room_decides_and_the_rest_says_why(stub):
    found = offers_with(stub, reservation("cr-1"), reservation("cr-2", zone="us-east-1b", free=0))
    assert found["us-east-1a"].is_available
    assert str(found["us-east-1a"].price_usd_per_hour) == "0.8048"
    assert found["us-east-1b"].unavailable_reason == "cr-2 has no free machine"


def test_offers_when_reservation_is_an_unapproved_block_then_marked(stub):
    found = offers_with(stub, reservation("cr-1", kind="capacity-block"))
    assert "approve_capacity_blocks is false" in (found["us-east-1a"].unavailable_reason or "")
    assert "no reservation" in (found["us-east-1b"].unavailable_reason or "")
