"""What the steps from ``plan`` to ``validate`` have in common: converge, and wait without a worker."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NoReturn

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from hostler.ledger.errors import FenceLostError, LeaseNotFoundError
from hostler.lifecycle.converge import converge
from hostler.lifecycle.outcome import Failed, Outcome, Waiting
from hostler.model.enums import Phase
from hostler_sensors.fleet_access import work
from hostler_sensors.run_identity import StepIdentity
from hostler_sensors.triggers.converge import ConvergeTrigger

WORK_BUDGET_S = 10.0
"""Waits shorter than this are waited out in the worker: a deferral costs more (6 s, see ``triggers.converge``)."""


def drive(step: StepIdentity, until: Phase, budget_s: float = WORK_BUDGET_S) -> Outcome:
    """Converges the run's lease from a worker.

    Raises:
        AirflowException: somebody else drives the lease now; this try is over without further effect, the next looks again.
        AirflowFailException: there is no such lease.
    """
    try:
        with known_lease(step.lease_id):
            return work(lambda fleet: converge(fleet, step.lease_id, until, holder=step.holder, budget_s=budget_s))
    except FenceLostError as error:
        raise AirflowException(f"lease {step.lease_id}: {error}") from error


@contextmanager
def known_lease(lease_id: str) -> Iterator[None]:
    """Fails the task at once where the lease does not exist: no retry brings it about."""
    try:
        yield
    except LeaseNotFoundError as error:
        text = f"no lease {lease_id}: admit has not run for it, or the name is wrong; `hostler status --all` lists them"
        raise AirflowFailException(text) from error


def fail(outcome: Failed) -> NoReturn:
    """Fails the task: at once when a retry would not help, else for a retry."""
    text = f"lease {outcome.lease_id}, {outcome.phase}: {outcome.reason}"
    if outcome.is_permanent:
        raise AirflowFailException(text)
    raise AirflowException(text)


class ConvergeOperator(BaseOperator):
    """Brings the run's lease to ``phase``. Idempotent: a retry, a clear or another process comes to the same place.

    It has no ``on_kill``: a killed try loses its fence to the teardown or to the next try, and can change nothing more.
    """

    phase: ClassVar[Phase]

    def execute(self, context: Any) -> dict[str, Any]:
        """Returns lease id and phase once reached; defers while the lease waits."""
        return self.go_on(context)

    def go_on(self, context: Any, event: dict[str, Any] | None = None) -> dict[str, Any]:
        """Converges (again). The event only says why: what holds is in the ledger."""
        step = StepIdentity.of(context)
        if event is not None:
            self.log.info("lease %s: %s", step.lease_id, event.get("reason"))
        outcome = drive(step, self.phase)
        if isinstance(outcome, Failed):
            fail(outcome)
        if isinstance(outcome, Waiting):
            self.log.info("lease %s waits: %s", outcome.lease_id, outcome.reason)
            trigger = ConvergeTrigger(lease_id=outcome.lease_id, phase=self.phase.value, retry_after_s=outcome.retry_after_s)
            self.defer(trigger=trigger, method_name="go_on")
        return {"lease_id": outcome.lease_id, "phase": self.phase.value}
