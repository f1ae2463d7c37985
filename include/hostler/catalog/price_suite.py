"""The checks that a batch of prices must pass before anybody plans with it, as a Great Expectations suite."""

from pathlib import Path
from typing import Any, Final

from hostler.catalog.price_batch import COLUMNS, MOST_APART, PriceBatch
from hostler.checks.suite import Batch, ChecksMissingError, Judgement, SuiteRunner
from hostler.model.enums import CapacityType

__all__ = ["ChecksMissingError", "Judge", "Judgement"]

LEAST_USD_PER_ACCELERATOR: Final = 0.005
MOST_USD_PER_ACCELERATOR: Final = 100.0
"""Bounds of a price that can be meant. Source: the cheapest row of the published lists is a spot T4 at 0.0684 USD, the dearest an
on-demand B300 at 17.8 USD; both with room.
"""

SPOT_SHARE: Final = 0.90
"""How many of the spot prices must be within 20 % of the last ones: single ones do move so far in a day."""

SECOND_SOURCE_SHARE: Final = 0.90
"""How many of the prices must be within 20 % of the second source: published lists are known to be wrong in single regions."""

LEAST_COVERAGE: Final = 0.80
"""How many rows of the last batch's number must be there."""


class Judge:
    """Judges batches of prices; loads Great Expectations at the first one and keeps it.

    Args:
        folder: where data docs go, one folder a cloud and batch. kept: how many of a cloud's are kept, 1 or more.
    """

    def __init__(self, folder: Path, kept: int = 30) -> None:
        self._runner = SuiteRunner("prices", folder, kept)

    def judge(self, batch: PriceBatch, *, name: str, accepts_jumps: bool = False) -> Judgement:
        """Returns what the suite says.

        Args:
            name: of the batch, unlike any other of the cloud: the folder of its data docs. accepts_jumps: a person has seen
                that the prices have really moved.

        Raises:
            ChecksMissingError: nothing was judged.
        """
        table = Batch(
            subject=batch.cloud,
            name=name,
            table=batch.table(),
            numbers=COLUMNS[COLUMNS.index("price_per_hour") :],
            row_words=lambda index: _row_words(batch, index),
        )
        return self._runner.judge(table, lambda gxe: _expectations(gxe, batch, accepts_jumps=accepts_jumps))


def _row_words(batch: PriceBatch, index: int) -> str:
    row = batch.rows[index]
    return f"{row.region}/{row.zone}/{row.instance_type}/{row.capacity_type}: {row.price_per_hour}"


def _expectations(gxe: Any, batch: PriceBatch, *, accepts_jumps: bool) -> list[tuple[str, Any]]:
    """Returns the checks, each with its name."""
    checks = [*_schema(gxe, batch), *_ranges(gxe), *_second_source(gxe), *_coverage(gxe, batch)]
    return checks if accepts_jumps else [*checks, *_jumps(gxe)]


def _schema(gxe: Any, batch: PriceBatch) -> list[tuple[str, Any]]:
    key = ["cloud", "region", "zone", "instance_type", "capacity_type"]
    kinds = [CapacityType.ON_DEMAND.value, CapacityType.SPOT.value]
    return [
        ("schema: the columns", gxe.ExpectTableColumnsToMatchOrderedList(column_list=list(COLUMNS))),
        ("schema: one cloud", gxe.ExpectColumnValuesToBeInSet(column="cloud", value_set=[batch.cloud])),
        ("schema: a region", gxe.ExpectColumnValueLengthsToBeBetween(column="region", min_value=1)),
        ("schema: an instance type", gxe.ExpectColumnValueLengthsToBeBetween(column="instance_type", min_value=1)),
        ("schema: a capacity type", gxe.ExpectColumnValuesToBeInSet(column="capacity_type", value_set=kinds)),
        ("schema: a price", gxe.ExpectColumnValuesToNotBeNull(column="price_per_hour")),
        ("schema: one price a machine", gxe.ExpectCompoundColumnsToBeUnique(column_list=key)),
        ("currency: a code", gxe.ExpectColumnValuesToMatchRegex(column="currency", regex="^[A-Z]{3}$")),
        (
            "currency: the one that is sold in",
            gxe.ExpectColumnPairValuesToBeEqual(column_A="currency", column_B="expected_currency"),
        ),
        (
            "currency: one with a rate",
            gxe.ExpectColumnValuesToBeInSet(column="currency", value_set=["USD", *sorted(batch.rates)]),
        ),
    ]


def _ranges(gxe: Any) -> list[tuple[str, Any]]:
    return [
        ("range: above zero", gxe.ExpectColumnValuesToBeBetween(column="price_per_hour", min_value=0, strict_min=True)),
        (
            "range: USD an accelerator and hour",
            gxe.ExpectColumnValuesToBeBetween(
                column="usd_per_accelerator_hour", min_value=LEAST_USD_PER_ACCELERATOR, max_value=MOST_USD_PER_ACCELERATOR
            ),
        ),
    ]


def _jumps(gxe: Any) -> list[tuple[str, Any]]:
    return [
        (
            "jump: on demand against the last accepted batch",
            gxe.ExpectColumnValuesToBeBetween(column="on_demand_jump", max_value=MOST_APART),
        ),
        (
            "jump: spot against the last accepted batch",
            gxe.ExpectColumnValuesToBeBetween(column="spot_jump", max_value=MOST_APART, mostly=SPOT_SHARE),
        ),
    ]


def _second_source(gxe: Any) -> list[tuple[str, Any]]:
    return [
        (
            "second source: published price lists",
            gxe.ExpectColumnValuesToBeBetween(column="gap_to_second_source", max_value=MOST_APART, mostly=SECOND_SOURCE_SHARE),
        )
    ]


def _coverage(gxe: Any, batch: PriceBatch) -> list[tuple[str, Any]]:
    least = max(1, int(len(batch.last) * LEAST_COVERAGE))
    return [
        ("coverage: rows", gxe.ExpectTableRowCountToBeBetween(min_value=least)),
        ("coverage: regions", gxe.ExpectColumnDistinctValuesToContainSet(column="place", value_set=batch.places)),
    ]
