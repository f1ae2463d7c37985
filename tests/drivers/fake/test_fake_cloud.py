"""The fake obeys the port's contract, so that what is proved on it means something."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hostler.cloud.driver import CloudDriver, LaunchOrder, MachineState, OfferingQuery, SupportsForeignView
from hostler.cloud.errors import (
    AlreadyExistsError,
    AnswerLostError,
    CloudAuthError,
    CloudConfigError,
    InsufficientCapacityError,
    NodeNotFoundError,
    QuotaExceededError,
    TeardownRefusedError,
)
from hostler.cloud.registry import load_driver
from hostler.cloud.tags import DEPLOYMENT
from hostler.drivers.fake.cloud import FakeCloud, Fault
from hostler.drivers.fake.driver import FakeDriver
from hostler.model.enums import CapacityType


class Clock:
    def __init__(self):
        self.now = datetime(2027, 1, 1, tzinfo=UTC)

    def __call__(self):
        return self.now

    def pass_s(self, seconds):
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def cloud(clock):
    return FakeCloud(clock=clock)


@pytest.fixture
def driver(cloud):
    return FakeDriver(deployment="mine", cloud=cloud)


def offering(driver, zone="fake-north-a", kind=CapacityType.SPOT):
    query = OfferingQuery(accelerator="H100", accelerators_per_node=8, capacity_types=tuple(CapacityType))
    return next(o for o in driver.list_offerings(query) if o.zone == zone and o.capacity_type is kind)


def order(driver, token="t1", **changes):  # noqa: S107 - an idempotency token, no secret
    return LaunchOrder(
        name="n", client_token=token, offering=offering(driver, **changes), tags={DEPLOYMENT: "mine"}, user_data="x"
    )


def test_driver_when_asked_what_it_is_then_it_is_a_cloud_driver_and_an_installed_one(driver):
    checked: CloudDriver = driver
    assert isinstance(checked, SupportsForeignView)
    assert load_driver("fake")(deployment="d", settings=None, sessions=None).name == "fake"


def test_machine_when_time_passes_then_it_is_pending_running_terminating_terminated_and_no_more(driver, clock):
    machine = driver.launch(order(driver))
    assert (machine.state, machine.address) == (MachineState.PENDING, None)
    clock.pass_s(20)
    assert driver.get_node("fake-north", machine.provider_id).state is MachineState.RUNNING
    driver.terminate("fake-north", machine.provider_id)
    driver.terminate("fake-north", machine.provider_id)
    assert driver.get_node("fake-north", machine.provider_id).state is MachineState.TERMINATING
    clock.pass_s(15)
    ended = driver.get_node("fake-north", machine.provider_id)
    assert (ended.state, ended.ended_at) == (MachineState.TERMINATED, clock.now)
    with pytest.raises(NodeNotFoundError):
        driver.terminate("fake-north", machine.provider_id)
    clock.pass_s(3600)
    with pytest.raises(NodeNotFoundError):
        driver.get_node("fake-north", machine.provider_id)


def test_token_when_used_again_then_it_means_what_it_means_on_the_real_cloud(driver, clock):
    first = driver.launch(order(driver))
    assert driver.launch(order(driver)).provider_id == first.provider_id
    assert driver.launch(order(driver, zone="fake-north-b")).provider_id != first.provider_id
    with pytest.raises(AlreadyExistsError) as caught:
        driver.launch(replace(order(driver), user_data="y"))
    assert caught.value.code == "IdempotentParameterMismatch"
    driver.terminate("fake-north", first.provider_id)
    with pytest.raises(AlreadyExistsError) as caught:
        driver.launch(order(driver))
    assert caught.value.code == "IdempotentInstanceTerminated"


def test_stock_and_quota_when_used_up_then_the_drawn_errors_say_so_and_an_end_frees_them(driver, cloud, clock):
    cloud.stock["fake-north-a", "fake.8xh100", CapacityType.SPOT] = 1
    first = driver.launch(order(driver))
    with pytest.raises(InsufficientCapacityError):
        driver.launch(order(driver, "t2"))
    driver.terminate("fake-north", first.provider_id)
    clock.pass_s(15)
    driver.launch(order(driver, "t3"))
    cloud.quotas["fake-north", CapacityType.ON_DEMAND] = 191
    with pytest.raises(QuotaExceededError) as caught:
        driver.launch(order(driver, "t4", kind=CapacityType.ON_DEMAND))
    assert caught.value.unit == "vCPU"


def test_list_when_a_machine_is_young_then_it_lags_and_only_ours_are_shown(cloud, clock):
    cloud.list_lag_s = 5
    driver = FakeDriver(deployment="mine", cloud=cloud)
    machine = driver.launch(order(driver))
    foreign = cloud.put_machine({DEPLOYMENT: "theirs"})
    assert driver.list_nodes("fake-north") == ()
    with pytest.raises(NodeNotFoundError):
        driver.get_node("fake-north", machine.provider_id)
    clock.pass_s(5)
    assert [m.provider_id for m in driver.list_nodes("fake-north")] == [machine.provider_id]
    assert driver.list_nodes("fake-north", {DEPLOYMENT: "mine", "x": "y"}) == ()
    assert [m.provider_id for m in driver.list_foreign("fake-north")] == [foreign.provider_id]
    with pytest.raises(NodeNotFoundError):
        driver.terminate("fake-north", foreign.provider_id)


def test_faults_when_ordered_then_they_strike_before_after_or_late(driver, cloud, clock):
    cloud.order_fault("launch", Fault(error=AnswerLostError("a")), Fault(error=AnswerLostError("b"), when="after"))
    for token, made in (("t1", 0), ("t2", 1)):
        with pytest.raises(AnswerLostError):
            driver.launch(order(driver, token))
        assert len(cloud.machines) == made
    cloud.order_fault("launch", Fault(error=CloudConfigError("no"), when="late", late_s=30))
    with pytest.raises(CloudConfigError):
        driver.launch(order(driver, "t3"))
    assert len(driver.list_nodes("fake-north")) == 1
    clock.pass_s(31)
    assert len(driver.list_nodes("fake-north")) == 2
    assert [call.outcome for call in cloud.calls if call.name == "launch"] == [
        "AnswerLostError",
        "AnswerLostError",
        "CloudConfigError",
    ]


def test_denial_and_refusal_when_set_then_nothing_happens(driver, cloud, clock):
    machine = driver.launch(order(driver))
    cloud.refuses_end_until = clock.now + timedelta(hours=1)
    with pytest.raises(TeardownRefusedError):
        driver.terminate("fake-north", machine.provider_id)
    cloud.denied = {"terminate"}
    with pytest.raises(CloudAuthError):
        driver.terminate("fake-north", machine.provider_id)
    assert cloud.live()
    with pytest.raises(CloudConfigError):
        driver.launch(replace(order(driver), offering=replace(offering(driver), zone="nowhere")))
