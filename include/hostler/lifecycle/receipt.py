"""The receipt: how the run ended and what it cost, from the ledger alone."""

from hostler.lifecycle.fleet import Fleet
from hostler.model.lease import Receipt


def write_receipt(fleet: Fleet, lease_id: str) -> Receipt:
    """Writes (or renews) the receipt and returns it; ``reasons`` names everything that is missing when it is not complete.

    Complete: the job succeeded, the backup is sealed and verified, the cloud said of every node that it is gone, no intent is
    unresolved, and the lease is released. A complete receipt is not written again.

    Raises:
        LeaseNotFoundError: no such lease.
    """
    raise NotImplementedError
