"""A published table of EC2 quota codes by type: read to be checked, not to be followed."""

from typing import Final

from hostler.catalog.aws_quota import quota_for
from hostler.catalog.cells import Cells
from hostler.catalog.errors import CatalogError
from hostler.catalog.gather import Gathering, Source, column_indexes
from hostler.model.enums import CapacityType

COLUMNS: Final = frozenset({"InstanceType", "OnDemandQuotaCode", "SpotQuotaCode"})


def read_quota_codes(cells: Cells, source: Source, into: Gathering) -> None:
    """Remarks on each code that is not the family's; the family rule of ``aws_quota`` stays in force.

    A quota holds for a family, so one type cannot be under another's; the table that puts p3.2xlarge under G is wrong.

    Raises:
        CatalogError: a row is broken and nothing may be.
    """
    at = column_indexes(cells, "InstanceType", "OnDemandQuotaCode", "SpotQuotaCode")
    for line, row in into.rows(cells):
        instance_type, on_demand, spot = (row[index].strip() for index in at)
        if "." not in instance_type:
            problem = f"InstanceType {instance_type!r} is not of the form family.size"
            into.refuse(CatalogError(source.name, line, problem))
            continue
        for capacity_type, code in ((CapacityType.ON_DEMAND, on_demand), (CapacityType.SPOT, spot)):
            known = quota_for(instance_type, capacity_type)
            if code and known is not None and known.code != code:
                into.remarks.append(
                    f"{source.at(line)}: {instance_type} {capacity_type} is under {known.code} ({known.name}), not under {code}"
                )
