"""The setup of the run: checks the request and writes the lease."""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from hostler.lifecycle.admit import RequestRefusedError, admit
from hostler_operators.settings import unfit_database
from hostler_sensors.fleet_access import fleet
from hostler_sensors.run_identity import StepIdentity


class AdmitRequestOperator(BaseOperator):
    """Checks the whole request, writes the lease under the run's id, buys nothing. Idempotent: every clear runs it again."""

    def execute(self, context: Any) -> dict[str, Any]:
        """Returns the lease id. Raises AirflowFailException naming each refused field and what is allowed."""
        if reason := unfit_database():
            raise AirflowFailException(f"request refused, nothing was bought: {reason}")
        step = StepIdentity.of(context)
        # Params hold the defaults; conf may hold keys that are no Params, which Airflow lets pass and admit refuses.
        conf: Mapping[str, Any] = {**dict(context["params"]), **(context["dag_run"].conf or {})}
        try:
            lease = admit(fleet(), step.run, conf, who=step.user)
        except RequestRefusedError as error:
            raise AirflowFailException(f"request refused, nothing was bought: {error}") from error
        self.log.info("lease %s is %s; follow it with: hostler why %s", lease.lease_id, lease.state, lease.lease_id)
        return {"lease_id": lease.lease_id}
