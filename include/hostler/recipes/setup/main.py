"""Goes through the steps, then checks all of them once more; that last check alone makes a setup good."""

from __future__ import annotations

import os
import time
import traceback
from typing import Any

from .machine import Machine, RebootNeeded, StepError
from .options import OptionError, Options, load
from .packages import package_manager
from .step import Context, Step
from .steps_driver import DRIVER_STEPS
from .steps_system import SYSTEM_STEPS
from .versions import versions

STEPS: tuple[Step, ...] = (*SYSTEM_STEPS[:2], *DRIVER_STEPS, *SYSTEM_STEPS[2:])


def main() -> int:
    """Sets the machine up; returns the exit status."""
    machine = Machine(os.environ)
    started = time.monotonic()
    report: dict[str, Any] = {"version": 1, "state": "failed", "steps": {}}
    try:
        options = load()
        machine.make_home()
        context = Context(machine, options, package_manager(machine))
        report["options"] = dict(vars(options))
        try:
            _apply_all(context, report["steps"])
        except RebootNeeded as reason:
            machine.reboot(str(reason))
        _verify_all(context)
        report.update(state="succeeded", versions=versions(context))
        print("setup succeeded", flush=True)
        return 0
    except (StepError, OptionError) as error:
        report["error"] = str(error)
        print(f"setup failed: {error}", flush=True)
        return 1
    except Exception as error:  # noqa: BLE001 - the report must be written whatever a machine comes up with
        report["error"] = f"{type(error).__name__}: {error}"
        traceback.print_exc()
        return 1
    except SystemExit:
        report["state"] = "rebooting"
        raise
    finally:
        report.update(elapsed_s=round(time.monotonic() - started, 1), reboots=int(machine.state().get("reboots", 0)))
        if (machine.home / "setup").is_dir():
            machine.keep("report.json", report)


def wanted_steps(options: Options) -> tuple[Step, ...]:
    """Returns the steps that this kind of machine needs, in order."""
    return tuple(step for step in STEPS if step.is_needed(options))


def _apply_all(context: Context, told: dict[str, Any]) -> None:
    for step in wanted_steps(context.options):
        began = time.monotonic()
        problem = step.problem(context)
        done = "already so"
        if problem:
            print(f"{step.name}: {problem}", flush=True)
            step.apply(context)
            left = step.problem(context)
            if left:
                raise StepError(f"{step.name}: {left} (after it was applied)")
            done = "applied"
        print(f"{step.name}: {done}", flush=True)
        told[step.name] = {"result": done, "before": problem, "elapsed_s": round(time.monotonic() - began, 1)}


def _verify_all(context: Context) -> None:
    """Checks every step again: a later one may have undone an earlier one. Raises StepError naming all that fail."""
    problems = [f"{step.name}: {problem}" for step in wanted_steps(context.options) if (problem := step.problem(context))]
    if problems:
        raise StepError("verification: " + "; ".join(problems))
    print(f"verified: {len(wanted_steps(context.options))} steps", flush=True)
