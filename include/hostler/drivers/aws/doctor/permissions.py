"""Which rights we have: reads by reading, what buys and ends by EC2's dry run, the rest by IAM's simulation."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hostler.cloud.doctor import Check, fail, ok, unknown, warn
from hostler.cloud.driver import LaunchOrder
from hostler.cloud.errors import CloudAuthError, CloudError
from hostler.cloud.tags import DEPLOYMENT, tags_for
from hostler.drivers.aws.api_calls import needed_calls
from hostler.drivers.aws.classify import DRY_RUN
from hostler.drivers.aws.convert import tag_filters
from hostler.drivers.aws.doctor.account import identity_arn
from hostler.drivers.aws.doctor.asking import POLICY_FIX, Patient, words
from hostler.drivers.aws.doctor.cheapest import cheapest_offering
from hostler.drivers.aws.orders import run_request
from hostler.model.enums import CapacityType

_DENIED: Final = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "AuthFailure"})
_PROBES: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "ec2:DescribeAvailabilityZones": ("describe_availability_zones", {}),
    "ec2:DescribeCapacityReservations": ("describe_capacity_reservations", {"MaxResults": 5}),
    "ec2:DescribeImages": ("describe_images", {"Owners": ["self"], "MaxResults": 5}),
    "ec2:DescribeInstanceStatus": ("describe_instance_status", {"MaxResults": 5}),
    "ec2:DescribeInstanceTypeOfferings": ("describe_instance_type_offerings", {"MaxResults": 5}),
    "ec2:DescribeInstances": ("describe_instances", {"MaxResults": 5}),
    "ec2:DescribeSecurityGroups": ("describe_security_groups", {"MaxResults": 5}),
    "ec2:DescribeSpotInstanceRequests": ("describe_spot_instance_requests", {"MaxResults": 5}),
    "ec2:DescribeSpotPriceHistory": ("describe_spot_price_history", {"MaxResults": 5}),
    "ec2:DescribeSubnets": ("describe_subnets", {"MaxResults": 5}),
}
"""The smallest call of each read of EC2; the other reads are made by the checks of what they read."""


def check_reads(patient: Patient, region: str) -> Iterator[Check]:
    """Yields one check for all reads of EC2 when they are allowed, and one for each that is not."""
    wanted = [item.right for item in needed_calls(patient.settings, patient.examination, "driver") if item.right in _PROBES]
    allowed = []
    for right in wanted:
        operation, arguments = _PROBES[right]
        try:
            patient.calls.call(region, operation, **arguments)
        except CloudError as error:
            yield _refused(f"permission {right} {region}", error)
        else:
            allowed.append(right)
    if allowed:
        yield ok(f"permission reads {region}", f"{len(allowed)} of {len(wanted)} reads of EC2 are allowed")


def check_writes(patient: Patient, region: str, simulated: Mapping[str, str] | str) -> Iterator[Check]:
    """Yields whether machines may be made and ended.

    Args:
        simulated: IAM's decision by right, or why it could not be asked.
    """
    if not patient.examination.asks_writes:
        yield from (
            _of_simulation(patient, right, region, simulated) for right in ("ec2:RunInstances", "ec2:TerminateInstances")
        )
        return
    for kind in patient.settings.capacity_types:
        if kind is not CapacityType.RESERVED:
            yield _dry_launch(patient, region, kind)
    yield _dry_end(patient, region, simulated)


def _dry_launch(patient: Patient, region: str, kind: CapacityType) -> Check:
    """Asks whether a whole, real request would do: tags, role, key, subnet and groups are in it."""
    name = f"permission ec2:RunInstances {kind} {region}"
    try:
        offering = cheapest_offering(patient, region, kind)
        if offering is None:
            return unknown(name, "no accelerator type is offered in a zone with a subnet", "look at the subnets and the region")
        tags = tags_for(
            deployment=patient.deployment, lease_id="doctor", slot_index=0, intent_id="doctor", tenant="default", extra={}
        )
        order = LaunchOrder(name="doctor", client_token="doctor", offering=offering, tags=tags, user_data="#cloud-config\n")  # noqa: S106 - no secret
        request = run_request(order, patient.lookups.site(order), patient.settings)
        del request["ClientToken"]
        patient.calls.call(region, "run_instances", DryRun=True, **request)
    except CloudError as error:
        return _of_dry_run(name, error)
    return fail(name, "the cloud took a dry run for an order", "look at what answers at AWS_ENDPOINT_URL: it is not Amazon")


def _dry_end(patient: Patient, region: str, simulated: Mapping[str, str] | str) -> Check:
    """Asks with one of our own machines: of any other, EC2 says nothing of our rights. Without one, IAM has to say."""
    name = f"permission ec2:TerminateInstances {region}"
    try:
        machine_id = _own_machine(patient, region)
        if machine_id is None:
            return _of_simulation(patient, "ec2:TerminateInstances", region, simulated)
        patient.calls.call(region, "terminate_instances", DryRun=True, InstanceIds=[machine_id])
    except CloudError as error:
        return _of_dry_run(name, error)
    return fail(name, "the cloud took a dry run for an order", "look at what answers at AWS_ENDPOINT_URL: it is not Amazon")


def _own_machine(patient: Patient, region: str) -> str | None:
    filters = [
        *tag_filters({DEPLOYMENT: patient.deployment}),
        {"Name": "instance-state-name", "Values": ["pending", "running", "stopped"]},
    ]
    found = patient.calls.pages(region, "describe_instances", "Reservations", Filters=filters)
    return next((str(item["InstanceId"]) for page in found for item in page.get("Instances", ())), None)


def _of_dry_run(name: str, error: CloudError) -> Check:
    if error.code == DRY_RUN:
        return ok(name, "allowed, by a dry run")
    if error.code in _DENIED:
        return fail(name, words(error), POLICY_FIX)
    if isinstance(error, CloudAuthError):
        return unknown(name, f"could not be asked: {words(error)}", POLICY_FIX)
    return _refused(name, error)


def _refused(name: str, error: CloudError) -> Check:
    if isinstance(error, CloudAuthError):
        return fail(name, words(error), POLICY_FIX)
    return unknown(name, f"could not be asked: {words(error)}", "mend what it says, or run it again when the cloud answers")


def simulate(patient: Patient, arn: str, rights: Sequence[str]) -> Mapping[str, str] | str:
    """Returns IAM's decision for each right on a machine of ours, or why IAM cannot say. A read: nothing is changed."""
    source = identity_arn(arn)
    if source is None:
        return f"IAM cannot simulate {arn}"
    entry = {
        "ContextKeyName": f"aws:ResourceTag/{DEPLOYMENT}",
        "ContextKeyValues": [patient.deployment],
        "ContextKeyType": "string",
    }
    context = [entry, {**entry, "ContextKeyName": f"aws:RequestTag/{DEPLOYMENT}"}]
    context.append({**entry, "ContextKeyName": "ec2:MetadataHttpTokens", "ContextKeyValues": ["required"]})
    account, partition = source.split(":")[4], source.split(":")[1]
    try:
        answer = patient.calls.call(
            patient.regions[0],
            "simulate_principal_policy",
            service="iam",
            PolicySourceArn=source,
            ActionNames=list(rights),
            ResourceArns=[f"arn:{partition}:ec2:{region}:{account}:instance/*" for region in patient.regions],
            ContextEntries=context,
        )
    except CloudError as error:
        return words(error)
    decisions: dict[str, str] = {}
    for item in answer.get("EvaluationResults", ()):
        right, decision = str(item["EvalActionName"]), str(item["EvalDecision"])
        # One region that is refused is enough.
        decisions[right] = decision if decisions.get(right, "allowed") == "allowed" else decisions[right]
    return decisions


def _of_simulation(patient: Patient, right: str, region: str, simulated: Mapping[str, str] | str) -> Check:
    name = f"permission {right} {region}"
    fix = "allow iam:SimulatePrincipalPolicy, or run it again while a machine of this deployment lives"
    if not patient.examination.asks_writes:
        fix = "allow iam:SimulatePrincipalPolicy, or give --dry-runs: EC2's dry run, which changes nothing"
    if isinstance(simulated, str):
        return unknown(name, f"could not be asked: {simulated}", fix)
    decision = simulated.get(right)
    if decision is None:
        return unknown(name, "IAM did not say", fix)
    if decision == "allowed":
        return ok(name, "allowed, by IAM's simulation")
    if patient.examination.is_enforcing:
        return fail(name, f"{decision}, by IAM's simulation", POLICY_FIX)
    return warn(name, f"{decision}, by IAM's simulation; mode observe needs it not", f"before mode enforce, {POLICY_FIX}")
