"""Runs the workload to its end, without holding a worker."""

from datetime import timedelta
from typing import Any

from airflow.sdk import BaseOperator
from airflow.triggers.base import BaseTrigger, StartTriggerArgs

from hostler.lifecycle.outcome import Failed, Waiting
from hostler.model.enums import Phase
from hostler.model.lease import LeaseView
from hostler_operators.converge import drive, fail
from hostler_sensors.fleet_access import fleet
from hostler_sensors.run_identity import StepIdentity
from hostler_sensors.triggers.converge import ConvergeTrigger
from hostler_sensors.triggers.run import RunTrigger, missing_nodes

LONGEST = timedelta(days=7)
"""A trigger that is lost is noticed after this; the retry re-attaches. Deadlines of the request are kept in the ledger."""


def numbers_of(view: LeaseView) -> dict[str, Any]:
    """Returns the few numbers of the last job that go into XCom."""
    job = view.jobs[-1]
    return {"lease_id": view.lease.lease_id, "attempt": job.attempt, "step": job.step, **dict(job.metrics)}


class RunWorkloadOperator(BaseOperator):
    """Starts the job, or re-attaches to it, and follows it until it ends; replaces nodes that are lost on the way.

    It enters by ``start_from_trigger``: a worker that defers can be hit by apache/airflow#72716. The trigger needs the run's
    names, so they are template fields here, under the names that they have there.
    """

    template_fields = ("lease_dag_id", "lease_run_id", "attempt")
    start_from_trigger = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.lease_dag_id = "{{ ti.dag_id }}"
        self.lease_run_id = "{{ ti.run_id }}"
        self.attempt = "{{ ti.try_number }}"
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls="hostler_sensors.triggers.run.RunTrigger",
            trigger_kwargs={
                "lease_dag_id": self.lease_dag_id,
                "lease_run_id": self.lease_run_id,
                "attempt": self.attempt,
                "quiet_s": 0.0,
            },
            next_method="go_on",
            timeout=LONGEST,
        )

    def execute(self, context: Any) -> dict[str, Any]:
        """Is what ``start_from_trigger`` leaves out; the same as ``go_on``, for ``dag.test()``."""
        return self.go_on(context)

    def go_on(self, context: Any, event: dict[str, Any] | None = None) -> dict[str, Any]:
        """Converges in the worker: returns the job's numbers once it has ended, else fills what is missing and defers again."""
        step = StepIdentity.of(context)
        self.log.info("lease %s: %s", step.lease_id, (event or {}).get("reason", "no event"))
        outcome = drive(step, Phase.RUN)
        if isinstance(outcome, Failed):
            fail(outcome)
        if isinstance(outcome, Waiting):
            self.log.info("lease %s waits: %s", outcome.lease_id, outcome.reason)
            self.defer(trigger=self._next_trigger(context, outcome), method_name="go_on", timeout=LONGEST)
        return numbers_of(fleet().ledger.view(step.lease_id))

    def _next_trigger(self, context: Any, wait: Waiting) -> BaseTrigger:
        """Returns who watches meanwhile: the job's trigger, or, while nodes are being replaced, the lease's."""
        if missing_nodes(fleet().ledger.view(wait.lease_id)):
            return ConvergeTrigger(lease_id=wait.lease_id, phase=Phase.RUN.value, retry_after_s=wait.retry_after_s)
        instance = context["ti"]
        return RunTrigger(lease_dag_id=instance.dag_id, lease_run_id=instance.run_id, attempt=str(instance.try_number))
