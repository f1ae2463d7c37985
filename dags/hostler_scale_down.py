"""### End the leases of nodes that are proved idle

**Purpose.** Every node is asked what it did in its tenant's window (`tenants.<name>.scale_down.idle_after_s`). A lease is idle when
every sample of every accelerator of every node is below the limit, no process holds an accelerator, no job runs, nobody is logged
in, and the hosts' CPUs rest. Unknown, stale, missing and MIG's N/A count as busy. Before anything is marked or ended, a Great
Expectations suite checks the telemetry: fresh, complete, plausible. An idle lease is marked first; if it is still idle after
`grace_s` it is looked at once more and goes the way of every release: checkpoint, backup, machines ended and confirmed gone. The
least valuable goes first, and `limits.destroyed_per_tick` bounds the nodes of one run. `mode: report` (the default) only tells.

**Triage.** Task failed with *checks failed*: nothing was ended; XCom `checks` has the address of the data docs, the log names the
check and the first nodes. An idle node is not found: the log has its reason, such as `unknown: ...` with what its agent did not
tell. A lease waits with `destroyed_per_tick`: raise the limit or end it by `hostler release LEASE`. Start a run with `dry_run` to
see what would happen.
"""

from airflow.sdk import DAG, Param

from hostler_operators.scale_down import ScaleDownOperator
from hostler_operators.settings import retry_arguments, schedule_of

with DAG(
    dag_id="hostler_scale_down",
    description="End the leases of nodes that are proved idle.",
    doc_md=__doc__,
    schedule=schedule_of("scale_down_schedule", "*/15 * * * *"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args=retry_arguments(),
    params={"dry_run": Param(False, type="boolean", description="Only report: mark and end nothing.")},
    tags=["hostler", "housekeeping"],
):
    ScaleDownOperator(task_id="scale_down")
