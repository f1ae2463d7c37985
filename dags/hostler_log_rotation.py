"""### Rotate logs into the encrypted archive

**Purpose.** Logs of the worker's machine that fleet.yaml names (`log_rotation.paths`), and logs of jobs on nodes. A file is renamed,
its writer opens a new one; only once nobody holds the old one it is compressed (zstd), sealed under a key of its own, uploaded to the
backup store, read back, compared byte for byte, and then removed. Nothing is written beside the log, so it works on a full disk: then
every file is due, the largest first. A crash anywhere loses nothing; the next run goes on. Airflow's own logs are touched with
`log_rotation.airflow: true` only.

**Triage.** Task up for retry: the log names the file or node and why; what was not shipped stays where it is. *held*: a writer has
the renamed file open still: it does not reopen, see `log_rotation.pid_file`. Event `log_rotation.disk_full`: make room by hand, and
look at what could not be shipped.
"""

from airflow.sdk import DAG

from hostler_operators.rotation import RotateLogsOperator
from hostler_operators.settings import retry_arguments, schedule_of

with DAG(
    dag_id="hostler_log_rotation",
    description="Rotate logs into the encrypted archive; lose no line.",
    doc_md=__doc__,
    schedule=schedule_of("log_rotation_schedule", "23 * * * *"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args=retry_arguments(),
    tags=["hostler", "housekeeping"],
):
    RotateLogsOperator(task_id="rotate")
