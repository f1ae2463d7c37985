import time

import botocore.exceptions
import pytest
from tests.sandbox.aws.test_launch import refused


def test_throttle_when_two_then_the_sdk_gets_through_at_the_third(rig):
    rig.post("fault", kind="throttle", action="DescribeInstances", count=2)
    with refused("RequestLimitExceeded"):
        rig.ec2.describe_instances()
    rig.client("ec2", attempts=3).describe_instances()


def test_unauthorized_when_describe_is_denied_then_create_still_works(rig):
    rig.post("fault", kind="unauthorized", action="DescribeInstances", count=None)
    one = rig.run_one()
    with refused("UnauthorizedOperation"):
        rig.show(one)
    rig.post("clear-faults")
    rig.show(one)


@pytest.mark.parametrize("mode", ["cut", "empty"])
def test_answer_lost_when_launching_then_the_machine_is_there_and_the_token_finds_it(rig, mode):
    rig.post("fault", kind="answer_lost", action="RunInstances", mode=mode)
    with pytest.raises((botocore.exceptions.ClientError, botocore.exceptions.ConnectionClosedError)):
        rig.run(ClientToken=f"lost-{mode}")
    alive = [machine.machine_id for machine in rig.sandbox.estate.alive()]
    assert len(alive) == 1
    assert rig.run_one(ClientToken=f"lost-{mode}") == alive[0]


def test_late_create_when_refused_then_comes_up_all_the_same(rig):
    rig.post("fault", kind="late_create", action="RunInstances", delay_s=30, code="InternalError", status=500)
    with refused("InternalError"):
        rig.run(ClientToken="late")
    named = [{"Name": "client-token", "Values": ["late"]}]
    assert rig.ec2.describe_instances(Filters=named)["Reservations"] == []
    rig.pass_s(31)
    found = rig.ec2.describe_instances(Filters=named)["Reservations"][0]["Instances"][0]
    assert found["State"]["Name"] == "running"


def test_capacity_fault_when_for_one_zone_then_others_work_and_the_pool_is_untouched(rig):
    rig.post("fault", kind="capacity", zone="us-east-1a")
    with refused("InsufficientInstanceCapacity"):
        rig.run()
    assert rig.run("us-east-1a")["Instances"]


def test_terminate_when_it_fails_for_an_hour_then_the_machine_runs_on(rig):
    one = rig.run_one()
    rig.post("fault", kind="error", action="TerminateInstances", code="InternalError", status=500, count=None, for_s=3600)
    rig.pass_s(1)
    with refused("InternalError"):
        rig.ec2.terminate_instances(InstanceIds=[one])
    assert rig.state(one) == "running"
    rig.pass_s(3601)
    rig.ec2.terminate_instances(InstanceIds=[one])


def test_boot_failure_when_it_ends_then_terminated_with_the_clouds_reason(rig):
    rig.post("fault", kind="boot_failure", mode="ends")
    one = rig.run_one()
    rig.pass_s(1)
    rig.pass_s(1)
    assert rig.show(one)["StateReason"]["Code"] == "Server.InternalError"


def test_boot_failure_when_no_ssh_then_running_but_impaired(rig):
    rig.post("fault", kind="boot_failure")
    one = rig.run_one()
    rig.pass_s(1)
    rig.pass_s(60)
    status = rig.ec2.describe_instance_status(InstanceIds=[one])["InstanceStatuses"][0]
    assert status["InstanceStatus"]["Status"] == "impaired"
    assert wait_for_spec(rig, one).boot_fails


def wait_for_spec(rig, instance_id):
    end = time.monotonic() + 5
    while instance_id not in rig.sandbox.runtime.alive and time.monotonic() < end:
        rig.sandbox.clock.advance(1)
    return rig.sandbox.runtime.alive[instance_id]


def test_slow_when_asked_then_the_answer_takes_that_long(rig):
    rig.post("fault", kind="slow", action="DescribeInstances", delay_s=0.3)
    began = time.monotonic()
    rig.ec2.describe_instances()
    assert time.monotonic() - began >= 0.3


