"""The one transition table of leases and nodes; one test walks every pair."""

from hostler.model.enums import LeaseState as L
from hostler.model.enums import NodeState as N

LEASE_MOVES: dict[L, frozenset[L]] = {
    L.REQUESTED: frozenset({L.GRANTED, L.DRAINING, L.EXPIRED}),
    L.GRANTED: frozenset({L.ACTIVE, L.DRAINING, L.EXPIRED, L.LOST}),
    L.ACTIVE: frozenset({L.DRAINING, L.UNATTENDED, L.EXPIRED, L.LOST}),
    L.UNATTENDED: frozenset({L.ACTIVE, L.DRAINING, L.EXPIRED, L.LOST}),
    L.EXPIRED: frozenset({L.DRAINING}),
    L.LOST: frozenset({L.DRAINING}),
    L.DRAINING: frozenset({L.RELEASED}),
    L.RELEASED: frozenset(),
}
"""From each lease state, where it may go. Every way out of money ends in ``draining``, then ``released``."""

NODE_MOVES: dict[N, frozenset[N]] = {
    N.LAUNCHED: frozenset({N.REGISTERED, N.UNREACHABLE, N.STOPPING, N.STOPPED, N.TERMINATING, N.GONE}),
    N.REGISTERED: frozenset({N.INITIALIZED, N.UNREACHABLE, N.STOPPING, N.STOPPED, N.TERMINATING, N.GONE}),
    N.INITIALIZED: frozenset({N.REGISTERED, N.UNREACHABLE, N.STOPPING, N.STOPPED, N.TERMINATING, N.GONE}),
    N.UNREACHABLE: frozenset({N.REGISTERED, N.INITIALIZED, N.STOPPING, N.STOPPED, N.TERMINATING, N.GONE}),
    N.STOPPING: frozenset({N.STOPPED, N.TERMINATING, N.GONE}),
    N.STOPPED: frozenset({N.LAUNCHED, N.TERMINATING, N.GONE}),
    N.TERMINATING: frozenset({N.GONE}),
    N.GONE: frozenset(),
}
"""From each node state, where it may go. ``gone`` is final and comes only from the cloud's word."""


class IllegalTransitionError(ValueError):
    """A record was asked to move where the table has no way. A defect of the caller: nothing was written."""


def check_lease_move(before: L, after: L) -> None:
    """Raises IllegalTransitionError unless ``before`` may become ``after``; staying is always allowed."""
    if before != after and after not in LEASE_MOVES[before]:
        raise IllegalTransitionError(f"lease: {before} cannot become {after}")


def check_node_move(before: N, after: N) -> None:
    """Raises IllegalTransitionError unless ``before`` may become ``after``; staying is always allowed."""
    if before != after and after not in NODE_MOVES[before]:
        raise IllegalTransitionError(f"node: {before} cannot become {after}")
