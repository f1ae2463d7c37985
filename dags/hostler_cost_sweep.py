"""### What everything costs, and what costs for nobody

**Purpose.** Lists machines, volumes and public addresses of every configured region, whoever's they are, with what each costs a
month: ours, orphans (our tags, and no open lease answers), and foreign ones apart, which are never touched. Machines cost from
running until the cloud says stopped or terminated; disks and addresses cost whether their machine runs or not. The line
`unexplained` holds inventory against ledger: 0.00 when each explains the other. Volumes and addresses of ours that hang on nothing,
and leases whose nodes have been stopped for longer than `cost_sweep.stopped_after_s`, are reported, marked, and after
`cost_sweep.grace_s` ended, as far as `cost_sweep.mode` goes (`report` is the default). Before that a Great Expectations suite checks
the inventory: fresh, complete, plausible. Orphaned machines are `hostler_fleet_reconcile`'s.

**Triage.** Task failed with *checks failed*: nothing was ended; XCom `checks` has the address of the data docs. Task up for retry:
a region could not be listed, and nothing was concluded from it. `unexplained` above 0.00: the log names each thing; a machine that
is on its way in or out at that moment is gone from the next report. *No known price*: not counted, and not free.
"""

from airflow.sdk import DAG, Param

from hostler_operators.settings import retry_arguments, schedule_of
from hostler_operators.sweep import SweepCostsOperator

with DAG(
    dag_id="hostler_cost_sweep",
    description="What everything costs a month, held against the ledger; ends what costs for nobody.",
    doc_md=__doc__,
    schedule=schedule_of("cost_sweep_schedule", "41 5 * * *"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args=retry_arguments(),
    params={"dry_run": Param(False, type="boolean", description="Only report: mark and end nothing.")},
    tags=["hostler", "housekeeping"],
):
    SweepCostsOperator(task_id="sweep")
