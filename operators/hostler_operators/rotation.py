"""The log rotation as a task."""

from typing import Any

from airflow.sdk import BaseOperator, conf
from airflow.sdk.exceptions import AirflowException

from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.rotation import RotationReport
from hostler_operators.guarded import tell
from hostler_sensors.fleet_access import work
from hostler_sensors.run_identity import StepIdentity


class RotateLogsOperator(BaseOperator):
    """Rotates logs of this worker's machine into the backup store, and has nodes ship theirs. Nothing unproved is removed."""

    def execute(self, context: Any) -> dict[str, Any]:
        """Returns the number of files by action. Raises AirflowException, for a retry, when something could not be shipped."""
        step = StepIdentity.of(context)
        report = work(lambda fleet: self._run(fleet, step.holder))
        told: dict[str, Any] = {"nodes_shipped": report.nodes_shipped}
        for one in report.findings:
            self.log.info("%s: %s: %s", one.path, one.action, one.reason)
            told[one.action] = told.get(one.action, 0) + 1
        if report.is_locked_out:
            self.log.info("another rotation runs on this machine")
        if report.failures:
            raise AirflowException(f"not everything was shipped, and what was not stays: {'; '.join(report.failures[:5])}")
        return told

    async def _run(self, fleet: Fleet, who: str) -> RotationReport:
        # Imported here: wiring pulls in the database, which a Dag's parsing must not.
        from hostler.wiring.rotation import rotate_this_machine
        from hostler.wiring.settings import read_fleet_file

        folder = conf.get("logging", "base_log_folder", fallback="")
        patterns = (f"{folder.rstrip('/')}/**/*.log",) if folder else ()
        report = await rotate_this_machine(fleet, read_fleet_file(), who=who, airflow_patterns=patterns)
        await tell(fleet, self.log)
        return report
