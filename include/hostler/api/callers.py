"""Who asks, and what that caller may see. Each host of the page brings its own ``Door``: Airflow's login, or a token."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request


class NotSignedInError(Exception):
    """The request carries no credentials that hold: 401, and nothing else is said. The text is shown to the caller."""


class NotAllowedError(Exception):
    """The caller is known and may not look at Dags: 403. The text is shown to the caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Somebody who may look.

    Attributes:
        name: for messages.
        readable: from Dag ids to those whose leases this caller may see; may block, so it is called in a thread.
    """

    name: str
    readable: Callable[[frozenset[str]], frozenset[str]]


class Door(Protocol):
    """Decides about each request before any route is looked up.

    Attributes:
        challenge: value of ``WWW-Authenticate`` on every 401.
    """

    challenge: str

    async def admit(self, request: Request) -> Caller:
        """Returns the caller. Must not block the loop.

        Raises:
            NotSignedInError: answered with 401. NotAllowedError: answered with 403.
        """
        ...


def read_all(dag_ids: frozenset[str]) -> frozenset[str]:
    """Returns all of them: for a caller who may see every lease."""
    return dag_ids
