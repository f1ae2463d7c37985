"""Watches a lease for a trigger: reads only, and says when ``converge`` is worth calling again."""

from hostler.lifecycle.fleet import Fleet
from hostler.model.enums import Phase


async def watch(fleet: Fleet, lease_id: str, until: Phase, *, min_s: float, max_s: float) -> str:
    """Returns why it is time for ``converge(until)`` again, in words; never before ``min_s``, never after ``max_s``.

    Args:
        min_s: seconds, 0 or more; 6 or more behind a worker's deferral (see ``dag-shape``: apache/airflow#72716).
        max_s: seconds, above ``min_s``; keep it at 300 or less: a lease that nobody drives for 900 s counts as unattended.

    Raises:
        LeaseNotFoundError: no such lease. LedgerUnavailableError: yield nothing and fail the trigger; the step is retried.
    """
    raise NotImplementedError
