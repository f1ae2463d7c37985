"""What the demo tells a person while it runs and at its end."""

import sys
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from hostler.cli.table import render
from hostler.model.lease import Event

STEPS: Final = ("admit", "plan", "acquire", "launch", "setup", "validate", "run", "backup", "release", "receipt")


class Story:
    """Prints lines with the seconds since its start."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._states: dict[str, str] = {}

    def say(self, words: str) -> None:
        """Prints one line."""
        sys.stdout.write(f"{time.monotonic() - self._began:6.1f} s  {words}\n")
        sys.stdout.flush()

    def tell_events(self, events: Sequence[Event]) -> None:
        """Prints what the ledger wrote down."""
        for event in events:
            slot = "" if event.slot_index is None else f" [node {event.slot_index}]"
            self.say(f"    {event.what}{slot}: {event.why}")

    def tell_tasks(self, tasks: dict[str, dict[str, Any]]) -> None:
        """Prints the steps whose state has changed."""
        for name in STEPS:
            state = str(tasks[name].get("state")) if name in tasks else ""
            if state != self._states.get(name) and state in {
                "running",
                "deferred",
                "success",
                "failed",
                "up_for_retry",
                "skipped",
            }:
                self._states[name] = state
                self.say(f"  {name}: {state}")


def step_table(tasks: dict[str, dict[str, Any]]) -> str:
    """Returns the table of steps with seconds and attempts."""
    rows = [
        (
            name,
            str(task.get("state")),
            _seconds(task.get("start_date"), task.get("end_date")),
            str(task.get("try_number")),
        )
        for name, task in ((name, tasks.get(name) or {}) for name in STEPS)
    ]
    return render(("STEP", "STATE", "SECONDS", "ATTEMPTS"), rows)


def outcome_table(report: dict[str, Any]) -> str:
    """Returns what the run came to."""
    rows = [
        ("accuracy", f"{report['accuracy']}"),
        ("weights (SHA-256)", str(report["weights_sha256"])[:16] + "..."),
        ("  undisturbed training", str(report["undisturbed_weights_sha256"])[:16] + "..."),
        ("resumed at / steps redone", f"{report['resumed_steps']} / {report['redone_steps']}"),
        ("refusals on the way", str(report["refusals"])),
        ("nodes launched / lost", f"{report['nodes_launched']} / {report['nodes_lost']}"),
        ("cost by the ledger", f"{report['ledger_cost_usd']:.4f} USD (simulated)"),
        ("cost by the cloud's journal", f"{report['journal_cost_usd']:.4f} USD (simulated)"),
        ("backup", f"{report['backup_uri']} ({report['restored_objects']} objects verified)"),
        ("nodes left in the cloud", str(report["live_nodes"])),
    ]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in rows)


def _seconds(start: str | None, end: str | None) -> str:
    if not start or not end:
        return "-"
    return f"{(datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds():.1f}"
