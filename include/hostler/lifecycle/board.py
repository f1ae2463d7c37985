"""What many waiters of one process want to know, asked once: API calls do not grow with waiters."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class _Post:
    """``asked_at``: the loop's time at which the question was put."""

    loop: asyncio.AbstractEventLoop
    asked_at: float
    answer: "asyncio.Task[Any]"


class Board:
    """Answers by question. Belongs to the process; each event loop has posts of its own. Not for use from other threads."""

    def __init__(self) -> None:
        self._posts: dict[Hashable, _Post] = {}

    async def ask(self, question: Hashable, ask: Callable[[], Awaitable[Answer]], *, max_age_s: float) -> Answer:
        """Returns an answer that is at most ``max_age_s`` old; who comes while one is being fetched waits for that one.

        An error is an answer as well: all who wait get it; the next one who comes asks anew.

        Args:
            question: equal questions share an answer. ask: fetches it.
            max_age_s: 0: never an old answer, but one that is being fetched.
        """
        loop = asyncio.get_running_loop()
        post = self._posts.get(question)
        if post is None or post.loop is not loop or self._is_stale(post, loop.time(), max_age_s):
            self._forget_old(loop, max_age_s)
            post = _Post(loop, loop.time(), loop.create_task(_fetched(ask)))
            self._posts[question] = post
        # One waiter that is cancelled must not take the answer away from the others.
        answer: Answer = await asyncio.shield(post.answer)
        return answer

    @staticmethod
    def _is_stale(post: _Post, now: float, max_age_s: float) -> bool:
        if not post.answer.done():
            return False
        return post.answer.cancelled() or post.answer.exception() is not None or now - post.asked_at >= max_age_s

    def _forget_old(self, loop: asyncio.AbstractEventLoop, max_age_s: float) -> None:
        """Drops what nobody will want any more: answers of closed loops, and those far older than anybody accepts."""
        limit = loop.time() - 10 * max(max_age_s, 60.0)
        for question, post in list(self._posts.items()):
            if post.loop is not loop or (post.answer.done() and post.asked_at < limit):
                del self._posts[question]


async def _fetched(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    return await ask()
