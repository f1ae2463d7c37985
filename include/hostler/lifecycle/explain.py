"""Says in plain words what a lease is doing, what it waits for, why it ended and what it costs."""

from collections.abc import Sequence

from hostler.model.lease import Event, LeaseView


def why(view: LeaseView, events: Sequence[Event]) -> str:
    """Returns a few lines for a person, the most important first. ``events``: the lease's own, oldest first; may be empty."""
    raise NotImplementedError