def test_interruption_when_noticed_then_marked_shown_on_the_node_and_taken_after_two_minutes(rig):
    one = rig.run_one(spot=True)
    rig.pass_s(1)
    wait_for_spec(rig, one)
    rig.post("interrupt", machine_id=one)
    request = rig.ec2.describe_spot_instance_requests()["SpotInstanceRequests"][-1]
    assert (request["InstanceId"], request["Status"]["Code"]) == (one, "marked-for-termination")
    assert '"action": "terminate"' in rig.sandbox.runtime.metadata[one, "spot/instance-action"]
    assert rig.state(one) == "running"
    events = rig.control("journal?kind=bus")[1]["entries"]
    assert events[-1]["detail_type"] == "EC2 Spot Instance Interruption Warning"
    rig.pass_s(121)
    rig.pass_s(1)
    shown = rig.show(one)
    assert (shown["State"]["Name"], shown["StateReason"]["Code"]) == ("terminated", "Server.SpotInstanceTermination")
    request = rig.ec2.describe_spot_instance_requests()["SpotInstanceRequests"][-1]
    assert (request["State"], request["Status"]["Code"]) == ("closed", "instance-terminated-no-capacity")


def test_price_when_it_rises_above_the_most_one_would_pay_then_taken_by_price(rig):
    cheap = {"MarketType": "spot", "SpotOptions": {"MaxPrice": "40"}}
    one = rig.run_one(InstanceMarketOptions=cheap)
    assert rig.post("price", zone="us-east-1a", instance_type="p5.48xlarge", usd_per_hour=41)["marked"] == [one]
    rig.pass_s(121)
    rig.pass_s(1)
    request = rig.ec2.describe_spot_instance_requests(SpotInstanceRequestIds=[rig.show(one)["SpotInstanceRequestId"]])
    assert request["SpotInstanceRequests"][0]["Status"]["Code"] == "instance-terminated-by-price"


def test_figures_when_a_run_had_refusals_and_a_loss_then_counted(rig):
    before = rig.control("figures")[1]
    rig.post("stock", zone="us-east-1a", count=0)
    with refused("InsufficientInstanceCapacity"):
        rig.run(spot=True)
    one = rig.run_one("us-east-1b", spot=True)
    rig.pass_s(1)
    rig.post("reclaim", machine_id=one)
    rig.pass_s(1)
    rig.ec2.describe_instances()
    after = rig.control("figures")[1]
    grown = {name: after[name] - before[name] for name in ("refusals", "nodes_launched", "nodes_lost")}
    assert grown == {"refusals": 1, "nodes_launched": 1, "nodes_lost": 1}
    assert after["live_nodes"] == 0


def test_node_fault_when_given_then_the_runtime_is_told_and_bad_ones_name_the_field(rig):
    one = rig.run_one()
    rig.pass_s(1)
    wait_for_spec(rig, one)
    rig.post("node-fault", machine_id=one, kind="freeze")
    rig.post("node-fault", machine_id=one, kind="gpu", fault={"kind": "xid", "xid": 79, "gpu": 3})
    assert ("gpu_fault:xid", one) in rig.sandbox.runtime.calls
    status, reply = rig.control("node-fault", {"machine_id": one, "kind": "melt"})
    assert (status, "allowed: freeze" in reply["error"]) == (400, True)


@pytest.mark.parametrize(
    ("name", "body", "word"),
    [
        ("stock", {"count": -1}, "count"),
        ("stock", {"count": 1, "capacity_type": "free"}, "allowed: on-demand"),
        ("stock", {"count": 1, "colour": "red"}, "colour: unknown"),
        ("stock", {}, "count: missing"),
        ("quota", {"region": "us-east-1", "family": "Q", "vcpus": 1}, "family"),
        ("price", {"instance_type": "g5.xlarge", "usd_per_hour": "NaN"}, "usd_per_hour"),
        ("fault", {"kind": "flood"}, "allowed: throttle"),
        ("fault", {"kind": "throttle", "rate": 2}, "rate"),
        ("clock", {"scale": 0}, "scale"),
        ("interrupt", {}, "machine_id: missing"),
    ],
)
def test_control_when_wrong_then_400_names_the_field(rig, name, body, word):
    status, reply = rig.control(name, body)
    assert status == 400
    assert word in reply["error"]


def test_control_when_the_thing_does_not_exist_then_404(rig):
    assert rig.control("interrupt", {"machine_id": "i-0"})[0] == 404
    assert rig.control("nosuch", {})[0] == 404


def test_journal_when_called_then_every_wire_call_with_token_and_agent(rig):
    seq = rig.control("journal")[1]["last_sequence"]
    one = rig.run_one(ClientToken="seen")
    entries = rig.control(f"journal?after={seq}&kind=wire")[1]["entries"]
    call = next(entry for entry in entries if entry["action"] == "RunInstances")
    assert (call["client_token"], call["machine_ids"], call["status"], call["zone"]) == ("seen", [one], 200, "us-east-1a")
    assert "Boto3" in call["user_agent"]
