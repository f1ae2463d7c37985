"""The tags that say a machine is ours, and the marks of other owners."""

from collections.abc import Mapping

DEPLOYMENT = "hostler:deployment"
LEASE = "hostler:lease"
SLOT = "hostler:slot"
INTENT = "hostler:intent"
TENANT = "hostler:tenant"
NAME = "Name"

OWNER_PREFIXES = (
    "alpha.eksctl.io/",
    "aws-parallelcluster-",
    "aws:autoscaling:",
    "aws:batch",
    "aws:cloudformation:",
    "aws:ec2:fleet-id",
    "aws:ec2spot:fleet-request-id",
    "aws:ecs:",
    "aws:eks:",
    "aws:elasticmapreduce:",
    "aws:pcs:",
    "aws:servicecatalog:",
    "eks:",
    "elasticbeanstalk:",
    "karpenter.k8s.aws/",
    "karpenter.sh/",
    "k8s.io/",
    "kops.k8s.io/",
    "kubernetes.io/cluster/",
    "kubernetescluster",
    "parallelcluster:",
    "ray-cluster-name",
    "ray-node-type",
    "sagemaker:",
    "sigs.k8s.io/cluster-api-provider-aws/",
    "skypilot-",
)
"""How tag keys begin that other owners put on their machines, in lower case. Source: the owners' public docs, 2026-12-01."""


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
    return tags.get(DEPLOYMENT) != deployment or any(key.lower().startswith(OWNER_PREFIXES) for key in tags)
