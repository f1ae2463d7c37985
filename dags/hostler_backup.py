"""### Prove the backups, keep what the rules keep, back up the ledger

**Purpose.** Once a day the backups of runs that are over are read back and opened, the longest unproved first; what a run could
not seal is sealed now. Then each tenant's retention (grandfather, father, son; `backup.retention` in fleet.yaml) gives up what
no rule keeps, after the tenant's newest good backup was proved: never that one, never one that is locked, held or not proved
good, twenty a run at most. Beside it the ledger itself is written, encrypted and read back, into the backup store.

**Triage.** `check` failed: the log names each damaged backup and object; nothing deletes it, and restoring from it is refused.
Look into the bucket's versions and its trail. Up for retry: the store or the key service did not answer, and nothing was
concluded from it. `retain` up for retry: a newest good backup could not be proved, so nothing of that tenant was deleted.
`backup_ledger`: the ledgers before it stay good; `hostler ledger backup` shows the error in a shell.
"""

from airflow.sdk import DAG, Param

from hostler_operators.backups import BackUpLedgerOperator, CheckBackupsOperator, RetainBackupsOperator
from hostler_operators.settings import retry_arguments, schedule_of

with DAG(
    dag_id="hostler_backup",
    description="Prove and re-seal backups, apply retention, back up the ledger.",
    doc_md=__doc__,
    schedule=schedule_of("backup_schedule", "37 2 * * *"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args=retry_arguments(),
    params={
        "check_gib": Param(500, type="number", minimum=0, description="Read back at most so much in one run; 0: everything."),
        "dry_run": Param(False, type="boolean", description="Say what retention would delete, delete nothing."),
    },
    tags=["hostler", "backup"],
):
    BackUpLedgerOperator(task_id="backup_ledger")
    # Retention runs after a check that failed too: it gives up nothing that is not proved.
    CheckBackupsOperator(task_id="check") >> RetainBackupsOperator(task_id="retain", trigger_rule="all_done")
