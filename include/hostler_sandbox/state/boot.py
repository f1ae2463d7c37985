"""From a launch to the node that boots for it."""

from datetime import UTC, datetime
from typing import Final, Protocol, runtime_checkable

from hostler_sandbox.nodes_port import NodeSpec, RoleCredentials
from hostler_sandbox.state.order import LaunchOrder
from hostler_sandbox.state.stock import facts_of

_MIB_A_VCPU: Final = 10_922
"""Memory of the simulated machine; GPU types have about 10 GiB a vCPU (p5.48xlarge: 2 TiB on 192)."""


@runtime_checkable
class PowerControl(Protocol):
    """A runtime whose machines can be stopped, started again and restarted."""

    def stop(self, node_id: str) -> None:
        """Powers off; disk and address stay."""
        ...

    def resume(self, node_id: str) -> None:
        """Boots a stopped node again."""
        ...

    def reboot(self, node_id: str) -> None:
        """Restarts."""
        ...


def spec_of(order: LaunchOrder, machine_id: str, address: str, ssh_port: int, *, is_broken: bool) -> NodeSpec:
    """Returns the node to boot for an order."""
    facts = facts_of(order.instance_type)
    credentials = (
        RoleCredentials(
            role_name=order.role,
            access_key_id="ASIASIMULATED0000000",
            secret_access_key="simulated",  # noqa: S106  # opens nothing: the sandbox checks no signature
            session_token="simulated",  # noqa: S106  # as above
            expires_at=datetime(2099, 1, 1, tzinfo=UTC),
        )
        if order.role
        else None
    )
    return NodeSpec(
        node_id=machine_id,
        hostname="ip-" + address.replace(".", "-"),
        address=address,
        ssh_port=ssh_port,
        user_data=order.user_data,
        instance_type=order.instance_type,
        accelerator_name=facts.accelerator or "",
        accelerator_count=facts.accelerator_count,
        memory_mib=facts.vcpu_count * _MIB_A_VCPU,
        vcpu_count=facts.vcpu_count,
        region=order.region,
        zone=order.zone,
        lifecycle="spot" if order.capacity_type == "spot" else "on-demand",
        image_id=order.image_id,
        identity={
            "accountId": "123456789012",
            "instanceId": machine_id,
            "instanceType": order.instance_type,
            "region": order.region,
            "availabilityZone": order.zone,
            "privateIp": address,
            "imageId": order.image_id,
        },
        credentials=credentials,
        tags=dict(order.tags),
        boot_fails=is_broken,
        image=order.image,
    )
