"""TerminateInstances, StopInstances, StartInstances, RebootInstances, ModifyInstanceAttribute."""

from collections.abc import Callable
from typing import Any

from hostler_sandbox.aws import refusals, wire
from hostler_sandbox.aws.call import Call
from hostler_sandbox.aws.errors import Ec2Error
from hostler_sandbox.aws.instances import STATE_CODES, Instance, Instances
from hostler_sandbox.state.errors import NoStockError, QuotaError, RefusedError, WrongStateError
from hostler_sandbox.state.estate import ENDING, Estate
from hostler_sandbox.state.machines import Cause, MachineState


class Lifecycle:
    """Answers calls that change the state of instances."""

    def __init__(self, estate: Estate, instances: Instances) -> None:
        self._estate = estate
        self._instances = instances

    def terminate(self, call: Call) -> bytes:
        """Answers TerminateInstances; fine on terminated instances. One unknown or protected id refuses all."""
        found = self._named(call)
        for one in found:
            if one.moto.disable_api_termination:
                text = (
                    f"The instance '{one.instance_id}' may not be terminated. Modify its 'disableApiTermination' instance "
                    "attribute and try again."
                )
                raise Ec2Error("OperationNotPermitted", text)
        return self._changed(
            call, found, lambda one: self._estate.terminate(one.instance_id, Cause.CALLER), "TerminatingInstances"
        )

    def stop(self, call: Call) -> bytes:
        """Answers StopInstances. One-time spot instances cannot be stopped: EC2 user guide, "Spot Instance requests"."""
        found = self._named(call)
        for one in found:
            if one.machine.order.capacity_type == "spot":
                text = f"You can't stop the Spot Instance '{one.instance_id}' because it is associated with a one-time Spot Instance request. You can only stop Spot Instances associated with persistent Spot Instance requests."  # noqa: E501 - EC2's text
                raise Ec2Error("UnsupportedOperation", text)
        return self._changed(call, found, lambda one: self._stop(one, Cause.CALLER), "StoppingInstances")

    def start(self, call: Call) -> bytes:
        """Answers StartInstances: quota and stock are asked again."""
        return self._changed(call, self._named(call), self._start, "StartingInstances")

    def reboot(self, call: Call) -> bytes:
        """Answers RebootInstances."""
        found = self._named(call)
        for one in found:
            if one.machine.state is not MachineState.RUNNING:
                raise refusals.wrong_state(one.instance_id, "rebooted")
        for one in found:
            self._estate.reboot(one.machine)
        return wire.answer(call.action, {})

    def check_change(self, call: Call) -> None:
        """Refuses changes that need a stopped instance. Source: EC2 API reference, ModifyInstanceAttribute."""
        one = self._instances.find(str(call.params.get("InstanceId", "")))
        if one is None:
            raise refusals.unknown_instances([str(call.params.get("InstanceId", ""))])
        attribute = call.params.get("Attribute", "")
        needs_stop = {"InstanceType", "UserData", "EbsOptimized", "Kernel", "Ramdisk"} & set(call.params) or attribute in {
            "instanceType", "userData",
        }  # fmt: skip
        if needs_stop and one.machine.state is not MachineState.STOPPED:
            text = f"The instance '{one.instance_id}' is not in the 'stopped' state."
            raise Ec2Error("IncorrectInstanceState", text)

    def _named(self, call: Call) -> list[Instance]:
        ids = call.params.get("InstanceIds", [])
        if not ids:
            raise Ec2Error("MissingParameter", "The request must contain the parameter InstanceId")
        call.resources.extend(ids)
        if call.params.get("DryRun"):
            raise Ec2Error("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
        return self._instances.by_ids(call.region, ids, None)

    def _stop(self, one: Instance, cause: Cause) -> MachineState:
        try:
            return self._estate.stop(one.instance_id, cause)
        except WrongStateError:
            raise refusals.wrong_state(one.instance_id, "stopped") from None

    def _start(self, one: Instance) -> MachineState:
        try:
            return self._estate.start(one.instance_id)
        except WrongStateError:
            raise refusals.wrong_state(one.instance_id, "started") from None
        except QuotaError as refusal:
            raise refusals.over_quota(refusal.limit) from None
        except NoStockError as refusal:
            raise refusals.no_capacity(one.machine.order.instance_type, refusal.zone, ()) from None
        except RefusedError as refusal:
            raise Ec2Error("InsufficientInstanceCapacity", str(refusal), 500) from None

    @staticmethod
    def _changed(call: Call, found: list[Instance], change: Callable[[Instance], MachineState], member: str) -> bytes:
        shown: list[dict[str, Any]] = []
        for one in found:
            before = change(one)
            now = one.machine.state
            if before in ENDING and now is MachineState.TERMINATED:
                before = MachineState.TERMINATED
            shown.append({"InstanceId": one.instance_id, "PreviousState": _state(before), "CurrentState": _state(now)})
        return wire.answer(call.action, {member: shown})


def _state(state: MachineState) -> dict[str, Any]:
    return {"Code": STATE_CODES[state], "Name": state.value}
