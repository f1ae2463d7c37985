"""What signals mean, as data with source and date: Xids, SXids, DCGM errors, the driver's recovery words (pure)."""

from hostler.health.catalog.dcgm import DcgmRule, dcgm_error, dcgm_errors
from hostler.health.catalog.nvlink import NVLINK5_XIDS, Decoded, decode_74, decode_144_150
from hostler.health.catalog.recovery import RECOVERY_XID, Recovery, recovery, recovery_in
from hostler.health.catalog.sxids import SxidRule, sxid, sxids
from hostler.health.catalog.xids import Repeat, XidContext, XidRule, cause_in, xid, xids

__all__ = [
    "NVLINK5_XIDS",
    "RECOVERY_XID",
    "DcgmRule",
    "Decoded",
    "Recovery",
    "Repeat",
    "SxidRule",
    "XidContext",
    "XidRule",
    "cause_in",
    "dcgm_error",
    "dcgm_errors",
    "decode_74",
    "decode_144_150",
    "recovery",
    "recovery_in",
    "sxid",
    "sxids",
    "xid",
    "xids",
]
