"""The cost sweep as a task."""

from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.sweep import SweepOutcome, sweep
from hostler.metrics.sweep import Owner, lines_of
from hostler_operators.guarded import suite_guard_of, tell
from hostler_sensors.fleet_access import work
from hostler_sensors.run_identity import StepIdentity


class SweepCostsOperator(BaseOperator):
    """Prices everything in the accounts, explains it by the ledger, and ends what serves nobody as far as the policy goes.

    The run's parameter ``dry_run`` only reports.
    """

    def execute(self, context: Any) -> dict[str, Any]:
        """Returns USD a month by owner, what is unexplained, and the findings by action.

        Raises:
            AirflowFailException: the checks of the inventory failed. AirflowException: a region could not be listed; a retry.
        """
        step, dry_run = StepIdentity.of(context), bool(context["params"].get("dry_run", False))
        outcome = work(lambda fleet: self._run(fleet, step.holder, dry_run=dry_run))
        for line in lines_of(outcome.costs):
            self.log.info("%s", line)
        told: dict[str, Any] = {f"{owner}_usd_per_month": str(outcome.costs.total(owner)) for owner in Owner}
        told |= {"unexplained_usd_per_month": str(outcome.costs.unexplained_usd_per_month)}
        told |= {"unpriced": outcome.costs.unpriced_count, "checks": outcome.guard.report if outcome.guard else ""}
        for one in outcome.findings:
            self.log.info("%s: %s: %s", one.subject, one.action, one.reason)
            told[one.action] = told.get(one.action, 0) + 1
        # Pushed before anything is raised: the link to the data docs must work just then.
        context["ti"].xcom_push(key="checks", value=told)
        if outcome.report_only:
            self.log.warning("nothing was ended: %s", outcome.report_only)
        if outcome.guard is not None and outcome.guard.problems:
            raise AirflowFailException(f"checks failed, nothing was ended: {'; '.join(outcome.guard.problems)}")
        if outcome.errors:
            raise AirflowException("could not list everything: " + "; ".join(outcome.errors))
        return told

    async def _run(self, fleet: Fleet, who: str, *, dry_run: bool) -> SweepOutcome:
        outcome = await sweep(fleet, who=who, guard=suite_guard_of(fleet), dry_run=dry_run)
        await tell(fleet, self.log)
        return outcome
