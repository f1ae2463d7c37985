"""### The life of rented nodes, from request to receipt

**Purpose.** One run rents a gang of equal nodes, sets them up, checks them, runs one workload on them, keeps its checkpoints
and logs, hands the nodes back and accounts for them. The run is green only if the job succeeded, its backup was sealed and
read back, and the cloud said of every node that it is gone. Marked *success* by a person before that, it ends *failed*: wanted.

**Start it** by the form, by the schedule of `hostler_scheduled_run`, or by REST:
`POST /api/v2/dags/hostler_node_lifecycle/dagRuns` with your own `dag_run_id`, which is the idempotency key (409: it is there).

**Stop it**: set the run to *failed*. backup, release and receipt still run. Do not pause the Dag to stop: a paused Dag holds
its teardowns too. **Run it again**: trigger a new run. A run cleared after its end finds its lease released, and says so.

**Triage**

| what you see | what it means, what to do |
|---|---|
| `admit` failed | the request was refused and nothing was bought; the log names each field and what is allowed |
| `plan` failed | nothing on offer fits; the log says why, offering by offering |
| `launch` deferred | no stock, a cap, or spending is stopped; it tries again by itself. `hostler why LEASE` says more |
| `setup`, `validate` failed | more nodes were bad than may be replaced; the log names node, step and reading |
| `run` failed | the job ended with an error, or deadline or maximum cost was reached; `hostler logs LEASE` |
| `backup` failed | the store could not be written; the nodes are released all the same, the shipped checkpoints are there |
| `release` failed | the cloud has not said *gone*; `hostler_fleet_reconcile` goes on. `hostler release LEASE` tries at once |
| `receipt` failed | it lists everything that is missing; it is the last word on the run |

The lease id is in the log of `admit`. `hostler why LEASE` works with Airflow down, too.
"""

from airflow.sdk import DAG

from hostler_operators.admit import AdmitRequestOperator
from hostler_operators.run import RunWorkloadOperator
from hostler_operators.settings import lateness_alert, max_active_runs, request_params, retry_arguments
from hostler_operators.steps import (
    AcquireCapacityOperator,
    LaunchNodesOperator,
    PlanPlacementOperator,
    SetupNodesOperator,
    ValidateNodesOperator,
)
from hostler_operators.teardowns import BackupLeaseOperator, ReleaseLeaseOperator, WriteReceiptOperator

# No dagrun_timeout: it skips teardowns. No execution_timeout: it starts anew at each resume. Deadlines live in the ledger.
with DAG(
    dag_id="hostler_node_lifecycle",
    description="Rent nodes, run a workload on them, keep its work, hand them back, account for them.",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    max_active_runs=max_active_runs(),
    is_paused_upon_creation=False,
    params=request_params(),
    default_args=retry_arguments(),
    deadline=lateness_alert(),
    tags=["hostler", "lifecycle"],
):
    admit = AdmitRequestOperator(task_id="admit")
    plan = PlanPlacementOperator(task_id="plan")
    acquire = AcquireCapacityOperator(task_id="acquire")
    launch = LaunchNodesOperator(task_id="launch")
    setup = SetupNodesOperator(task_id="setup")
    validate = ValidateNodesOperator(task_id="validate")
    run = RunWorkloadOperator(task_id="run")
    backup = BackupLeaseOperator(task_id="backup")
    release = ReleaseLeaseOperator(task_id="release", is_own=True)
    receipt = WriteReceiptOperator(task_id="receipt")

    admit >> plan >> acquire >> launch >> setup >> validate >> run >> backup >> release >> receipt
    # admit is the setup, so that the teardowns run whatever fails after it. Only the last one decides the run's state: on an
    # earlier one the flag would let a failed job end "success".
    backup.as_teardown(setups=admit)
    release.as_teardown(setups=admit)
    receipt.as_teardown(setups=admit, on_failure_fail_dagrun=True)
