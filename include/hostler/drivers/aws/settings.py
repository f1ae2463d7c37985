"""The ``clouds.aws`` part of fleet.yaml."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from hostler.config.clouds import CloudSettings, StrictModel, Tags
from hostler.model.enums import CapacityType

QueueUrl = Annotated[str, Field(pattern=r"^https?://\S+$", max_length=1024)]


class Selection(StrictModel):
    """Names things either by id or by tag; exactly one of the two.

    Attributes:
        ids: the cloud's ids. tags: every one must match; looked up in each region.
    """

    ids: tuple[str, ...] = ()
    tags: Tags = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.ids) == bool(self.tags):
            raise ValueError("name either ids or tags")
        return self


class AwsSettings(CloudSettings):
    """How machines are made on EC2.

    Attributes:
        image: an AMI id, an SSM parameter as ``ssm:/path``, or one of these per region.
        instance_profile: name of the node's IAM instance profile (it ships backups); None: none.
        subnets: one or more per zone; a zone without one is not used. None: the default subnet of each zone.
        security_groups: None: the VPC's default group.
        kms_key: key of the root volume; None: the account's default EBS key. Volumes are always encrypted.
        reservations: capacity reservation ids for capacity type ``reserved``.
        approve_capacity_blocks: must be true before a capacity block is used: it is paid in advance and not refunded.
        interruption_queue: address of an SQS queue to which EventBridge sends spot interruption warnings, or one per region;
            None: notices are asked of EC2 and heard on the node alone.
        call_timeout_s: connect plus read time-out of one call, 5 to 120.
    """

    image: str | dict[str, str]
    instance_profile: str | None = None
    subnets: Selection | None = None
    security_groups: Selection | None = None
    kms_key: str | None = None
    reservations: tuple[str, ...] = ()
    approve_capacity_blocks: bool = False
    interruption_queue: QueueUrl | dict[str, QueueUrl] | None = None
    root_volume_gib: Annotated[int, Field(ge=8, le=16384)] = 200
    call_timeout_s: Annotated[float, Field(ge=5, le=120)] = 30

    @model_validator(mode="after")
    def _image_in_each_region(self) -> Self:
        if isinstance(self.image, dict) and (missing := [region for region in self.regions if region not in self.image]):
            raise ValueError(f"image: no entry for region {', '.join(missing)}")
        if CapacityType.RESERVED in self.capacity_types and not self.reservations:
            raise ValueError("capacity_types has 'reserved': name the reservations")
        return self

    def queue_for(self, region: str) -> str | None:
        """Returns the address of the region's queue of interruption warnings; None when there is none."""
        if isinstance(self.interruption_queue, dict):
            return self.interruption_queue.get(region)
        return self.interruption_queue

    def image_for(self, region: str) -> str:
        """Returns the AMI id or ``ssm:/path`` for the region."""
        return self.image if isinstance(self.image, str) else self.image[region]
