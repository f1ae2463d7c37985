from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from hostler.cloud.driver import MachineState
from hostler.drivers.aws.convert import machine, price, tag_filters, tag_list
from hostler.model.enums import CapacityType

INSTANCE = {
    "InstanceId": "i-1",
    "InstanceType": "p5.48xlarge",
    "State": {"Name": "running"},
    "Placement": {"AvailabilityZone": "us-east-1a"},
    "PrivateIpAddress": "10.0.0.1",
    "PublicIpAddress": "54.0.0.1",
    "LaunchTime": datetime(2026, 12, 1, 14, tzinfo=timezone(timedelta(hours=2))),
    "Tags": [{"Key": "Name", "Value": "hostler-x"}, {"Key": "empty"}],
}


def test_machine_when_running_then_common_words():
    found = machine(INSTANCE, "us-east-1", "private")
    assert (found.state, found.address, found.name) == (MachineState.RUNNING, "10.0.0.1", "hostler-x")
    assert found.launched_at == datetime(2026, 12, 1, 12, tzinfo=UTC)
    assert found.launched_at.tzinfo is UTC
    assert found.capacity_type is CapacityType.ON_DEMAND
    assert found.tags == {"Name": "hostler-x", "empty": ""}


def test_machine_when_reached_publicly_then_public_address_or_none_yet():
    assert machine(INSTANCE, "r", "public").address == "54.0.0.1"
    assert machine({**INSTANCE, "PublicIpAddress": ""}, "r", "public").address is None


@pytest.mark.parametrize(
    ("word", "state", "ended"),
    [
        ("pending", MachineState.PENDING, False),
        ("shutting-down", MachineState.TERMINATING, False),
        ("terminated", MachineState.TERMINATED, True),
        ("stopping", MachineState.STOPPING, False),
        ("stopped", MachineState.STOPPED, True),
    ],
)
def test_machine_when_state_changed_then_end_of_billing_only_where_billing_ended(word, state, ended):
    instance = {
        **INSTANCE,
        "State": {"Name": word},
        "StateTransitionReason": "User initiated (2026-12-01 12:30:00 GMT)",
        "StateReason": {"Code": "Client.UserInitiatedShutdown", "Message": "x"},
    }
    found = machine(instance, "r", "private")
    assert found.state is state
    assert found.ended_at == (datetime(2026, 12, 1, 12, 30, tzinfo=UTC) if ended else None)
    assert found.state_reason == "Client.UserInitiatedShutdown"


@pytest.mark.parametrize("reason", ["", "Server.SpotInstanceTermination", "User initiated"])
def test_machine_when_the_cloud_tells_no_time_then_none(reason):
    assert (
        machine({**INSTANCE, "State": {"Name": "terminated"}, "StateTransitionReason": reason}, "r", "private").ended_at is None
    )


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"InstanceLifecycle": "spot"}, CapacityType.SPOT),
        ({"InstanceLifecycle": "capacity-block"}, CapacityType.RESERVED),
        (
            {"CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}}},
            CapacityType.RESERVED,
        ),
        ({"CapacityReservationSpecification": {"CapacityReservationPreference": "open"}}, CapacityType.ON_DEMAND),
    ],
)
def test_machine_when_bought_so_then_that_capacity_type(more, kind):
    assert machine({**INSTANCE, **more}, "r", "private").capacity_type is kind


def test_machine_when_it_has_parts_then_all_are_named():
    parts = {
        "NetworkInterfaces": [{"NetworkInterfaceId": "eni-1"}],
        "BlockDeviceMappings": [{"Ebs": {"VolumeId": "vol-1"}}, {"DeviceName": "ephemeral"}],
        "SpotInstanceRequestId": "sir-1",
    }
    found = machine({**INSTANCE, **parts}, "r", "private").resources
    assert found == (("network-interface", "eni-1"), ("volume", "vol-1"), ("spot-instances-request", "sir-1"))


@pytest.mark.parametrize("broken", [{"State": {"Name": "dreaming"}}, {"Placement": {}}])
def test_machine_when_it_cannot_be_understood_then_raises_rather_than_guesses(broken):
    with pytest.raises(KeyError):
        machine({**INSTANCE, **broken}, "r", "private")


def test_tag_filters_when_values_have_wildcards_then_they_are_literal():
    assert tag_filters({"b": "x", "a": r"we*ird?\\"[:-1]}) == [
        {"Name": "tag:a", "Values": [r"we\*ird\?\\"]},
        {"Name": "tag:b", "Values": ["x"]},
    ]


def test_tag_list_when_order_differs_then_same_bytes():
    assert tag_list({"b": "2", "a": "1"}) == tag_list({"a": "1", "b": "2"})


@pytest.mark.parametrize(
    ("word", "expected"), [("1.25", Decimal("1.25")), ("0.000", None), ("NaN", None), ("-1", None), ("", None), (None, None)]
)
def test_price_when_it_is_no_price_then_none(word, expected):
    assert price(word) == expected
