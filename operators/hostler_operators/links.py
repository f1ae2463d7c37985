"""Links on the steps: to the lease's story, its nodes and its backup. Made from ids alone: no network, no ledger."""

from typing import Any, ClassVar
from urllib.parse import quote

from airflow.sdk import BaseOperator, BaseOperatorLink, conf
from airflow.sdk.execution_time.xcom import XCom

from hostler.model.lease import lease_id_for
from hostler.model.request import RunRef
from hostler_operators.admit import AdmitRequestOperator
from hostler_operators.run import RunWorkloadOperator
from hostler_operators.steps import LaunchNodesOperator, SetupNodesOperator, ValidateNodesOperator
from hostler_operators.teardowns import BackupLeaseOperator, ReleaseLeaseOperator, WriteReceiptOperator


class LeaseLink(BaseOperatorLink):
    """To the task that tells the lease's story: ``receipt``, whose log says how the run ended and what is missing."""

    name = "Lease"
    operators: ClassVar[list[type[BaseOperator]]] = [AdmitRequestOperator, RunWorkloadOperator, ReleaseLeaseOperator]

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """Returns the page of the run's receipt."""
        return task_page(ti_key, "receipt" if operator.dag and operator.dag.has_task("receipt") else ti_key.task_id)


class NodesLink(BaseOperatorLink):
    """To the machines of the lease in the cloud's own console, found by their tag; AWS only so far."""

    name = "Nodes"
    operators: ClassVar[list[type[BaseOperator]]] = [LaunchNodesOperator, SetupNodesOperator, ValidateNodesOperator]

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """Returns the console's list, all regions, of what carries the lease's tag."""
        lease_id = lease_id_for(RunRef(dag_id=ti_key.dag_id, run_id=ti_key.run_id))
        return f"https://console.aws.amazon.com/ec2globalview/home#Instances:tag:hostler:lease={lease_id}"


class BackupLink(BaseOperatorLink):
    """To the backup: the S3 console's page of the manifest, or the file's own address."""

    name = "Backup"
    operators: ClassVar[list[type[BaseOperator]]] = [BackupLeaseOperator, WriteReceiptOperator]

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """Returns where the manifest is; empty when there is no backup."""
        told = XCom.get_value(ti_key=ti_key._replace(task_id="backup"), key="return_value")
        return backup_page(told.get("manifest_uri") if isinstance(told, dict) else None)


def task_page(ti_key: Any, task_id: str) -> str:
    """Returns the page of a task of the same run in Airflow's UI."""
    base = conf.get("api", "base_url", fallback="").rstrip("/")
    return f"{base}/dags/{ti_key.dag_id}/runs/{quote(ti_key.run_id, safe='')}/tasks/{task_id}"


def backup_page(manifest_uri: str | None) -> str:
    """Returns the address to open for a manifest; ``s3://`` becomes the console's page."""
    if not manifest_uri:
        return ""
    if not manifest_uri.startswith("s3://"):
        return manifest_uri
    bucket, _, key = manifest_uri.removeprefix("s3://").partition("/")
    return f"https://s3.console.aws.amazon.com/s3/object/{bucket}?prefix={quote(key)}"


LINKS = (LeaseLink(), NodesLink(), BackupLink())
