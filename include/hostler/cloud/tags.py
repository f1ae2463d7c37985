"""The tags that say a machine is ours, and the marks of other owners."""

from collections.abc import Mapping

DEPLOYMENT = "hostler:deployment"
LEASE = "hostler:lease"
SLOT = "hostler:slot"
INTENT = "hostler:intent"
TENANT = "hostler:tenant"
NAME = "Name"

OWNER_PREFIXES = (
    "aws:autoscaling:",
    "aws:eks:",
    "eks:",
    "karpenter.sh/",
    "kubernetes.io/cluster/",
    "aws:ec2:fleet-id",
    "aws:elasticmapreduce:",
    "aws:batch",
    "parallelcluster:",
    "sagemaker:",
)
"""Tag keys that other owners put on their machines. Source: the owners' public docs, read 2026-12-01."""


def tags_for(
    *, deployment: str, lease_id: str, slot_index: int, intent_id: str, tenant: str, extra: Mapping[str, str]
) -> dict[str, str]:
    """Returns all tags of a machine; ours win over ``extra``."""
    return {
        **extra,
        NAME: f"hostler-{intent_id}",
        DEPLOYMENT: deployment,
        LEASE: lease_id,
        SLOT: str(slot_index),
        INTENT: intent_id,
        TENANT: tenant,
    }


def is_foreign(tags: Mapping[str, str], deployment: str) -> bool:
    """True unless the machine carries exactly our deployment's id and no other owner's mark."""
    return tags.get(DEPLOYMENT) != deployment or any(key.startswith(OWNER_PREFIXES) for key in tags)
