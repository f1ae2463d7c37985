"""The steps that run however the run went: back up, let go, account. They never defer: see apache/airflow#72716."""

from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from hostler.lifecycle.outcome import Failed, Waiting
from hostler.lifecycle.receipt import write_receipt
from hostler.lifecycle.release import begin_release
from hostler.model.enums import Phase
from hostler.model.lease import lease_id_for
from hostler.model.request import RunRef
from hostler_operators.converge import drive, fail, known_lease
from hostler_sensors.fleet_access import fleet
from hostler_sensors.run_identity import StepIdentity

LIFECYCLE_DAG_ID = "hostler_node_lifecycle"
BACKUP_WAIT_S = 120.0
RELEASE_WAIT_S = 240.0
"""How long one try stays; what is left then is for the next try, and in the end for hostler_fleet_reconcile."""


def let_go(step: StepIdentity, until: Phase, wait_s: float) -> None:
    """Converges within a bounded wait.

    Raises:
        AirflowException: not done yet; for a retry. AirflowFailException: it never will be.
    """
    outcome = drive(step, until, wait_s)
    if isinstance(outcome, Failed):
        fail(outcome)
    if isinstance(outcome, Waiting):
        raise AirflowException(f"lease {outcome.lease_id}: {until} is not done yet: {outcome.reason}")


class BackupLeaseOperator(BaseOperator):
    """Stops the job with a last checkpoint, ships what is missing and seals the backup."""

    def execute(self, context: Any) -> dict[str, Any]:
        """Returns the manifest's address; None when there was nothing to back up."""
        step = StepIdentity.of(context)
        let_go(step, Phase.BACKUP, BACKUP_WAIT_S)
        backups = fleet().ledger.view(step.lease_id).backups
        return {"lease_id": step.lease_id, "manifest_uri": backups[-1].manifest_uri if backups else None}


class ReleaseLeaseOperator(BaseOperator):
    """Ends the lease's machines and stays until the cloud says that they are gone.

    Args:
        lease_ref: id of the lease to release, or "". run_ref: id of the lifecycle run whose lease it is, or "".
            Without ``is_own`` one of them must be given. reason: words for the record.
        is_own: True: the lease of the run that the task is part of.
    """

    template_fields = ("lease_ref", "run_ref", "reason")

    def __init__(
        self, *, lease_ref: str = "", run_ref: str = "", reason: str = "the run has ended", is_own: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.lease_ref = lease_ref
        self.run_ref = run_ref
        self.reason = reason
        self.is_own = is_own

    def execute(self, context: Any) -> dict[str, Any]:
        """Returns the lease id once everything is gone; what is not gone in time is for a retry, then for the reconcile Dag."""
        step = StepIdentity.of(context, lease_id=self._named_lease())
        who = step.holder if self.is_own else step.user
        # First of all: nothing more may be bought, whoever still tries to.
        with known_lease(step.lease_id):
            begin_release(fleet(), step.lease_id, who=who, reason=self.reason)
        let_go(step, Phase.RELEASE, RELEASE_WAIT_S)
        return {"lease_id": step.lease_id}

    def _named_lease(self) -> str | None:
        if self.is_own:
            return None
        if bool(self.lease_ref) == bool(self.run_ref):
            raise AirflowFailException("name the lease by exactly one of: lease_id, dag_run_id")
        return self.lease_ref or lease_id_for(RunRef(dag_id=LIFECYCLE_DAG_ID, run_id=self.run_ref))


class WriteReceiptOperator(BaseOperator):
    """Writes how the run ended, from the ledger alone, then fails unless all is well: so the run's colour tells the truth."""

    def execute(self, context: Any) -> dict[str, Any]:
        """Returns cost and node hours. Raises AirflowFailException with everything that is missing."""
        step = StepIdentity.of(context)
        with known_lease(step.lease_id):
            receipt = write_receipt(fleet(), step.lease_id)
        if not receipt.is_complete:
            raise AirflowFailException(f"lease {step.lease_id}: {'; '.join(receipt.reasons)}")
        return {
            "lease_id": step.lease_id,
            "cost_usd": float(receipt.cost_usd),
            "node_hours": float(receipt.node_hours),
            "nodes_launched": receipt.nodes_launched,
            "nodes_lost": receipt.nodes_lost,
        }
