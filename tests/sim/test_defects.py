"""Shows that the simulator can fail: each seeded defect is caught within a few seeds."""

import pytest
from tests.sim.defects import DEFECTS
from tests.sim.invariants import BrokenError
from tests.sim.scenario import play_seed

MOST_SEEDS = 120


@pytest.mark.parametrize("name", DEFECTS)
def test_simulator_when_a_defect_is_seeded_then_it_is_caught(name):
    with DEFECTS[name]() as changes:
        for seed in range(MOST_SEEDS):
            try:
                play_seed(seed, **changes)
            except (BrokenError, AssertionError):
                return
    pytest.fail(f"{MOST_SEEDS} seeds did not show the defect: {name}")
