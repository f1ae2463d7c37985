"""What signals mean, as data with source and date: Xids, SXids, DCGM errors, recovery words, limits, what nodes must have (pure)."""

from hostler.health.catalog.dcgm import DcgmRule, dcgm_error, dcgm_errors
from hostler.health.catalog.expectations import (
    AcceleratorFacts,
    Expectation,
    accelerator_facts,
    expect,
    expect_offering,
    expectation,
)
from hostler.health.catalog.floors import Floor, floor
from hostler.health.catalog.limits import BAD_THROTTLE_BITS, LIMITS, THROTTLE_REASONS, Limit, bad_throttles
from hostler.health.catalog.nvlink import NVLINK5_XIDS, Decoded, decode_74, decode_144_150
from hostler.health.catalog.recovery import RECOVERY_XID, Recovery, recovery, recovery_in
from hostler.health.catalog.sxids import SxidRule, sxid, sxids
from hostler.health.catalog.xids import Repeat, XidContext, XidRule, cause_in, xid, xids

__all__ = [
    "BAD_THROTTLE_BITS",
    "LIMITS",
    "NVLINK5_XIDS",
    "RECOVERY_XID",
    "THROTTLE_REASONS",
    "AcceleratorFacts",
    "DcgmRule",
    "Decoded",
    "Expectation",
    "Floor",
    "Limit",
    "Recovery",
    "Repeat",
    "SxidRule",
    "XidContext",
    "XidRule",
    "accelerator_facts",
    "bad_throttles",
    "cause_in",
    "dcgm_error",
    "dcgm_errors",
    "decode_74",
    "decode_144_150",
    "expect",
    "expect_offering",
    "expectation",
    "floor",
    "recovery",
    "recovery_in",
    "sxid",
    "sxids",
    "xid",
    "xids",
]
