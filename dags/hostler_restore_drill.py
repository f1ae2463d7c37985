"""### Restore a random backup and train on from it

**Purpose.** A backup that was never restored is a hope. Once a week one is taken at random and restored whole on a worker: every
hash is checked, and the run's own recipe makes some steps from the newest checkpoint. The ledger keeps what was measured: RPO
(work of the run that its checkpoint lacks) and RTO (from the beginning of the restore to the first new step).

**Triage.** Failed: this backup does not restore or does not train on; the log says which object or step, and whoever `notify` names
was told. Run it again with `lease` for the same one. A warning that training was not run: the recipe is a tenant's own script,
or its packages are not on this worker; hashes were proved all the same. No room: name a larger disk in `scratch`.
"""

from airflow.sdk import DAG, Param

from hostler_operators.backups import DrillRestoreOperator
from hostler_operators.settings import retry_arguments, schedule_of

with DAG(
    dag_id="hostler_restore_drill",
    description="Restore a random backup, check every hash, show that training goes on.",
    doc_md=__doc__,
    schedule=schedule_of("drill_schedule", "53 3 * * 6"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args=retry_arguments(),
    params={
        "lease": Param("", type="string", description="Drill with this lease's backup; empty: a random one."),
        "scratch": Param("", type="string", description="Folder on the worker with room for it; empty: the temporary one."),
    },
    tags=["hostler", "backup"],
):
    DrillRestoreOperator(task_id="drill")
