"""### Run the lifecycle on a schedule

**Purpose.** Starts one `hostler_node_lifecycle` run a tick, with the Params below as its request. Copy this file for each
schedule you need, and change its `dag_id`, its schedule and the Params' defaults. The run's id holds the tick, so that a tick
that is retried or cleared starts nothing twice.

It is created paused, because it spends money. The cron expression is Airflow's setting `[hostler] run_schedule`.

**Triage.** `start` skipped: the run of this tick exists already. `start` failed: `hostler_node_lifecycle` refused a Param; the
log names it. How the lifecycle itself went is told by its own run.
"""

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG

from hostler_operators.settings import request_params, retry_arguments, schedule_of

with DAG(
    dag_id="hostler_scheduled_run",
    description="Start one lifecycle run a tick.",
    doc_md=__doc__,
    schedule=schedule_of("run_schedule", "0 3 * * *"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    params=request_params(),
    default_args=retry_arguments(),
    render_template_as_native_obj=True,  # conf stays a dict with numbers and lists in it
    tags=["hostler", "schedule"],
):
    TriggerDagRunOperator(
        task_id="start",
        trigger_dag_id="hostler_node_lifecycle",
        trigger_run_id="hostler_scheduled_run__{{ run_id }}",
        conf="{{ params }}",
        skip_when_already_exists=True,
    )
