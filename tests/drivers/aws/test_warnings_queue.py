"""Interruption warnings through EventBridge and SQS, on the wire."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clouds import aws
from tests.recipes.agent.bench import until

from hostler.cloud.driver import Interruption
from hostler.cloud.errors import CloudThrottledError
from hostler.drivers.aws.warnings_queue import IN_FORCE, read_warning

REGION = aws.REGION


def event(machine: str, *, kind: str = "EC2 Spot Instance Interruption Warning", at: datetime | None = None, **more) -> dict:
    moment = at or datetime.now(UTC)
    return {
        "version": "0",
        "id": "12345678-1234-1234-1234-123456789012",
        "detail-type": kind,
        "source": "aws.ec2",
        "account": "123456789012",
        "time": f"{moment:%Y-%m-%dT%H:%M:%SZ}",
        "region": REGION,
        "resources": [f"arn:aws:ec2:{REGION}:123456789012:instance/{machine}"],
        "detail": {"instance-id": machine, "instance-action": "terminate"},
        **more,
    }


@pytest.fixture
def queue(front):
    client = aws.owner("sqs")
    url = client.create_queue(QueueName="warnings")["QueueUrl"]
    yield client, url
    client.delete_queue(QueueUrl=url)


def put(queue, *documents):
    client, url = queue
    for document in documents:
        client.send_message(QueueUrl=url, MessageBody=document if isinstance(document, str) else json.dumps(document))


def test_warnings_when_in_the_queue_then_every_driver_hears_of_its_own_machines_and_of_no_others(ec2, queue, driver_for):
    first, second = (driver_for(interruption_queue=queue[1]) for _ in range(2))
    ours = first.launch(aws.order()).provider_id
    put(queue, event(ours), event("i-0123456789abcdef0"), "garbage", event(ours, region="eu-west-9"))
    for driver in (first, second):
        # What one driver reads is hidden from the others for a second.
        (notice,) = until(lambda driver=driver: driver.list_interruptions(REGION))
        assert (notice.provider_id, notice.kind) == (ours, "interruption")
        assert notice.takes_effect_at == notice.noticed_at + timedelta(minutes=2)
    assert [n.provider_id for n in first.list_interruptions(REGION)] == [ours]


def test_warnings_when_old_then_they_are_over_and_leave_the_queue(ec2, queue, driver_for):
    driver = driver_for(interruption_queue={REGION: queue[1]})
    ours = driver.launch(aws.order()).provider_id
    put(queue, event(ours, at=datetime.now(UTC) - IN_FORCE - timedelta(minutes=1)))
    assert driver.list_interruptions(REGION) == ()
    client, url = queue
    attributes = client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert int(attributes["ApproximateNumberOfMessages"]) + int(attributes["ApproximateNumberOfMessagesNotVisible"]) == 0


def test_warnings_when_the_queue_cannot_be_read_then_other_notices_are_still_heard(ec2, queue, driver_for):
    driver = driver_for(interruption_queue=queue[1] + "-that-is-not-there")
    driver.launch(aws.order())
    assert driver.list_interruptions(REGION) == ()


def test_calls_when_our_own_rate_is_used_up_then_nothing_is_sent_and_it_says_when(ec2, driver_for):
    driver = driver_for()
    driver.pace_with(lambda: 2.5)
    for call in (
        lambda: driver.list_nodes(REGION),
        lambda: driver.launch(aws.order()),
        lambda: driver.terminate(REGION, "i-1"),
    ):
        with pytest.raises(CloudThrottledError) as caught:
            call()
        assert caught.value.retry_after_s == 2.5
    driver.pace_with(lambda: 0.0)
    driver.list_nodes(REGION)


def test_read_warning_when_rebalance_or_through_sns_then_it_is_read():
    rebalance = read_warning(json.dumps(event("i-1", kind="EC2 Instance Rebalance Recommendation")), REGION)
    assert rebalance is not None
    assert (rebalance.kind, rebalance.takes_effect_at) == ("rebalance", None)
    wrapped = json.dumps({"Type": "Notification", "Message": json.dumps(event("i-2"))})
    assert read_warning(wrapped, REGION).provider_id == "i-2"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.one_of(
        st.text(), JSON.map(json.dumps), st.fixed_dictionaries({}, optional=dict.fromkeys(event("i-1"), JSON)).map(json.dumps)
    )
)
def test_read_warning_when_the_message_is_anything_then_a_warning_or_nothing(body):
    assert isinstance(read_warning(body, REGION), Interruption | None)


@given(JSON, st.sampled_from(sorted(event("i-1"))))
def test_read_warning_when_one_field_is_anything_then_a_warning_or_nothing(value, field):
    assert isinstance(read_warning(json.dumps({**event("i-1"), field: value}), REGION), Interruption | None)
