"""Faults of the plan, put into EC2's words."""

from dataclasses import dataclass
from typing import Final

from hostler_sandbox.aws import refusals
from hostler_sandbox.aws.call import Call
from hostler_sandbox.aws.errors import Ec2Error
from hostler_sandbox.state.faults import Fault, Faults
from hostler_sandbox.state.machines import Cause

_FIELDS: Final = ("service", "action", "region", "zone", "instance_type")


@dataclass(frozen=True, slots=True)
class Late:
    """A launch that is to fail for the caller and come up after ``delay_s``."""

    error: Ec2Error
    delay_s: float


def facts(call: Call) -> dict[str, str | None]:
    """Returns what faults are matched by."""
    return {name: getattr(call, name) for name in _FIELDS}


def error_of(fault: Fault) -> Ec2Error:
    """Returns the error that a fault names."""
    return Ec2Error(fault.code, fault.message, fault.status)


class LaunchFaults:
    """Faults of launches."""

    def __init__(self, plan: Faults) -> None:
        self._plan = plan

    def before(self, call: Call) -> None:
        """Refuses a launch for a ``capacity`` fault. Raises Ec2Error."""
        if self._plan.take("capacity", facts(call)):
            is_spot = call.params.get("InstanceMarketOptions", {}).get("MarketType") == "spot"
            instance_type = call.instance_type or ""
            raise refusals.no_spot_capacity() if is_spot else refusals.no_capacity(instance_type, call.zone or "", ())

    def late(self, call: Call) -> Late | None:
        """Returns the ``late_create`` fault that meets the launch."""
        fault = self._plan.take("late_create", facts(call))
        return Late(error_of(fault), fault.delay_s) if fault else None

    def boot(self, call: Call) -> str:
        """Returns how the machine's boot is to fail: ``no_ssh``, ``ends``, or "" for not at all."""
        fault = self._plan.take("boot_failure", facts(call))
        return (fault.mode or "no_ssh") if fault else ""

    @staticmethod
    def cause(boot_fault: str) -> Cause | None:
        """Returns the cause that ends a pending machine; None when none does."""
        return Cause.LAUNCH_FAULT if boot_fault == "ends" else None
