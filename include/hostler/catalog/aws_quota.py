"""Which EC2 quota a machine counts against, and in which unit. EC2 counts vCPUs per family bucket, never machines or GPUs."""

import re
from dataclasses import dataclass
from typing import Final

from hostler.model.enums import CapacityType

UNIT: Final = "vCPU"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """One quota of the service ``ec2`` in a region. ``code``: its id at Service Quotas; the name is what the console shows."""

    code: str
    name: str
    unit: str = UNIT


_ON_DEMAND: Final = {
    "g": Quota(code="L-DB2E81BA", name="Running On-Demand G and VT instances"),
    "gr": Quota(code="L-DB2E81BA", name="Running On-Demand G and VT instances"),
    "p": Quota(code="L-417A185B", name="Running On-Demand P instances"),
    "inf": Quota(code="L-1945791B", name="Running On-Demand Inf instances"),
    "trn": Quota(code="L-2C3B7624", name="Running On-Demand Trn instances"),
    "dl": Quota(code="L-6E869C2A", name="Running On-Demand DL instances"),
}
"""Family letters -> quota. Source: Service Quotas listings of service ``ec2`` published by several users, read 2026-12-01. The
public table that puts p3.2xlarge under G (skypilot-catalog v5) contradicts them and is not followed.
"""

_SPOT: Final = {
    "g": Quota(code="L-3819A6DF", name="All G and VT Spot Instance Requests"),
    "gr": Quota(code="L-3819A6DF", name="All G and VT Spot Instance Requests"),
    "p": Quota(code="L-7212CCBC", name="All P4, P3 and P2 Spot Instance Requests"),
    "inf": Quota(code="L-B5D1601B", name="All Inf Spot Instance Requests"),
    "trn": Quota(code="L-6B0D517C", name="All Trn Spot Instance Requests"),
    "dl": Quota(code="L-85EED4F7", name="All DL Spot Instance Requests"),
}
"""As above, for spot."""

_SPOT_P5: Final = Quota(code="L-C4BD4855", name="All P5 Spot Instance Requests")
"""p5, p5e and p5en have a spot bucket of their own. Source as above. Which one p6 falls under is told in two ways: unknown."""


def quota_for(instance_type: str, capacity_type: CapacityType) -> Quota | None:
    """Returns the quota that a machine of this type counts against; None when it is not known.

    A machine in a capacity reservation counts as on-demand.
    """
    family = re.match(r"([a-z]+)(\d*)", instance_type)
    if family is None:
        return None
    letters, generation = family.groups()
    if capacity_type is not CapacityType.SPOT:
        return _ON_DEMAND.get(letters)
    if letters == "p" and generation not in {"2", "3", "4"}:
        return _SPOT_P5 if generation == "5" else None
    return _SPOT.get(letters)
