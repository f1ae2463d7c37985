"""What Service Quotas grants against what fleet.yaml's limits ask for."""

from collections.abc import Iterator
from typing import Any, Final

from hostler.catalog.aws import AwsInstanceType, load
from hostler.catalog.aws_quota import Quota, quota_for
from hostler.cloud.doctor import Check, fail, ok, unknown, warn
from hostler.cloud.errors import CloudError
from hostler.drivers.aws.doctor.asking import POLICY_FIX, Patient, words

_NO_SUCH: Final = "NoSuchResourceException"
_CONSOLE: Final = "ask for more at Service Quotas, Amazon EC2, {name} ({code}), in {region}"


def check_quotas(patient: Patient) -> Iterator[Check]:
    """Yields a check for each quota that accelerators of the region count against, and one that sums them up."""
    for region in patient.regions:
        granted: list[float] = []
        for quota, types in sorted(_quotas(patient, region).items(), key=lambda item: item[0].name):
            name = f"quota {region} {quota.code}"
            try:
                vcpus = _value(patient, region, quota)
            except CloudError as error:
                yield unknown(name, f"{quota.name}: {words(error)}", POLICY_FIX)
                continue
            granted.append(vcpus)
            yield _judge(patient, region, quota, vcpus, types)
        if granted and not any(granted):
            yield fail(f"quotas {region}", "no accelerator can be bought: every quota that was told is 0", _any_fix(region))


def _any_fix(region: str) -> str:
    return f"ask for one of the quotas above at Service Quotas in {region}; it takes hours to days"


def _quotas(patient: Patient, region: str) -> dict[Quota, tuple[AwsInstanceType, ...]]:
    """Returns the quotas in play: those of types with accelerators, without those
    whose price in the region is known to be above the limit.
    """
    found: dict[Quota, list[AwsInstanceType]] = {}
    for item in load().values():
        price = item.price_usd_per_hour(region)
        if not item.accelerator_count or (price is not None and price > patient.examination.usd_per_hour):
            continue
        for kind in patient.settings.capacity_types:
            # A reservation is inside the on-demand quota.
            quota = quota_for(item.instance_type, kind)
            if quota is not None and item not in found.setdefault(quota, []):
                found[quota].append(item)
    return {quota: tuple(sorted(types, key=lambda item: item.vcpu_count)) for quota, types in found.items()}


def _value(patient: Patient, region: str, quota: Quota) -> float:
    """Returns the quota in its unit; the default where none was ever applied for."""
    asked: dict[str, Any] = {"ServiceCode": "ec2", "QuotaCode": quota.code}
    try:
        answer = patient.calls.call(region, "get_service_quota", service="service-quotas", **asked)
    except CloudError as error:
        if error.code != _NO_SUCH:
            raise
        answer = patient.calls.call(region, "get_aws_default_service_quota", service="service-quotas", **asked)
    return float(answer["Quota"]["Value"])


def _judge(patient: Patient, region: str, quota: Quota, vcpus: float, types: tuple[AwsInstanceType, ...]) -> Check:
    """Says how many machines fit, of the smallest type and of the largest."""
    name, nodes = f"quota {region} {quota.code}", patient.examination.nodes
    fix = _CONSOLE.format(name=quota.name, code=quota.code, region=region)
    smallest, largest = types[0], types[-1]
    fits = int(vcpus // smallest.vcpu_count)
    text = f"{quota.name}: {vcpus:.0f} {quota.unit}"
    if fits < 1:
        return warn(name, f"{text}: not one {smallest.instance_type} ({smallest.vcpu_count} {quota.unit})", fix)
    text = f"{text}: {fits} x {smallest.instance_type}, {int(vcpus // largest.vcpu_count)} x {largest.instance_type}"
    if fits < nodes:
        return warn(name, f"{text}; limits.nodes is {nodes}", fix)
    return ok(name, text)
