"""The guards of the housekeeping: Great Expectations suites over what is about to be acted on."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from hostler.checks import inventory, telemetry
from hostler.checks.suite import Batch, SuiteRunner
from hostler.config.schema import FleetFile
from hostler.lifecycle.policies import Guard, GuardBatch, GuardVerdict

Suite = Callable[[Any, Sequence[Mapping[str, Any]], Mapping[str, Any]], list[tuple[str, Any]]]

_SUITES: dict[str, tuple[Suite, Sequence[str]]] = {
    "telemetry": (telemetry.checks, telemetry.TEXTS),
    "inventory": (inventory.checks, inventory.TEXTS),
}
"""Kind of batch -> its checks and the columns that are texts; all others are numbers."""


def suite_guard(fleet: FleetFile, clock: Callable[[], datetime]) -> Guard:
    """Returns a guard that writes its data docs below ``cost_sweep.folder``; Great Expectations is loaded at its first batch.

    Args:
        clock: names the reports.
    """
    folder, kept = fleet.cost_sweep.folder.expanduser(), fleet.cost_sweep.reports_kept
    runner = SuiteRunner("checks", folder, kept)

    def judge(batch: GuardBatch) -> GuardVerdict:
        checks, texts = _SUITES[batch.kind]
        said = runner.judge(_table(batch, texts, clock()), lambda gxe: checks(gxe, batch.rows, batch.facts))
        return GuardVerdict(problems=said.problems, report=str(said.report))

    return judge


def _table(batch: GuardBatch, texts: Sequence[str], now: datetime) -> Batch:
    names = list(batch.rows[0]) if batch.rows else []
    return Batch(
        subject=batch.kind,
        name=f"{now:%Y%m%dT%H%M%S%fZ}",
        table={name: [row[name] for row in batch.rows] for name in names},
        numbers=[name for name in names if name not in texts],
        row_words=lambda index: ", ".join(str(batch.rows[index][name]) for name in texts),
    )
