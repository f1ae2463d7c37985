"""What a front asks of the state model."""

from dataclasses import dataclass, field
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOrder:
    """One machine to launch, as a front understood it. ``fingerprint``: everything that a token binds."""

    region: str
    zone: str
    instance_type: str
    capacity_type: str
    image_id: str
    image: str
    subnet_id: str
    group_ids: tuple[str, ...]
    token: str | None
    fingerprint: str
    tags: dict[str, str]
    user_data: str = field(repr=False)
    max_spot_price: Decimal | None = None
    profile_arn: str | None = None
    role: str | None = None
    shutdown_behaviour: str = "stop"
    is_protected: bool = False
    is_encrypted: bool = False
    kms_key_id: str | None = None
    http_tokens: str = "optional"
    disk_gib: int = 100
