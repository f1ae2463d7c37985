"""Backups as tasks: prove and re-seal, retain, drill, and the ledger's own backup."""

import asyncio
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from hostler.config.fleet_file import FleetFileError
from hostler.exporters.webhook import NotifyError
from hostler.lifecycle.backup_check import CheckReport, check_backups
from hostler.lifecycle.backup_retention import RetentionReport, retain_backups
from hostler.lifecycle.drill import DrillReport, drill
from hostler.lifecycle.fleet import Fleet
from hostler_sensors.fleet_access import work
from hostler_sensors.run_identity import StepIdentity

if TYPE_CHECKING:
    from hostler.wiring.ledger_backup import LedgerBackup

GIB = 1024**3


class CheckBackupsOperator(BaseOperator):
    """Reads back and opens backups of leases that are over, the longest unproved first, and seals what a run could not seal.

    The Dag's parameter ``check_gib`` bounds what one run reads; 0: everything.
    """

    def execute(self, context: Any) -> dict[str, Any]:
        """Returns counts. Raises AirflowException: some could not be read (a retry), AirflowFailException: some are damaged."""
        most = int(float(context["params"].get("check_gib", 0)) * GIB) or None
        who = StepIdentity.of(context).holder
        report = work(lambda fleet: self._check(fleet, who, most))
        for one in report.findings:
            self.log.info("%s of %s: %s. %s", one.lease_id, one.tenant, one.found, one.why)
        # A retry would look at other backups first; those that are damaged were told, and stay what they are.
        if damaged := report.of("damaged"):
            raise AirflowFailException("; ".join(f"{one.lease_id}: {one.why}" for one in damaged))
        if unknown := report.of("unknown"):
            raise AirflowException("could not be read: " + "; ".join(f"{one.lease_id}: {one.why}" for one in unknown))
        return {"good": len(report.of("good")), "sealed": len(report.of("sealed")), "left": report.left_count}

    async def _check(self, fleet: Fleet, who: str, most: int | None) -> CheckReport:
        report = await asyncio.to_thread(check_backups, fleet, who=who, most_bytes=most)
        await _tell(self, fleet)
        return report


class RetainBackupsOperator(BaseOperator):
    """Gives up backups that no rule of their tenant keeps. The Dag's parameter ``dry_run`` only reports."""

    def execute(self, context: Any) -> dict[str, Any]:
        """Returns what went and what is left. Raises AirflowException, for a retry, when something could not be judged."""
        who, dry_run = StepIdentity.of(context).holder, bool(context["params"].get("dry_run", False))
        report = work(lambda fleet: asyncio.to_thread(self._retain, fleet, who, dry_run=dry_run))
        for one in report.judged:
            words = ", ".join(one.reasons) or "no rule keeps it"
            self.log.info("%s of %s, sealed %s: %s", one.backup.backup_id, one.backup.tenant, one.backup.sealed_at, words)
        if report.report_only:
            self.log.warning("nothing was deleted: %s", report.report_only)
        if report.errors:
            raise AirflowException("; ".join(report.errors))
        return {"deleted": report.deleted, "left": report.left, "report_only": report.report_only}

    def _retain(self, fleet: Fleet, who: str, *, dry_run: bool) -> RetentionReport:
        # Imported here: wiring pulls in the database, which a Dag's parsing must not.
        from hostler.wiring.keeping import retention_of
        from hostler.wiring.settings import read_fleet_file

        file = read_fleet_file()
        return retain_backups(fleet, lambda tenant: retention_of(file, tenant), who=who, dry_run=dry_run)


class BackUpLedgerOperator(BaseOperator):
    """Writes an encrypted, proved backup of the ledger into the backup store."""

    def execute(self, context: Any) -> dict[str, Any]:
        """Returns where it is. Raises AirflowException, for a retry; the backups before it stay."""
        made = work(lambda fleet: asyncio.to_thread(self._back_up, fleet))
        self.log.info("%s: %d rows, %d bytes, read back", made.name, made.row_count, made.size_bytes)
        return {"name": made.name, "rows": made.row_count, "bytes": made.size_bytes}

    def _back_up(self, fleet: Fleet) -> "LedgerBackup":
        from hostler.wiring.ledger_backup import back_up_ledger
        from hostler.wiring.settings import ledger_url, read_fleet_file

        file = read_fleet_file()
        return back_up_ledger(ledger_url(file), file.deployment, fleet.store, fleet.keys)


class DrillRestoreOperator(BaseOperator):
    """Restores a random backup, proves every hash, shows that training goes on from it, and tells RPO and RTO.

    The Dag's parameter ``lease`` names one instead; ``scratch`` is a folder with room for it.
    """

    def execute(self, context: Any) -> dict[str, Any]:
        """Returns what was shown. Raises AirflowFailException when the backup did not restore or training did not go on."""
        step, params = StepIdentity.of(context), context["params"]
        scratch = Path(params["scratch"]) if params.get("scratch") else None
        # Seeded by the run: a retry takes the same backup.
        rng = random.Random(f"{step.run.dag_id}/{step.run.run_id}")  # noqa: S311 - which backup is no secret
        report = work(lambda fleet: self._drill(fleet, step.holder, rng, scratch, params.get("lease") or None))
        if report is None:
            self.log.info("there is no sealed backup to restore yet")
            return {"lease_id": None}
        if report.not_shown:
            self.log.warning("training was not run: %s", report.not_shown)
        if not report.is_good:
            raise AirflowFailException(f"{report.lease_id}: {report.why}")
        self.log.info("%s: %s; RTO %s s, RPO %s s", report.lease_id, report.why, report.rto_s, report.rpo_s)
        return {"lease_id": report.lease_id, "step": report.step, "rto_s": report.rto_s, "rpo_s": report.rpo_s}

    async def _drill(
        self, fleet: Fleet, who: str, rng: random.Random, scratch: Path | None, lease_id: str | None
    ) -> DrillReport | None:
        report = await asyncio.to_thread(drill, fleet, who=who, rng=rng, scratch=scratch, lease_id=lease_id)
        await _tell(self, fleet)
        return report


async def _tell(operator: BaseOperator, fleet: Fleet) -> None:
    """Tells people what needs one; a receiver that is away fails nothing."""
    from hostler.wiring.notices import tell_people

    try:
        await asyncio.to_thread(tell_people, fleet.ledger)
    except (NotifyError, FleetFileError) as error:
        operator.log.warning("nobody could be told: %s", error)
