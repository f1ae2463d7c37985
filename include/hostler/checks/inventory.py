"""What an inventory must be before anything in it is ended: fresh, complete, plausible."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

TEXTS: Final = ("key", "thing_id", "place", "kind", "owner")
OLDEST_S: Final = 900.0
"""Age of the list of a region."""

LEAST_LEFT: Final = 0.50
"""Part of the last inventory's size that must be there: half an account does not vanish between two sweeps."""

MANY_ORPHANS: Final = 10
MOST_ORPHANS: Final = 0.50
"""When more than ten things, and more than half of ours, seem to be nobody's, the ledger is more likely to be the wrong one."""

MOST_USD_PER_MONTH: Final = 250_000.0
"""Eight of the dearest accelerators of the published lists (17.8 USD an hour each, see ``catalog.price_suite``) for a month come to
104,000 USD; with room.
"""

MOST_GIB: Final = 65_536.0
"""Largest volume that a cloud of ours sells: 64 TiB (EBS io2 Block Express)."""


def checks(gxe: Any, rows: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Returns the checks, each with its name."""
    return [*_complete(gxe, facts), *_plausible(gxe, rows), _fresh(gxe)]


def _fresh(gxe: Any) -> tuple[str, Any]:
    return "fresh: lists", gxe.ExpectColumnValuesToBeBetween(column="age_s", min_value=0, max_value=OLDEST_S)


def _complete(gxe: Any, facts: Mapping[str, Any]) -> list[tuple[str, Any]]:
    # A region without a single thing is no row: those that failed are named by their errors instead.
    failed = [str(error) for error in facts["errors"]]
    least = max(1, int(facts["last_count"] * LEAST_LEFT))
    return [
        (
            f"complete: every region was listed{f' ({failed[0]})' if failed else ''}",
            gxe.ExpectColumnDistinctValuesToContainSet(column="place", value_set=["not listed"] if failed else []),
        ),
        ("complete: only regions of ours", gxe.ExpectColumnValuesToBeInSet(column="place", value_set=list(facts["places"]))),
        (
            "complete: the ledger's own machines",
            gxe.ExpectColumnDistinctValuesToContainSet(column="thing_id", value_set=list(facts["known"])),
        ),
        ("complete: as many as last time", gxe.ExpectTableRowCountToBeBetween(min_value=least)),
    ]


def _plausible(gxe: Any, rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, Any]]:
    found = [
        ("plausible: each thing once", gxe.ExpectColumnValuesToBeUnique(column="key")),
        ("plausible: kinds", gxe.ExpectColumnValuesToBeInSet(column="kind", value_set=["machine", "volume", "address"])),
        ("plausible: sizes", gxe.ExpectColumnValuesToBeBetween(column="size_gib", min_value=1, max_value=MOST_GIB)),
        (
            "plausible: costs",
            gxe.ExpectColumnValuesToBeBetween(column="usd_per_month", min_value=0, max_value=MOST_USD_PER_MONTH),
        ),
    ]
    if sum(row["is_orphan"] == 1 for row in rows) > MANY_ORPHANS:
        share = gxe.ExpectColumnMeanToBeBetween(column="is_orphan", max_value=MOST_ORPHANS)
        found.append(("plausible: orphans among ours", share))
    return found
