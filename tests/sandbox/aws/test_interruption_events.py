"""Interruption warnings go over the account's event bus, to whatever rules send them on to."""

import json

from hostler.drivers.aws.warnings_queue import read_warning


def test_interrupt_when_a_rule_sends_warnings_to_a_queue_then_the_warning_is_there(rig):
    sqs, events = rig.client("sqs"), rig.client("events")
    url = sqs.create_queue(QueueName="warnings")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    pattern = {"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]}
    events.put_rule(Name="warnings", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="warnings", Targets=[{"Id": "1", "Arn": arn}])
    one = rig.run_one("us-east-1a", "g6.xlarge", spot=True)
    rig.pass_s(1)
    rig.post("interrupt", machine_id=one, kind="rebalance")
    rig.post("interrupt", machine_id=one, notice_s=120)
    (message,) = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    warning = read_warning(message["Body"], "us-east-1")
    assert (warning.provider_id, warning.kind) == (one, "interruption")
