"""Runs a Great Expectations suite on one batch in memory: silent, with data docs as static pages, nothing else kept.

Great Expectations takes seconds and hundreds of MB to load: ``SuiteRunner`` imports it at its first judgement, never before.
"""

import logging
import os
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

Checks = Callable[[Any], Sequence[tuple[str, Any]]]
"""Gets the module of expectations; returns each check's name and expectation."""

_SHOWN: Final = 3
"""Rows that a failed check names."""


class ChecksMissingError(Exception):
    """Great Expectations is not installed: install Hostler with the extra ``checks``. No batch is accepted unchecked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a suite says of a batch.

    Attributes:
        is_good: every check held. problems: for each that did not, what it is and the first rows; empty when good.
        report: first page of the data docs.
    """

    is_good: bool
    problems: tuple[str, ...]
    report: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A table to be judged.

    Attributes:
        subject: whose batch; a folder of the data docs. name: unlike any other of the subject; sorts by time.
        table: column -> values, all of one length; the order of the columns is kept. numbers: columns that are numeric even
            when they are empty. row_words: how a row is named to a person, by its index.
    """

    subject: str
    name: str
    table: Mapping[str, Sequence[Any]]
    numbers: Sequence[str]
    row_words: Callable[[int], str]


class SuiteRunner:
    """Judges batches; loads Great Expectations at the first one and keeps it.

    Args:
        title: what the batches are, such as ``prices``. folder: where data docs go, one folder a subject and batch.
        kept: how many of a subject's are kept, 1 or more.
    """

    def __init__(self, title: str, folder: Path, kept: int = 30) -> None:
        self._title = title
        self._folder = folder
        self._kept = max(1, kept)
        self._gx: Any = None

    def judge(self, batch: Batch, checks: Checks) -> Judgement:
        """Returns what the suite says.

        Raises:
            ChecksMissingError: nothing was judged.
        """
        gx = self._load()
        site = self._folder / batch.subject / batch.name
        results, is_good = self._run(gx, batch, checks, _context(gx, site, self._title))
        _without_films(site)
        self._prune(site)
        problems = tuple(_words(result, batch) for result in results if not result.success)
        return Judgement(is_good=is_good, problems=problems, report=site / "index.html")

    def _run(self, gx: Any, batch: Batch, checks: Checks, context: Any) -> tuple[list[Any], bool]:
        source = context.data_sources.add_pandas(name=self._title)
        definition = source.add_dataframe_asset(name=batch.subject).add_batch_definition_whole_dataframe("batch")
        name = f"{self._title} of {batch.subject}"
        suite = context.suites.add(gx.ExpectationSuite(name=name, expectations=_named(checks(gx.expectations))))
        validation = context.validation_definitions.add(gx.ValidationDefinition(name=name, data=definition, suite=suite))
        checkpoint = gx.Checkpoint(
            name="refresh",
            validation_definitions=[validation],
            actions=[gx.checkpoint.UpdateDataDocsAction(name="docs", site_names=[self._title])],
            result_format="SUMMARY",
        )
        run = checkpoint.run(batch_parameters={"dataframe": _frame(batch)}, run_id=gx.RunIdentifier(run_name=batch.name))
        return [result for outcome in run.run_results.values() for result in outcome.results], bool(run.success)

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


def _named(checks: Sequence[tuple[str, Any]]) -> list[Any]:
    """Returns the expectations, each with its check's name. All at once: adding one by one writes the whole suite anew."""
    for words, expectation in checks:
        expectation.meta = {"check": words}
    return [expectation for _, expectation in checks]


def _without_films(site: Path) -> None:
    """Takes out two films of 3.4 MB that show how the pages are used: they are five times the rest of a report."""
    for film in (site / "static" / "images").glob("*.gif"):
        film.unlink(missing_ok=True)


def _context(gx: Any, site: Path, title: str) -> Any:
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
        data_docs_sites={title: pages},
        progress_bars=ProgressBarsConfig(globally=False, metric_calculations=False),
        analytics_enabled=False,
    )
    return gx.get_context(mode="ephemeral", project_config=config)


def _frame(batch: Batch) -> Any:
    import pandas as pd

    frame = pd.DataFrame(batch.table, columns=list(batch.table))
    for name in batch.numbers:
        frame[name] = frame[name].astype("float64")
    return frame


def _words(result: Any, batch: Batch) -> str:
    """Returns a check that failed, as a sentence with the first rows that it failed on."""
    check = result.expectation_config.meta["check"]
    if result.exception_info and result.exception_info.get("raised_exception"):
        return f"{check}: could not be checked"
    found: Mapping[str, Any] = result.result
    indexes: Sequence[int] = found.get("partial_unexpected_index_list") or ()
    shown = ", ".join(batch.row_words(index) for index in indexes[:_SHOWN] if isinstance(index, int))
    if "unexpected_count" in found:
        return f"{check}: {found['unexpected_count']} rows{f', such as {shown}' if shown else ''}"
    return f"{check}: found {found.get('observed_value')}"
