"""Letting go: ``draining`` under the lease's fence, every machine ended and confirmed by the cloud, then ``released``."""

from hostler.lifecycle.fleet import Fleet
from hostler.model.lease import Lease


def begin_release(fleet: Fleet, lease_id: str, *, who: str, reason: str) -> Lease:
    """Takes the fence and sets the lease ``draining``: from now on nothing more is bought for it. Ends no machine by itself.

    Then call ``converge(until=Phase.RELEASE)``. Idempotent: the first reason is kept; a released lease is returned as it is.

    Args:
        who: person or step, for the record. reason: words for a person.

    Raises:
        LeaseNotFoundError: no such lease.
    """
    raise NotImplementedError
