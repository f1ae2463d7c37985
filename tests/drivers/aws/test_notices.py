from datetime import UTC, datetime, timedelta

import pytest

from hostler.drivers.aws.notices import of_instances, of_spot_requests, of_statuses, one_per_machine

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
EARLIER = NOW - timedelta(minutes=1)


def spot_request(code: str, instance: str | None = "i-1") -> dict:
    found = {"Status": {"Code": code, "UpdateTime": EARLIER}}
    return {**found, "InstanceId": instance} if instance else found


def test_of_spot_requests_when_marked_then_two_minutes_are_left():
    (notice,) = of_spot_requests([spot_request("marked-for-termination")], "us-east-1", NOW)
    assert (notice.provider_id, notice.kind, notice.region) == ("i-1", "interruption", "us-east-1")
    assert notice.noticed_at == EARLIER
    assert notice.takes_effect_at == EARLIER + timedelta(minutes=2)


@pytest.mark.parametrize("code", ["instance-terminated-by-price", "instance-terminated-no-capacity"])
def test_of_spot_requests_when_taken_then_it_took_effect_then(code):
    (notice,) = of_spot_requests([spot_request(code)], "us-east-1", NOW)
    assert notice.takes_effect_at == EARLIER


@pytest.mark.parametrize("request_", [spot_request("fulfilled"), spot_request("instance-terminated-by-user"), {}])
def test_of_spot_requests_when_all_is_well_or_our_own_doing_then_none(request_):
    assert of_spot_requests([request_], "us-east-1", NOW) == []


def test_of_spot_requests_when_it_has_no_machine_then_none():
    assert of_spot_requests([spot_request("marked-for-termination", None)], "us-east-1", NOW) == []


def instance(code: str | None, transition: str = "") -> dict:
    reason = {"StateReason": {"Code": code}} if code else {}
    return {"InstanceId": "i-1", "StateTransitionReason": transition, **reason}


def test_of_instances_when_spot_took_it_then_interruption_at_that_time():
    taken = instance("Server.SpotInstanceTermination", "Server.SpotInstanceTermination (2026-12-01 11:00:00 GMT)")
    (notice,) = of_instances([taken], "us-east-1", NOW)
    assert notice.noticed_at == datetime(2026, 12, 1, 11, tzinfo=UTC)
    assert of_instances([instance("Server.SpotInstanceTermination")], "us-east-1", NOW)[0].noticed_at == NOW


@pytest.mark.parametrize("code", ["Client.UserInitiatedShutdown", "Client.InstanceInitiatedShutdown", None])
def test_of_instances_when_we_ended_it_then_none(code):
    assert of_instances([instance(code)], "us-east-1", NOW) == []


def test_of_statuses_when_events_are_scheduled_then_those_still_to_come():
    due = NOW + timedelta(days=2)
    status = {
        "InstanceId": "i-1",
        "Events": [
            {"Code": "instance-stop", "Description": "[Completed] The instance is degraded", "NotBefore": due},
            {"Code": "instance-retirement", "Description": "The instance is degraded", "NotBefore": due},
        ],
    }
    (notice,) = of_statuses([status], "us-east-1", NOW)
    assert (notice.kind, notice.takes_effect_at) == ("maintenance", due)


def test_one_per_machine_when_two_sources_tell_the_same_then_the_first():
    notices = [
        *of_spot_requests([spot_request("instance-terminated-by-price")], "us-east-1", NOW),
        *of_instances([instance("Server.SpotInstanceTermination")], "us-east-1", NOW),
        *of_statuses([{"InstanceId": "i-1", "Events": [{"Code": "instance-stop"}]}], "us-east-1", NOW),
    ]
    assert [(notice.kind, notice.noticed_at) for notice in one_per_machine(notices)] == [
        ("interruption", EARLIER),
        ("maintenance", NOW),
    ]
