from decimal import Decimal, getcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.planning.overhead import HOPELESS_RATIO, best_interval_h, overhead

RATES = st.decimals(min_value="0.00001", max_value="2", places=5)
SECONDS = st.decimals(min_value=1, max_value=1200, places=0)


def expected_ratio(between_h: float, writing_h: float, restore_h: float, interval_h: float) -> float:
    """Daly's expected time for a useful hour, in floating point, as a check from outside."""
    import math

    return between_h * math.exp(restore_h / between_h) * (math.exp((interval_h + writing_h) / between_h) - 1) / interval_h


def test_overhead_when_nothing_is_ever_lost_then_no_time_is_added():
    found = overhead(Decimal(0), Decimal(60), Decimal(600))
    assert found.ratio == 1
    assert found.checkpoint_interval_s is None


def test_interval_when_losses_are_rare_then_youngs_square_root():
    # Young: sqrt(2 x 60 s x 1000 h). Daly's further terms are small here.
    interval = best_interval_h(Decimal(1000), Decimal(60) / 3600)
    assert float(interval) == pytest.approx((2 * (60 / 3600) * 1000) ** 0.5, rel=0.01)


def test_interval_when_writing_takes_longer_than_two_lives_then_a_life():
    assert best_interval_h(Decimal(1), Decimal(2)) == 1


def test_overhead_when_a_gang_loses_a_node_in_a_day_then_a_few_percent():
    # By hand: M = 24 h, delta = 1/60 h: tau = 0.8779 h; M e^(R/M) (e^((tau+delta)/M) - 1) / tau with R = 1/6 h.
    found = overhead(Decimal(1) / 24, Decimal(60), Decimal(600))
    assert float(found.ratio) == pytest.approx(
        expected_ratio(24, 1 / 60, 1 / 6, float(found.checkpoint_interval_s) / 3600), rel=1e-4
    )
    assert Decimal("1.04") < found.ratio < Decimal("1.06")


@given(RATES, SECONDS, SECONDS)
def test_overhead_when_interval_is_moved_then_it_never_gets_much_better(rate, checkpoint_s, restore_s):
    found = overhead(rate, checkpoint_s, restore_s)
    if found.ratio is None:
        return
    between, writing, restore = float(1 / rate), float(checkpoint_s) / 3600, float(restore_s) / 3600
    best = float(best_interval_h(1 / rate, checkpoint_s / 3600))
    for factor in (0.5, 0.8, 1.25, 2.0):
        assert expected_ratio(between, writing, restore, best * factor) >= float(found.ratio) * 0.995


@given(RATES, RATES, SECONDS, SECONDS)
def test_overhead_when_losses_rise_then_it_rises(one, other, checkpoint_s, restore_s):
    low, high = sorted((one, other))
    few, many = overhead(low, checkpoint_s, restore_s), overhead(high, checkpoint_s, restore_s)
    assert few.ratio is None or few.ratio >= 1
    if many.ratio is not None:
        assert few.ratio is not None
        assert few.ratio <= many.ratio * Decimal("1.000001")


def test_overhead_when_a_life_is_shorter_than_a_restart_then_hopeless():
    found = overhead(Decimal(60), Decimal(60), Decimal(3600))
    assert found.ratio is None
    assert HOPELESS_RATIO > 1


def test_overhead_when_the_callers_context_differs_then_same_digits():
    overhead.cache_clear()
    first = overhead(Decimal("0.3"), Decimal(61), Decimal(599))
    overhead.cache_clear()
    before = getcontext().prec
    getcontext().prec = 7
    try:
        assert overhead(Decimal("0.3"), Decimal(61), Decimal(599)) == first
    finally:
        getcontext().prec = before
