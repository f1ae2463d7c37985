"""All checks of an account, in the order in which they are best read."""

from collections.abc import Iterator

from hostler.cloud.doctor import Check, CheckStatus, unknown
from hostler.drivers.aws.doctor import account, doors, permissions, places, quotas
from hostler.drivers.aws.doctor.asking import Patient, guarded


def examine(patient: Patient) -> tuple[Check, ...]:
    """Makes every check; see ``SupportsDoctor.examine``. Without credentials the others are unknown, and no call is made."""
    arn, checks = account.who(patient)
    if arn is None:
        return (*checks, *_not_asked(patient, checks[0].status))
    simulated = permissions.simulate(patient, arn, ("ec2:RunInstances", "ec2:TerminateInstances"))
    for region in patient.regions:
        checks += guarded(f"permission reads {region}", lambda region=region: permissions.check_reads(patient, region))  # type: ignore[misc]
        checks += guarded(
            f"permission writes {region}",
            lambda region=region: permissions.check_writes(patient, region, simulated),  # type: ignore[misc]
        )
        checks += _of_region(patient, region)
    checks += guarded("instance profile", lambda: places.check_profile(patient))
    checks += guarded("quotas", lambda: quotas.check_quotas(patient))
    return tuple(checks)


def _of_region(patient: Patient, region: str) -> Iterator[Check]:
    yield from guarded(f"image {region}", lambda: places.check_image(patient, region))
    yield from guarded(f"subnets {region}", lambda: places.check_subnets(patient, region))
    yield from guarded(f"security groups {region}", lambda: doors.check_groups(patient, region))
    yield from guarded(f"disk key {region}", lambda: places.check_key(patient, region))
    yield from guarded(f"reservations {region}", lambda: places.check_reservations(patient, region))


def _not_asked(patient: Patient, status: CheckStatus) -> Iterator[Check]:
    """Names what was not looked at, so that nobody takes a short list for a good one."""
    why = "credentials do not work" if status is CheckStatus.FAIL else "the cloud does not answer"
    for region in patient.regions:
        for name in ("permission reads", "permission writes", "image", "subnets", "security groups", "disk key"):
            yield unknown(f"{name} {region}", f"not asked: {why}", "mend the credentials first")
    for name in ("instance profile", "quotas"):
        yield unknown(name, f"not asked: {why}", "mend the credentials first")
