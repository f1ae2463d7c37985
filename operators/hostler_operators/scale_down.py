"""Idle nodes as a task."""

from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.scale_down import ScaleReport, scale_down
from hostler_operators.guarded import suite_guard_of, tell
from hostler_sensors.fleet_access import work
from hostler_sensors.run_identity import StepIdentity


class ScaleDownOperator(BaseOperator):
    """Ends leases whose nodes are proved idle, as far as the policy of each tenant goes; nothing when the checks fail.

    The run's parameter ``dry_run`` only reports.
    """

    def execute(self, context: Any) -> dict[str, Any]:
        """Returns the number of leases by action. Raises AirflowFailException when the checks of the telemetry failed."""
        step, dry_run = StepIdentity.of(context), bool(context["params"].get("dry_run", False))
        report = work(lambda fleet: self._run(fleet, step.holder, dry_run=dry_run))
        for one in report.findings:
            self.log.info("%s (%s, %d nodes): %s: %s", one.lease_id, one.tenant, one.node_count, one.action, one.reason)
        if report.report_only:
            self.log.warning("nothing was ended: %s", report.report_only)
        counts: dict[str, Any] = {}
        for one in report.findings:
            counts[one.action] = counts.get(one.action, 0) + 1
        told = {**counts, "checks": report.guard.report if report.guard else ""}
        # Pushed before anything is raised: the link to the data docs must work just then.
        context["ti"].xcom_push(key="checks", value=told)
        if report.guard is not None and report.guard.problems:
            raise AirflowFailException(f"checks failed, nothing was ended: {'; '.join(report.guard.problems)}")
        return told

    async def _run(self, fleet: Fleet, who: str, *, dry_run: bool) -> ScaleReport:
        report = await scale_down(fleet, who=who, guard=suite_guard_of(fleet), dry_run=dry_run)
        await tell(fleet, self.log)
        return report
