"""The policy document, with what the account can tell of itself."""

from collections.abc import Mapping
from typing import Any

from hostler.cloud.doctor import PolicyFor
from hostler.cloud.errors import CloudError
from hostler.drivers.aws.doctor.asking import Patient
from hostler.drivers.aws.policy import Place, controller_policy, nodes_policy


def policy(patient: Patient, whose: PolicyFor, *, account: str | None) -> Mapping[str, Any]:
    """See ``SupportsPolicy.policy``. Two reads at most; neither has to succeed."""
    known = account or _account(patient)
    place = Place(
        deployment=patient.deployment,
        settings=patient.settings,
        examination=patient.examination,
        account=known or "*",
        roles=_roles(patient) if known and whose == "controller" else (),
    )
    return controller_policy(place) if whose == "controller" else nodes_policy(place)


def _account(patient: Patient) -> str | None:
    try:
        answer = patient.calls.call(patient.regions[0], "get_caller_identity", service="sts")
    except CloudError:
        return None
    return str(answer.get("Account") or "") or None


def _roles(patient: Patient) -> tuple[str, ...]:
    """Returns the roles of the nodes' profile; empty when it has none, or may not be looked at."""
    profile = patient.settings.instance_profile
    if profile is None:
        return ()
    short = profile.rpartition("/")[2]
    try:
        answer = patient.calls.call(patient.regions[0], "get_instance_profile", service="iam", InstanceProfileName=short)
    except CloudError:
        return ()
    return tuple(str(role["Arn"]) for role in answer["InstanceProfile"].get("Roles", ()))
