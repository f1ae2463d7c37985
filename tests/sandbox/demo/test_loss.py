import random
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from hostler.model.enums import JobState
from hostler_sandbox.demo.loss import Loss, NodeTaker, choose_loss, redone_steps


class Cloud:
    def __init__(self) -> None:
        self.taken: list[str] = []

    def control(self, order: str, machine_id: str) -> None:
        assert order == "reclaim"
        self.taken.append(machine_id)


def view_at(step: int, state: JobState = JobState.RUNNING) -> SimpleNamespace:
    nodes = tuple(SimpleNamespace(node_name=f"n{slot}", provider_id=f"i-{slot}", slot_index=slot) for slot in range(2))
    job = SimpleNamespace(state=state, step=step, node_names=("n0", "n1"))
    return SimpleNamespace(jobs=(job,), nodes=nodes)


@given(st.integers(), st.integers(20, 10_000), st.integers(1, 64))
def test_loss_when_chosen_then_in_the_midst_of_the_training_and_the_same_for_the_same_seed(seed, steps, nodes):
    loss = choose_loss(random.Random(seed), steps=steps, nodes=nodes)
    assert 0 < loss.step < steps * 0.75 + 1
    assert 0 <= loss.rank < nodes
    assert loss == choose_loss(random.Random(seed), steps=steps, nodes=nodes)


def test_taker_when_the_step_has_come_then_takes_that_node_once():
    cloud = Cloud()
    taker = NodeTaker(cloud, Loss(step=50, rank=1))
    assert taker.look(view_at(49)) == ""
    assert taker.look(view_at(80, JobState.STARTING)) == ""
    assert "i-1" in taker.look(view_at(51))
    assert taker.look(view_at(60)) == ""
    assert cloud.taken == ["i-1"]


def test_redone_steps_when_an_attempt_began_before_where_the_last_one_was_then_the_difference():
    jobs = [SimpleNamespace(step=183, resumed_from_step=0), SimpleNamespace(step=300, resumed_from_step=120)]
    assert redone_steps(SimpleNamespace(jobs=jobs)) == 63
    assert redone_steps(SimpleNamespace(jobs=jobs[:1])) == 0
