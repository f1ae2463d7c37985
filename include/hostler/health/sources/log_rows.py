"""Rows of the sources that are logs, diagnostics and counters."""

from typing import Final

from hostler.health.sources.source import Source

LOG_SOURCES: Final[tuple[Source, ...]] = ()
