"""### Release a lease now

**Purpose.** Ends the machines of one lease at once, whatever its run is doing: buys nothing more, asks the job for a last
checkpoint, seals the backup, ends every machine and stays until the cloud says that they are gone.

Name the lease by `lease_id`, or by the `dag_run_id` of its `hostler_node_lifecycle` run.

**Triage.** `release` failed: the log says what the cloud has not confirmed yet; `hostler_fleet_reconcile` goes on with it, and
`hostler release LEASE` does the same from a shell, with Airflow down, too. *No lease with that id*: look it up with
`hostler status --all`.
"""

from airflow.sdk import DAG, Param

from hostler_operators.settings import retry_arguments
from hostler_operators.teardowns import ReleaseLeaseOperator

with DAG(
    dag_id="hostler_node_release",
    description="End the machines of one lease now.",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    max_active_runs=16,
    is_paused_upon_creation=False,
    params={
        "lease_id": Param(None, type=["null", "string"], pattern="^[a-z2-7]{20}$", description="The lease to release."),
        "dag_run_id": Param(
            None, type=["null", "string"], maxLength=250, description="Or the hostler_node_lifecycle run that it belongs to."
        ),
        "reason": Param("asked by a person", type="string", minLength=1, maxLength=256, description="Words for the record."),
    },
    default_args=retry_arguments(),
    tags=["hostler", "release"],
):
    ReleaseLeaseOperator(
        task_id="release",
        lease_ref="{{ params.lease_id or '' }}",
        run_ref="{{ params.dag_run_id or '' }}",
        reason="{{ params.reason }}",
    )
