"""Rows of the sources that are logs, diagnostics and counters."""

from typing import Final

from hostler.health.sources.log_dcgm_diag import DIAG
from hostler.health.sources.log_kernel import KERNEL_LOG
from hostler.health.sources.source import Source

LOG_SOURCES: Final[tuple[Source, ...]] = (DIAG, KERNEL_LOG)
