"""The checks that a batch of prices must pass before anybody plans with it, as a Great Expectations suite.

Great Expectations takes seconds and hundreds of MB to load: it is imported by ``judge`` alone, in the task that refreshes.
"""

import logging
import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hostler.catalog.price_batch import COLUMNS, MOST_APART, PriceBatch
from hostler.model.enums import CapacityType

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

_SHOWN: Final = 3


class ChecksMissingError(Exception):
    """Great Expectations is not installed: install Hostler with the extra ``checks``. No batch is accepted unchecked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the suite says of a batch.

    Attributes:
        is_good: every check held. problems: for each that did not, what it is and the first rows; empty when good.
        report: first page of the data docs.
    """

    is_good: bool
    problems: tuple[str, ...]
    report: Path


class Judge:
    """Judges batches; loads Great Expectations at the first one and keeps it.

    Args:
        folder: where data docs go, one folder a cloud and batch. kept: how many of a cloud's are kept, 1 or more.
    """

    def __init__(self, folder: Path, kept: int = 30) -> None:
        self._folder = folder
        self._kept = max(1, kept)
        self._gx: Any = None

    def judge(self, batch: PriceBatch, *, name: str, accepts_jumps: bool = False) -> Judgement:
        """Returns what the suite says.

        Args:
            name: of the batch, unlike any other of the cloud: the folder of its data docs. accepts_jumps: a person has seen
                that the prices have really moved.

        Raises:
            ChecksMissingError: nothing was judged.
        """
        gx = self._load()
        site = self._folder / batch.cloud / name
        context = _context(gx, site)
        frame = _frame(batch)
        source = context.data_sources.add_pandas(name="prices")
        definition = source.add_dataframe_asset(name=batch.cloud).add_batch_definition_whole_dataframe("batch")
        checks = _expectations(gx.expectations, batch, accepts_jumps=accepts_jumps)
        for words, expectation in checks:
            expectation.meta = {"check": words}
        # All at once: adding one by one writes the whole suite anew each time.
        suite = context.suites.add(
            gx.ExpectationSuite(name=f"prices of {batch.cloud}", expectations=[expectation for _, expectation in checks])
        )
        validation = context.validation_definitions.add(
            gx.ValidationDefinition(name=f"prices of {batch.cloud}", data=definition, suite=suite)
        )
        checkpoint = gx.Checkpoint(
            name="refresh",
            validation_definitions=[validation],
            actions=[gx.checkpoint.UpdateDataDocsAction(name="docs", site_names=["prices"])],
            result_format="SUMMARY",
        )
        run = checkpoint.run(batch_parameters={"dataframe": frame}, run_id=gx.RunIdentifier(run_name=name))
        results = [result for outcome in run.run_results.values() for result in outcome.results]
        _without_films(site)
        self._prune(site)
        problems = tuple(_words(result, batch) for result in results if not result.success)
        return Judgement(is_good=bool(run.success), problems=problems, report=site / "index.html")

    def _load(self) -> Any:
        """Imports Great Expectations, silent and without telling its makers."""
        if self._gx is None:
            os.environ["GX_ANALYTICS_ENABLED"] = "false"
            for name in ("great_expectations", "posthog"):
                logging.getLogger(name).setLevel(logging.ERROR)
            try:
                with warnings.catch_warnings():
                    # It imports a module of the standard library that is deprecated since Python 3.11.
                    warnings.simplefilter("ignore", DeprecationWarning)
                    import great_expectations as gx
                    import great_expectations.checkpoint
                    import great_expectations.expectations
                    from great_expectations.core.run_identifier import RunIdentifier
            except ImportError as error:
                raise ChecksMissingError("great_expectations is not installed: install hostler[checks]") from error
            gx.RunIdentifier = RunIdentifier
            self._gx = gx
        return self._gx

    def _prune(self, newest: Path) -> None:
        """Removes the oldest reports; names sort by time."""
        reports = sorted(path for path in newest.parent.iterdir() if path.is_dir() and path != newest)
        for old in reports[: max(0, len(reports) + 1 - self._kept)]:
            shutil.rmtree(old, ignore_errors=True)


def _without_films(site: Path) -> None:
    """Takes out two films of 3.4 MB that show how the pages are used: they are five times the rest of a report."""
    for film in (site / "static" / "images").glob("*.gif"):
        film.unlink(missing_ok=True)


def _context(gx: Any, site: Path) -> Any:
    """Returns a context in memory whose data docs are static pages in ``site``."""
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )

    site.mkdir(parents=True, exist_ok=True)
    pages = {
        "class_name": "SiteBuilder",
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(site)},
    }
    config = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
        data_docs_sites={"prices": pages},
        progress_bars=ProgressBarsConfig(globally=False, metric_calculations=False),
        analytics_enabled=False,
    )
    return gx.get_context(mode="ephemeral", project_config=config)


def _frame(batch: PriceBatch) -> Any:
    """Returns the batch as a data frame whose numeric columns are numeric even when they are empty."""
    import pandas as pd

    frame = pd.DataFrame(batch.table(), columns=list(COLUMNS))
    for name in COLUMNS[COLUMNS.index("price_per_hour") :]:
        frame[name] = frame[name].astype("float64")
    return frame


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


def _words(result: Any, batch: PriceBatch) -> str:
    """Returns a check that failed, as a sentence with the first rows that it failed on."""
    check = result.expectation_config.meta["check"]
    if result.exception_info and result.exception_info.get("raised_exception"):
        return f"{check}: could not be checked"
    found: Mapping[str, Any] = result.result
    indexes: Sequence[int] = found.get("partial_unexpected_index_list") or ()
    rows = [batch.rows[index] for index in indexes[:_SHOWN] if isinstance(index, int)]
    shown = ", ".join(f"{row.region}/{row.zone}/{row.instance_type}/{row.capacity_type}: {row.price_per_hour}" for row in rows)
    if "unexpected_count" in found:
        return f"{check}: {found['unexpected_count']} rows{f', such as {shown}' if shown else ''}"
    return f"{check}: found {found.get('observed_value')}"
