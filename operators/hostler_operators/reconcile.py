"""The second net."""

import asyncio
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException

from hostler.config.fleet_file import FleetFileError
from hostler.exporters.webhook import NotifyError
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.foresight import warn_of_deadlines
from hostler.lifecycle.reap import ReapReport, reconcile
from hostler_sensors.fleet_access import work
from hostler_sensors.run_identity import StepIdentity


class ReconcileFleetOperator(BaseOperator):
    """Compares the ledger with the clouds in both directions; pushes leases nobody drives, ends machines nobody answers for.

    Args:
        is_dry_run: only report.
    """

    def __init__(self, *, is_dry_run: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.is_dry_run = is_dry_run

    def execute(self, context: Any) -> dict[str, Any]:
        """Returns how much was found. Raises AirflowException, for a retry, when a cloud or a lease could not be looked at."""
        step = StepIdentity.of(context)
        report = work(lambda fleet: self._reconcile(fleet, step.holder))
        for finding in report.findings:
            self.log.info("%s %s: %s (%s)", finding.kind, finding.subject, finding.action, finding.reason)
        if report.report_only:
            self.log.warning("nothing was ended: %s", report.report_only)
        if report.errors:
            raise AirflowException("could not look at everything: " + "; ".join(report.errors))
        return {"findings": len(report.findings), "live_nodes": report.live_count}

    async def _reconcile(self, fleet: Fleet, who: str) -> ReapReport:
        """Reconciles, looks ahead to deadlines, then tells people what needs one; a receiver that is away fails no reconcile."""
        # Imported here: wiring pulls in the database, which a Dag's parsing must not.
        from hostler.wiring.notices import tell_people

        report = await reconcile(fleet, who=who, dry_run=self.is_dry_run)
        await asyncio.to_thread(warn_of_deadlines, fleet.ledger, who=who)
        try:
            await asyncio.to_thread(tell_people, fleet.ledger, secret=fleet.secret)
        except (NotifyError, FleetFileError) as error:
            self.log.warning("nobody could be told: %s", error)
        return report
