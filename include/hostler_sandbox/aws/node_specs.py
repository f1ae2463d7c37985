"""From an instance to the node that plays it."""

from datetime import datetime
from typing import Final

from hostler_sandbox.aws import moto_server
from hostler_sandbox.aws.instances import Instance, tags_of
from hostler_sandbox.aws.role_keys import role_keys
from hostler_sandbox.nodes_port import NodeSpec

_OTHER_MEMORY: Final = {("A100", 81920): "A100-80GB", ("V100", 32768): "V100-32GB"}
_OTHER_NAMES: Final = {"T4g": "T4G"}
"""Where AWS's name of a GPU is not enough to tell its model."""


def accelerator_of(instance_type: str) -> tuple[str, int]:
    """Returns catalogue name and count of a type's GPUs; ("", 0) for a type without."""
    name, count = moto_server.accelerator(instance_type)
    memory_mib = moto_server.accelerator_memory_mib(instance_type)
    return _OTHER_MEMORY.get((name, memory_mib), _OTHER_NAMES.get(name, name)), count


def node_spec(one: Instance, *, image: str, address: str, ssh_port: int, is_boot_broken: bool, now: datetime) -> NodeSpec:
    """Returns what the runtime boots."""
    order = one.machine.order
    accelerator, count = accelerator_of(order.instance_type)
    role = moto_server.role_of(one.region, one.instance_id)
    return NodeSpec(
        node_id=one.instance_id,
        hostname=f"ip-{address.replace('.', '-')}",
        address=address,
        ssh_port=ssh_port,
        user_data=one.user_data,
        instance_type=order.instance_type,
        accelerator_name=accelerator,
        accelerator_count=count,
        memory_mib=moto_server.memory_mib(order.instance_type),
        vcpu_count=order.vcpu_count,
        region=one.region,
        zone=order.zone,
        lifecycle="spot" if order.capacity_type == "spot" else "on-demand",
        image_id=one.image_id,
        identity=_identity(one, address),
        credentials=role_keys(role, one.instance_id, now) if role else None,
        tags=tags_of(one.region, one.instance_id),
        authorized_key=moto_server.public_key(one.region, one.key_name) if one.key_name else None,
        boot_fails=is_boot_broken,
        image=image,
    )


def _identity(one: Instance, address: str) -> dict[str, object]:
    """Returns the identity document. Source: EC2 user guide, "Instance identity documents"."""
    return {
        "accountId": moto_server.ACCOUNT,
        "architecture": "x86_64",
        "availabilityZone": one.machine.order.zone,
        "imageId": one.image_id,
        "instanceId": one.instance_id,
        "instanceType": one.machine.order.instance_type,
        "pendingTime": f"{one.machine.launched_at:%Y-%m-%dT%H:%M:%SZ}",
        "privateIp": address,
        "region": one.region,
        "version": "2017-09-30",
    }
