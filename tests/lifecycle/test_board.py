import asyncio

import pytest
from tests.fake_world import make_world

from hostler.lifecycle.board import Board
from hostler.lifecycle.worth import worth_trying
from hostler.model.enums import CapacityType
from hostler.model.request import NodeRequest


class Source:
    """Answers with the number of times it was asked, once it may."""

    def __init__(self) -> None:
        self.calls = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self) -> int:
        self.calls += 1
        call = self.calls
        await self.may_answer.wait()
        return call


async def test_question_when_asked_by_many_at_once_then_put_once():
    board, source = Board(), Source()
    assert await asyncio.gather(*(board.ask("x", source, max_age_s=0) for _ in range(100))) == [1] * 100
    assert source.calls == 1


async def test_question_when_the_answer_is_young_then_it_is_used_and_when_it_is_old_then_asked_anew():
    board, source = Board(), Source()
    assert await board.ask("x", source, max_age_s=60) == 1
    assert await board.ask("x", source, max_age_s=60) == 1
    assert await board.ask("x", source, max_age_s=0) == 2
    assert await board.ask("y", source, max_age_s=60) == 3, "another question has another answer"


async def test_question_when_it_fails_then_all_who_wait_hear_it_and_the_next_asks_anew():
    board = Board()

    async def broken():
        raise RuntimeError("the cloud is away")

    answers = await asyncio.gather(*(board.ask("x", broken, max_age_s=60) for _ in range(3)), return_exceptions=True)
    assert [str(answer) for answer in answers] == ["the cloud is away"] * 3
    assert await board.ask("x", Source(), max_age_s=60) == 1


async def test_question_when_one_waiter_is_cancelled_then_the_others_get_their_answer():
    board, source = Board(), Source()
    source.may_answer.clear()
    first, second = (asyncio.create_task(board.ask("x", source, max_age_s=0)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    source.may_answer.set()
    assert await second == 1


def test_board_when_used_from_one_loop_after_another_then_nothing_of_the_first_is_waited_for():
    board, source = Board(), None

    async def ask():
        return await board.ask("x", source, max_age_s=1000)

    for _ in range(2):
        source = Source()
        assert asyncio.run(ask()) == 1


REQUEST = NodeRequest(
    tenant="default",
    accelerator="H100",
    accelerators_per_node=8,
    node_count=1,
    capacity_types=(CapacityType.SPOT,),
    max_cost_usd=10,
)


class CountingDriver:
    def __init__(self, driver) -> None:
        self._driver = driver
        self.calls = 0

    def __getattr__(self, name):
        return getattr(self._driver, name)

    def list_offerings(self, query):
        self.calls += 1
        return self._driver.list_offerings(query)


@pytest.mark.parametrize("waiters", [1, 1000])
async def test_waiters_when_they_are_a_thousand_then_the_cloud_is_asked_no_more_often_than_by_one(waiters):
    world = make_world()
    drivers = {name: CountingDriver(driver) for name, driver in world.fleet.drivers.items()}
    object.__setattr__(world.fleet, "drivers", drivers)
    for _round in range(3):
        answers = await asyncio.gather(*(worth_trying(world.fleet, REQUEST, max_age_s=60) for _ in range(waiters)))
        assert len({answer.reasons for answer in answers}) == 1
    assert {driver.calls for driver in drivers.values()} == {1}


async def test_board_when_asked_a_million_different_questions_then_does_not_keep_them_for_ever(monkeypatch):
    board, source = Board(), Source()
    loop = asyncio.get_running_loop()
    now = loop.time()
    for number in range(3000):
        monkeypatch.setattr(loop, "time", lambda number=number: now + number)
        await board.ask(number, source, max_age_s=1)
    assert len(board._posts) <= 601
