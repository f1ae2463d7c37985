"""Performance floors: what a test must reach for as long as there is no fleet baseline."""

from dataclasses import dataclass
from typing import Final

from hostler.health.catalog.expectations import accelerator_facts, expectation
from hostler.health.catalog.limits import LIMITS
from hostler.health.catalog.tables import Row, rows

PEAKS: Final = {
    "gemm_fp16_tflops": ("fp16_tflops", "gemm_peak_ratio"),
    "memory_copy_gb_per_s": ("memory_gb_per_s", "memory_copy_peak_ratio"),
}
"""Metrics whose floor is a share of the data sheet's peak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The least that is good, in ``unit``, for a metric; where it comes from."""

    metric: str
    value: float
    unit: str
    scope: str
    source: str


def floor(metric: str, *, instance_type: str = "", accelerator: str = "", scope: str = "node") -> Floor | None:
    """Returns the floor of a metric, the most special row first; None when nothing is known: then it is not judged.

    Args:
        metric: such as ``all_reduce_gb_per_s`` or ``gemm_fp16_tflops``.
        scope: ``node``, ``two nodes`` or ``many nodes``: over what the test ran.
    """
    if metric in PEAKS:
        return _share_of_peak(metric, accelerator)
    for row in rows("floors"):
        if row["metric"] == metric and row["scope"] == scope and row["instance_type"] == instance_type and instance_type:
            return _floor(row)
    joined = _joined_by(instance_type, accelerator)
    for row in rows("floors"):
        is_general = not row["instance_type"] and row["accelerator"] in {"", accelerator, joined}
        if is_general and row["metric"] == metric and row["scope"] == scope:
            return _floor(row)
    return None


def _joined_by(instance_type: str, accelerator: str) -> str:
    """Returns nvlink or pcie: how the accelerators of one node are joined; pcie when that is not known."""
    known = expectation(instance_type) if instance_type else None
    facts = accelerator_facts(accelerator)
    links = (known.nvlink_count if known else None) if instance_type else facts.nvlink_count if facts else None
    return "nvlink" if links else "pcie"


def _floor(row: Row) -> Floor:
    return Floor(metric=row["metric"], value=float(row["floor"]), unit=row["unit"], scope=row["scope"], source=row["source"])


def _share_of_peak(metric: str, accelerator: str) -> Floor | None:
    facts = accelerator_facts(accelerator)
    if facts is None:
        return None
    column, share = PEAKS[metric]
    peak, ratio = float(getattr(facts, column)), LIMITS[share].value
    unit = "TFLOPS" if column == "fp16_tflops" else "GB/s"
    source = f"{ratio:.0%} of {peak:g} {unit} ({facts.source})"
    return Floor(metric=metric, value=peak * ratio, unit=unit, scope="node", source=source)
