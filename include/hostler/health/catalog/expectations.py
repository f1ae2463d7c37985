"""What a node must have: accelerators, links, network interfaces, memory; by instance type or offering."""

from dataclasses import dataclass
from functools import lru_cache

from hostler.catalog.aws import load as aws_types
from hostler.health.catalog.tables import rows
from hostler.model.offering import Offering


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorFacts:
    """One model. nvlink_count: of the form that has NVLink, 0 for models without; memory_mib as the device tells it."""

    accelerator: str
    nvlink_count: int
    memory_mib: int
    remaps_rows: bool
    fp16_tflops: float
    memory_gb_per_s: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a machine of an instance type has. None: not known, so not judged.

    Attributes:
        nvlink_count: active links of each accelerator; 0 for none. accelerator_memory_mib: of each, as the device tells it.
    """

    instance_type: str
    accelerator: str
    accelerator_count: int
    nic_count: int | None
    nvlink_count: int | None
    accelerator_memory_mib: int | None
    remaps_rows: bool
    source: str


@lru_cache(maxsize=1)
def _accelerators() -> dict[str, AcceleratorFacts]:
    return {
        row["accelerator"]: AcceleratorFacts(
            accelerator=row["accelerator"],
            nvlink_count=int(row["nvlink_count"]),
            memory_mib=int(row["memory_mib"]),
            remaps_rows=row["remaps_rows"] == "yes",
            fp16_tflops=float(row["fp16_tflops"]),
            memory_gb_per_s=float(row["memory_gb_per_s"]),
            source=row["source"],
        )
        for row in rows("accelerators")
    }


def accelerator_facts(accelerator: str) -> AcceleratorFacts | None:
    """Returns what is known of a model by its short name; None when it is not in the table."""
    return _accelerators().get(accelerator)


def expect(accelerator: str, count: int) -> Expectation:
    """Returns what is expected of any machine with so many accelerators of a model: several with NVLink are joined by it."""
    facts = accelerator_facts(accelerator)
    links = None if facts is None else facts.nvlink_count if count > 1 else 0
    return Expectation(
        instance_type="",
        accelerator=accelerator,
        accelerator_count=count,
        nic_count=None,
        nvlink_count=links,
        accelerator_memory_mib=facts.memory_mib if facts else None,
        remaps_rows=bool(facts and facts.remaps_rows),
        source=facts.source if facts else "not known",
    )


def expect_offering(offering: Offering) -> Expectation:
    """Returns what was bought: the offering's own counts, and what the tables know of its instance type."""
    known = expectation(offering.instance_type)
    base = known or expect(offering.accelerator, offering.accelerator_count)
    return Expectation(
        instance_type=offering.instance_type,
        accelerator=offering.accelerator,
        accelerator_count=offering.accelerator_count,
        nic_count=offering.nic_count if offering.nic_count is not None else base.nic_count,
        nvlink_count=base.nvlink_count,
        accelerator_memory_mib=base.accelerator_memory_mib,
        remaps_rows=base.remaps_rows,
        source=base.source,
    )


def expectation(instance_type: str) -> Expectation | None:
    """Returns what an instance type has, of any cloud; None when no table knows it."""
    for row in rows("instance_types"):
        if row["instance_type"] == instance_type:
            base = expect(row["accelerator"], int(row["accelerator_count"]))
            return Expectation(
                instance_type=instance_type,
                accelerator=base.accelerator,
                accelerator_count=base.accelerator_count,
                nic_count=int(row["nic_count"]) if row["nic_count"] else None,
                nvlink_count=int(row["nvlink_count"]) if row["nvlink_count"] else None,
                accelerator_memory_mib=base.accelerator_memory_mib,
                remaps_rows=base.remaps_rows,
                source=row["source"],
            )
    found = aws_types().get(instance_type)
    if found is None or not found.accelerator_count:
        return None
    base = expect(found.accelerator, found.accelerator_count)
    return Expectation(
        instance_type=instance_type,
        accelerator=base.accelerator,
        accelerator_count=base.accelerator_count,
        nic_count=found.efa_count or None,
        nvlink_count=base.nvlink_count,
        accelerator_memory_mib=base.accelerator_memory_mib,
        remaps_rows=base.remaps_rows,
        source="hostler.catalog.aws; " + base.source,
    )
