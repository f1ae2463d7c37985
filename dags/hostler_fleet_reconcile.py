"""### Compare the ledger with the clouds

**Purpose.** The second net under every run: on a schedule it looks at leases and machines, not at runs. It goes on with leases
that nobody drives (a paused or removed Dag, an API server that was away, a release that ran out of retries), resolves
launches whose answer was lost, and ends machines that carry this deployment's id and that no lease answers for. It never
touches a machine that is not certainly ours, ends at most `limits.destroyed_per_tick` on its own judgement, and only reports
when the ledger may be the wrong one.

**Triage.** Task red: a cloud or a lease could not be looked at; the log names it, and nothing was concluded from it. A finding
with action `none`: the log says what a person has to decide. `hostler reap --dry-run` shows the same from a shell.
The first run after a start may be retried: the scheduler can be ahead of the API server.
"""

from airflow.sdk import DAG

from hostler_operators.reconcile import ReconcileFleetOperator
from hostler_operators.settings import retry_arguments, schedule_of

with DAG(
    dag_id="hostler_fleet_reconcile",
    description="Compare ledger and clouds in both directions; end what nobody answers for.",
    doc_md=__doc__,
    schedule=schedule_of("reconcile_schedule", "*/5 * * * *"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args=retry_arguments(),
    tags=["hostler", "reconcile"],
):
    ReconcileFleetOperator(task_id="reconcile")
