"""Rows of the sources that tell of accelerators: management tools of NVIDIA, AMD and Google, and the probe."""

from typing import Final

from hostler.health.sources.gpu_smi_errors import SMI_ERRORS
from hostler.health.sources.gpu_xml import XML
from hostler.health.sources.source import Source

GPU_SOURCES: Final[tuple[Source, ...]] = (XML, SMI_ERRORS)
