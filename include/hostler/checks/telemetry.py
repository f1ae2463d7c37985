"""What telemetry must be before a lease is ended for being idle: fresh, complete, plausible."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

TEXTS: Final = ("node", "provider_id")
MOST: Final = 0.80
"""Nodes that must have answered, freshly and for all accelerators: some are always away or sick, and count as busy by
themselves; when many are, the fault is more likely on our side.
"""

OLDEST_S: Final = 120.0
"""Age of a node's newest sample: it takes one for the answer, so an older one is not from this look."""

LEAST_AT_WORK: Final = 0.50
"""Nodes with a running job that must have shown any utilisation: when most show none, the sensor is broken, not the work."""


def checks(gxe: Any, rows: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Returns the checks, each with its name."""
    return [*_complete(gxe, facts), *_fresh(gxe), *_plausible(gxe, rows)]


def _complete(gxe: Any, facts: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [
        ("complete: a row for each node", gxe.ExpectTableRowCountToEqual(value=int(facts["node_count"]))),
        ("complete: each node once", gxe.ExpectColumnValuesToBeUnique(column="node")),
        ("complete: each machine once", gxe.ExpectColumnValuesToBeUnique(column="provider_id")),
        (
            "complete: nodes that answered",
            gxe.ExpectColumnValuesToBeBetween(column="is_answered", min_value=1, mostly=MOST),
        ),
        (
            "complete: accelerators",
            gxe.ExpectColumnPairValuesToBeEqual(
                column_A="accelerators_told",
                column_B="accelerators_bought",
                ignore_row_if="either_value_is_missing",
                mostly=MOST,
            ),
        ),
    ]


def _fresh(gxe: Any) -> list[tuple[str, Any]]:
    newest = gxe.ExpectColumnValuesToBeBetween(column="newest_age_s", min_value=0, max_value=OLDEST_S, mostly=MOST)
    return [("fresh: newest sample", newest)]


def _plausible(gxe: Any, rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, Any]]:
    between = {"min_value": 0, "max_value": 1}
    found = [
        (f"plausible: {name}", gxe.ExpectColumnValuesToBeBetween(column=name, **between))
        for name in ("least_ratio", "most_ratio", "least_cpu_ratio", "most_cpu_ratio")
    ]
    if any(row["most_ratio_at_work"] is not None for row in rows):
        at_work = gxe.ExpectColumnValuesToBeBetween(
            column="most_ratio_at_work", min_value=0, strict_min=True, mostly=LEAST_AT_WORK
        )
        found.append(("plausible: nodes at work show it", at_work))
    return found
