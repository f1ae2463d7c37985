"""EC2's refusals, word for word where a public report shows them. One function a refusal; its docstring names the source."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Final

from hostler_sandbox.aws.errors import Ec2Error

_SERVER_ERROR: Final = 500
_FORBIDDEN: Final = 403
_UNAVAILABLE: Final = 503


def no_capacity(instance_type: str, zone: str, others: Iterable[str]) -> Ec2Error:
    """No on-demand stock. Text: aws/aws-parallelcluster-node#603. HTTP 500: nib-health-funds/hammertime#29."""
    text = (
        f"We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested ({zone}). "
        "Our system will be working on provisioning additional capacity."
    )
    names = ", ".join(others)
    if names:
        text += (
            f" You can currently get {instance_type} capacity by not specifying an Availability Zone in your request or "
            f"choosing {names}."
        )
    return Ec2Error("InsufficientInstanceCapacity", text, _SERVER_ERROR)


def no_capacity_anywhere(instance_type: str) -> Ec2Error:
    """No stock in any zone, none was named. Text: the error's row in the EC2 API reference, with the type put in."""
    text = f"We currently do not have sufficient {instance_type} capacity to satisfy your request. Please try again later."
    return Ec2Error("InsufficientInstanceCapacity", text, _SERVER_ERROR)


def no_spot_capacity() -> Ec2Error:
    """No spot stock. Text: EC2 user guide, "Spot request status codes" and public reports such as hashicorp/packer#10115."""
    return Ec2Error(
        "InsufficientInstanceCapacity", "There is no Spot capacity available that matches your request.", _SERVER_ERROR
    )


def no_reserved_capacity() -> Ec2Error:
    """The targeted reservation is full. Text: "Error codes for the Amazon EC2 API", sic."""
    text = (
        "The targeted Capacity Reservation does not enough available instance capacity to fulfill your request. Either increase "
        "the instance capacity for the targeted Capacity Reservation, or target a different Capacity Reservation."
    )
    return Ec2Error("ReservationCapacityExceeded", text)


def price_too_low(offered: Decimal, needed: Decimal) -> Ec2Error:
    """The spot price is higher than one would pay. Text: aws/aws-parallelcluster-node#415."""
    text = (
        f"Your Spot request price of {offered} is lower than the minimum required Spot request fulfillment price of {needed}."
    )
    return Ec2Error("SpotMaxPriceTooLow", text)


def over_quota(limit: int) -> Ec2Error:
    """Over the on-demand quota. Text: skypilot-org/skypilot#975."""
    text = (
        f"You have requested more vCPU capacity than your current vCPU limit of {limit} allows for the instance bucket that the "
        "specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment "
        "to this limit."
    )
    return Ec2Error("VcpuLimitExceeded", text)


def over_spot_quota() -> Ec2Error:
    """Over the spot quota. Text: meadowdata/meadowrun#84."""
    return Ec2Error("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")


def not_offered(instance_type: str, zone: str, others: Iterable[str]) -> Ec2Error:
    """The zone never has the type. Text: skypilot-org/skypilot#22."""
    text = (
        f"Your requested instance type ({instance_type}) is not supported in your requested Availability Zone ({zone}). "
        f"Please retry your request by not specifying an Availability Zone or choosing {', '.join(others)}."
    )
    return Ec2Error("Unsupported", text)


def token_mismatch() -> Ec2Error:
    """Same token, other parameters. Text: ubicloud/ubicloud#5898."""
    text = "Arguments on this idempotent request are inconsistent with arguments used in previous request(s)."
    return Ec2Error("IdempotentParameterMismatch", text)


def token_of_dead() -> Ec2Error:
    """The token's instance is dead. Text: boto/boto3#4406."""
    text = "The client token you have provided is associated with a terminated instance. Please use a different client token."
    return Ec2Error("IdempotentInstanceTerminated", text)


def unknown_instances(ids: Iterable[str]) -> Ec2Error:
    """Ids that EC2 does not show. Text: "Troubleshoot EC2 API", and any public report of the code."""
    names = list(ids)
    if len(names) == 1:
        return Ec2Error("InvalidInstanceID.NotFound", f"The instance ID '{names[0]}' does not exist")
    return Ec2Error("InvalidInstanceID.NotFound", f"The instance IDs '{', '.join(names)}' do not exist")


def malformed_instance(instance_id: str) -> Ec2Error:
    """An id of the wrong shape. Text: "Error codes for the Amazon EC2 API"."""
    return Ec2Error("InvalidInstanceID.Malformed", f'Invalid id: "{instance_id}"')


def throttled() -> Ec2Error:
    """Too many calls. Text and HTTP 503: aws/karpenter-provider-aws#7891."""
    return Ec2Error("RequestLimitExceeded", "Request limit exceeded.", _UNAVAILABLE)


def unauthorized(action: str, service: str = "ec2") -> Ec2Error:
    """The role may not do it. Text and HTTP 403: aws/karpenter-provider-aws#7370 (shortened)."""
    text = (
        "You are not authorized to perform this operation. User: arn:aws:sts::123456789012:assumed-role/hostler/sandbox is not "
        f"authorized to perform: {service}:{action} because no identity-based policy allows the {service}:{action} action"
    )
    return Ec2Error("UnauthorizedOperation", text, _FORBIDDEN)


def wrong_state(instance_id: str, wanted: str) -> Ec2Error:
    """The instance's state does not allow it. Text: aws/aws-cli#2229 and "Error codes for the Amazon EC2 API"."""
    return Ec2Error("IncorrectInstanceState", f"The instance '{instance_id}' is not in a state from which it can be {wanted}.")


def not_served(action: str) -> Ec2Error:
    """The sandbox does not simulate the action. Said loudly, so that nothing passes on moto's silence."""
    return Ec2Error("UnsupportedOperation", f"The sandbox (simulated) does not serve {action}; it would make machines unseen.")
