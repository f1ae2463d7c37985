"""Rows of the sources that are logs, diagnostics, tests, counters and checks of the host."""

from typing import Final

from hostler.health.sources.log_bandwidth import BANDWIDTH
from hostler.health.sources.log_clock import CLOCK
from hostler.health.sources.log_dcgm_diag import DIAG
from hostler.health.sources.log_dcgm_health import HEALTH
from hostler.health.sources.log_disk import DISK_SOURCES
from hostler.health.sources.log_fabric import FABRIC
from hostler.health.sources.log_gpu_burn import BURN
from hostler.health.sources.log_ib import IB_STATUS
from hostler.health.sources.log_ib_bandwidth import IB_BANDWIDTH
from hostler.health.sources.log_kernel import KERNEL_LOG
from hostler.health.sources.log_links import LINK_SOURCES
from hostler.health.sources.log_lspci import LSPCI
from hostler.health.sources.log_nccl import NCCL
from hostler.health.sources.log_net_counters import NET_COUNTERS
from hostler.health.sources.log_nic_inventory import INVENTORY
from hostler.health.sources.log_processes import PROCESS_SOURCES
from hostler.health.sources.log_training import TRAINING
from hostler.health.sources.source import Source

LOG_SOURCES: Final[tuple[Source, ...]] = (
    DIAG,
    HEALTH,
    *LINK_SOURCES,
    FABRIC,
    NCCL,
    BURN,
    BANDWIDTH,
    IB_STATUS,
    IB_BANDWIDTH,
    NET_COUNTERS,
    INVENTORY,
    LSPCI,
    *DISK_SOURCES,
    CLOCK,
    *PROCESS_SOURCES,
    KERNEL_LOG,
    TRAINING,
)
