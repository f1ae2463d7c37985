from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler_sandbox.addresses import Addresses
from hostler_sandbox.clock import SandboxClock
from hostler_sandbox.state.faults import Faults, read_fault
from hostler_sandbox.state.pools import Pools, StockRule
from hostler_sandbox.state.prices import Prices
from hostler_sandbox.state.quotas import Quotas, bucket_of

ZONES = ("z-1a", "z-1b", "z-1c", "z-1d", "z-1e")


@given(seed=st.integers(), count=st.integers(min_value=1, max_value=5))
def test_pools_when_seeded_then_half_are_empty_one_is_left_and_a_replay_is_the_same(seed, count):
    zones = ZONES[:count]
    pools = Pools(lambda _region, _type: zones, seed)
    stocked = pools.stocked_zones("z-1", "p5.48xlarge", "spot")
    assert 1 <= len(stocked) <= max(1, count // 2)
    assert Pools(lambda _region, _type: zones, seed).stocked_zones("z-1", "p5.48xlarge", "spot") == stocked


def test_pools_when_ruled_then_the_newest_rule_counts_and_places_come_back():
    pools = Pools(lambda _region, _type: ZONES)
    key = ("z-1a", "g5.xlarge", "spot")
    pools.set(StockRule("*", "*", "spot", 0))
    assert not pools.take("z-1", key)
    pools.set(StockRule("z-1a", "*", "*", 1))
    assert pools.take("z-1", key)
    assert not pools.take("z-1", key)
    pools.give_back("z-1", key)
    assert pools.left("z-1", key) == 1
    assert pools.left("z-1", ("z-1b", "g5.xlarge", "on-demand")) is None


@pytest.mark.parametrize(
    ("name", "bucket"),
    [("p5.48xlarge", "P"), ("g6e.xlarge", "G"), ("gr6.4xlarge", "G"), ("m7i.large", "Standard"), ("u-6tb1.metal", "HighMemory")],
)  # fmt: skip
def test_bucket_when_a_type_is_named_then_its_family_counts(name, bucket):
    assert bucket_of(name) == bucket


def test_quotas_when_full_then_the_limit_is_told_and_nothing_is_counted():
    quotas = Quotas()
    quotas.set("r", "P", "spot", 200)
    assert quotas.take("r", "p5.48xlarge", "spot", 192) is None
    assert quotas.take("r", "p5.48xlarge", "spot", 192) == 200
    assert quotas.take("r", "p5.48xlarge", "on-demand", 192) is None
    quotas.give_back("r", "p5.48xlarge", "spot", 192)
    assert quotas.take("r", "p5.48xlarge", "spot", 192) is None


def test_prices_when_not_set_then_from_the_table_and_spot_below_on_demand():
    prices = Prices()
    assert prices.on_demand("p5.48xlarge", 192) == Decimal("55.04")
    spot = {prices.spot(zone, "p5.48xlarge", 192) for zone in ZONES}
    assert len(spot) > 1
    assert all(Decimal("16.5") <= price < Decimal("38.6") for price in spot)


def test_clock_when_scaled_and_pushed_then_it_runs_on_without_a_jump_back():
    real = [100.0]
    start = datetime(2026, 1, 1, tzinfo=UTC)
    clock = SandboxClock(60, start=start, monotonic=lambda: real[0])
    real[0] += 1
    assert (clock.now() - start).total_seconds() == 60
    clock.set_scale(1)
    clock.advance(40)
    real[0] += 1
    assert (clock.now() - start).total_seconds() == 101
    with pytest.raises(ValueError, match="advance_s"):
        clock.advance(-1)


def test_addresses_when_given_back_then_others_come_first():
    addresses = Addresses()
    first = addresses.take()
    addresses.give_back(first)
    assert len({first, *(addresses.take() for _ in range(1000))}) == 1001


def test_faults_when_counted_skipped_and_timed_then_met_just_so():
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    faults = Faults(lambda: now[0])
    call = {"service": "ec2", "action": "RunInstances", "region": "r", "zone": None, "instance_type": None}
    faults.add(read_fault({"kind": "throttle", "action": "RunInstances", "skip": 1, "count": 1}))
    assert [faults.take("throttle", call) is not None for _ in range(3)] == [False, True, False]
    faults.add(read_fault({"kind": "error", "count": None, "for_s": 10}))
    assert faults.take("error", call)
    now[0] = datetime(2026, 1, 1, 0, 0, 11, tzinfo=UTC)
    assert faults.take("error", call) is None
