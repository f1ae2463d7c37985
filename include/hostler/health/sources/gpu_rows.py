"""Rows of the sources that tell of accelerators: management tools of NVIDIA, AMD and Google, and the probe."""

from typing import Final

from hostler.health.sources.gpu_amd import AMD
from hostler.health.sources.gpu_amd_words import AMD_ERRORS
from hostler.health.sources.gpu_csv import CSV
from hostler.health.sources.gpu_lists import LISTS
from hostler.health.sources.gpu_mig import MIG
from hostler.health.sources.gpu_probe import PROBE
from hostler.health.sources.gpu_query_text import QUERY_TEXT
from hostler.health.sources.gpu_rocm import ROCM
from hostler.health.sources.gpu_smi_errors import SMI_ERRORS
from hostler.health.sources.gpu_table import TABLE
from hostler.health.sources.gpu_tpu import TPUS
from hostler.health.sources.gpu_xml import XML
from hostler.health.sources.source import Source

GPU_SOURCES: Final[tuple[Source, ...]] = (
    PROBE,
    XML,
    ROCM,
    AMD,
    CSV,
    QUERY_TEXT,
    TABLE,
    *LISTS,
    MIG,
    SMI_ERRORS,
    AMD_ERRORS,
    *TPUS,
)
