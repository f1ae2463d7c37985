"""The seeds of the test run. ``python -m tests.sim.soak`` plays any number."""

import pytest
from tests.sim.scenario import play_seed
from tests.sim.soak import replay_command

CHUNK = 10
SEEDS = 300


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_life_in_bad_weather_when_a_seed_is_played_then_every_invariant_holds(first):
    for seed in range(first, first + CHUNK):
        try:
            play_seed(seed)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            pytest.fail(f"{error!r}; replay: {replay_command(seed)}")


def test_simulation_when_a_seed_is_played_twice_then_it_is_the_same_life():
    first, second = play_seed(7), play_seed(7)
    assert first.notes == second.notes
    assert [(e.what, e.why) for e in first.ledger.list_events(None, limit=10**6)] == [
        (e.what, e.why) for e in second.ledger.list_events(None, limit=10**6)
    ]
    assert [call.outcome for call in first.cloud.calls] == [call.outcome for call in second.cloud.calls]
