"""The first step: checks the request, writes the lease, buys nothing."""

from collections.abc import Mapping
from typing import Any

from hostler.lifecycle.fleet import Fleet
from hostler.model.lease import Lease
from hostler.model.request import RunRef


class RequestRefusedError(ValueError):
    """The request cannot be served as asked: correct the fields and trigger a new run. Nothing was bought.

    Attributes:
        problems: (field, message) pairs; each message says what is allowed.
    """

    def __init__(self, problems: tuple[tuple[str, str], ...]) -> None:
        super().__init__("; ".join(f"{field}: {message}" for field, message in problems))
        self.problems = problems


def admit(fleet: Fleet, run: RunRef, conf: Mapping[str, Any], *, who: str) -> Lease:
    """Checks ``conf`` whole, then writes the run's lease (state ``requested``) with its data key; buys nothing.

    Idempotent on ``run``: a second call returns the same lease whatever its state; an ended lease stays ended.

    Args:
        conf: the Dag run's conf: fields of ``hostler.model.request_schema.REQUEST_FIELDS``; missing ones take their default.

    Raises:
        RequestRefusedError: permanent. The refusal is written to the ledger as an event ``request.refused``.
        KeyServiceError, LedgerUnavailableError: try again; nothing was written.
    """
    raise NotImplementedError
