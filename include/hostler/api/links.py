"""Where a lease's run and its logs are in Airflow's UI."""

from dataclasses import dataclass
from urllib.parse import quote

from hostler.model.enums import LeaseState, Phase
from hostler.model.lease import Lease

_NEXT = dict(zip((None, *Phase), (*Phase, None), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class AirflowLinks:
    """Makes addresses from ids alone.

    Attributes:
        base: address of the UI, or its path on the page's own host, without a slash at the end; None: there is no Airflow to
            link to, and every link is None.
    """

    base: str | None

    def run(self, lease: Lease) -> str | None:
        """Returns the page of the lease's Dag run."""
        if self.base is None:
            return None
        return f"{self.base}/dags/{quote(lease.run.dag_id, safe='')}/runs/{quote(lease.run.run_id, safe='')}"

    def task(self, lease: Lease, phase: Phase) -> str | None:
        """Returns the page of the task of a phase, which opens with its log."""
        run = self.run(lease)
        return None if run is None else f"{run}/tasks/{phase.value}"


def phase_now(lease: Lease) -> Phase:
    """Returns the step that a lease is in: what follows the last one done; ``release`` while it drains, ``receipt`` after."""
    if lease.state is LeaseState.RELEASED:
        return Phase.RECEIPT
    if lease.state is LeaseState.DRAINING:
        return Phase.RELEASE
    reached = None if lease.reached is None else Phase(lease.reached)
    return _NEXT[reached] or Phase.RECEIPT
