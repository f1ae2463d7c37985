"""Links on the steps: to the lease's story, its nodes and its backup. Made from ids alone: no network, no ledger, no database.

Airflow asks for them in its API server, where no operator has run.
"""

from typing import Any, ClassVar
from urllib.parse import quote

from airflow.sdk import BaseOperator, BaseOperatorLink, conf

from hostler.model.lease import lease_id_for
from hostler.model.request import RunRef
from hostler_operators.admit import AdmitRequestOperator
from hostler_operators.prices import RefreshPricesOperator
from hostler_operators.run import RunWorkloadOperator
from hostler_operators.scale_down import ScaleDownOperator
from hostler_operators.steps import LaunchNodesOperator, SetupNodesOperator, ValidateNodesOperator
from hostler_operators.sweep import SweepCostsOperator
from hostler_operators.teardowns import BackupLeaseOperator, ReleaseLeaseOperator, WriteReceiptOperator


class LeaseLink(BaseOperatorLink):
    """To the run's receipt, whose log tells how the lease ended and what is missing."""

    name = "Lease"
    operators: ClassVar[list[type[BaseOperator]]] = [AdmitRequestOperator, RunWorkloadOperator, ReleaseLeaseOperator]

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """Returns the page of the run's receipt."""
        return task_page(ti_key, "receipt")


class NodesLink(BaseOperatorLink):
    """To the machines of the lease in the cloud's own console, found by their tag; AWS only so far."""

    name = "Nodes"
    operators: ClassVar[list[type[BaseOperator]]] = [LaunchNodesOperator, SetupNodesOperator, ValidateNodesOperator]

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """Returns the console's list, all regions, of what carries the lease's tag."""
        lease_id = lease_id_for(RunRef(dag_id=ti_key.dag_id, run_id=ti_key.run_id))
        return f"https://console.aws.amazon.com/ec2globalview/home#Instances:tag:hostler:lease={lease_id}"


class BackupLink(BaseOperatorLink):
    """To what the backup step returned: the manifest's address."""

    name = "Backup"
    operators: ClassVar[list[type[BaseOperator]]] = [BackupLeaseOperator, WriteReceiptOperator]

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """Returns the page that shows the address."""
        return f"{task_page(ti_key, 'backup')}/xcom"


class PriceReportLink(BaseOperatorLink):
    """To what a refresh of prices pushed: verdict and report of each cloud, also when the task failed."""

    name = "Price reports"
    operators: ClassVar[list[type[BaseOperator]]] = [RefreshPricesOperator]

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """Returns the page that shows the addresses."""
        return f"{task_page(ti_key, 'refresh')}/xcom"


class ChecksLink(BaseOperatorLink):
    """To what a guarded housekeeping task pushed: the address of its checks' data docs, also when the task failed."""

    name = "Checks"
    operators: ClassVar[list[type[BaseOperator]]] = [ScaleDownOperator, SweepCostsOperator]

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """Returns the page that shows the address."""
        return f"{task_page(ti_key, operator.task_id)}/xcom"


def task_page(ti_key: Any, task_id: str) -> str:
    """Returns the page of a task of the same run in Airflow's UI."""
    base = conf.get("api", "base_url", fallback="").rstrip("/")
    return f"{base}/dags/{ti_key.dag_id}/runs/{quote(ti_key.run_id, safe='')}/tasks/{task_id}"


LINKS = (LeaseLink(), NodesLink(), BackupLink(), PriceReportLink(), ChecksLink())
