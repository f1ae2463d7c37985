"""### Refresh the prices that placement plans with

**Purpose.** Once a day each cloud of `prices.sources` in fleet.yaml is asked for its prices, on demand and spot. A batch is
accepted whole or not at all: a Great Expectations suite checks schema, ranges, currency, coverage, jumps of over 20 % against
the last accepted batch, and published price lists as a second source. What is not accepted changes nothing.

**Triage.** Task failed with a check's name: the batch was refused, the prices before it stay in force, and whoever `notify`
names was told; the log and XCom `prices` name the report (static pages). If the prices have really moved, start a run with
`accept_jumps`; all other checks still hold. Task up for retry: a cloud did not answer, and nothing was concluded from it.
"""

from airflow.sdk import DAG, Param

from hostler_operators.prices import RefreshPricesOperator
from hostler_operators.settings import retry_arguments, schedule_of

with DAG(
    dag_id="hostler_price_refresh",
    description="Ask the clouds for their prices; accept what passes every check.",
    doc_md=__doc__,
    schedule=schedule_of("price_schedule", "17 4 * * *"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    default_args=retry_arguments(),
    params={"accept_jumps": Param(False, type="boolean", description="Prices have really moved by over 20 %: I have looked.")},
    tags=["hostler", "prices"],
):
    RefreshPricesOperator(task_id="refresh")
