"""How outputs of DCGM name what is wrong: error numbers, and words where a version gives none (pure)."""

import re
from typing import Final

from hostler.health.catalog import DcgmRule, dcgm_error, xid
from hostler.health.roll_up import cut, worst
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding

_WORDS: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), error)
    for pattern, error in (
        (r"row remapping failed|row remap(?:ping)? failure|failed to remap", "ROW_REMAP_FAILURE"),
        (r"fallen off the bus", "FALLEN_OFF_BUS"),
        (r"uncontained", "UNCONTAINED_ERROR"),
        (r"pending row|row remap\w{0,4} (?:is |are )?pending|remapp\w{1,4} .{0,40}pending", "PENDING_ROW_REMAP"),
        (r"pending page retirement|page retirements? (?:is |are )?pending", "PENDING_PAGE_RETIREMENTS"),
        (r"retired pages? .{0,60}limit|page retirement limit", "RETIRED_PAGES_LIMIT"),
        (r"ecc_dbe_volatile|volatile double|double-bit ecc|uncorrectable ecc|\bdbe\b", "VOLATILE_DBE_DETECTED"),
        (r"pcie replays?", "PCI_REPLAY_RATE"),
        (r"nvlinks? (?:link )?\d{0,3}.{0,60}\bdown\b|nvlink.{0,40}currently down", "NVLINK_DOWN"),
        (r"nvlink.{0,60}crc|crc .{0,40}nvlink", "NVLINK_CRC_ERROR_THRESHOLD"),
        (r"nvlink.{0,60}(?:replay|recovery) error", "NVLINK_ERROR_CRITICAL"),
        (r"nvswitch.{0,60}non-?fatal", "NVSWITCH_NON_FATAL_ERROR"),
        (r"nvswitch.{0,60}fatal", "NVSWITCH_FATAL_ERROR"),
        (r"corrupt\w{0,3} info ?rom|info ?rom .{0,30}corrupt", "CORRUPT_INFOROM"),
        (r"power .{0,60}(?:unreadable|could not be read|cannot be read|not (?:readable|supported))", "POWER_UNREADABLE"),
        (r"thermal violation", "THERMAL_VIOLATIONS"),
        (r"clocks? .{0,60}(?:throttl|slow)\w{0,6}.{0,60}thermal|thermal .{0,60}(?:throttl|slowdown)", "CLOCKS_EVENT_THERMAL"),
        (r"temperature .{0,80}(?:violation|exceeds|too high|above)", "TEMP_VIOLATION"),
        (r"fabric ?manager", "CUDA_FM_NOT_INITIALIZED"),
        (r"persistence ?mode", "PERSISTENCE_MODE"),
        (r"deny ?list|black ?list", "DENYLISTED_DRIVER"),
        (r"environment variable", "BAD_CUDA_ENV"),
        (r"miscompare|faulty memory|memory error", "FAULTY_MEMORY"),
        (r"bandwidth .{0,80}(?:less|below|lower|minimum|low)", "LOW_BANDWIDTH"),
        (r"\bnan\b", "NAN_VALUE"),
    )
)
"""The first that fits. Source: texts of dcgm_errors.h in NVIDIA/DCGM (versions 2 to 4)."""

_XID = re.compile(r"\bxid[ _:(#]{0,3}(\d{1,4})\b", re.IGNORECASE)
_ERROR_NAME = re.compile(r"\bDCGM_FR_[A-Z0-9_]{3,60}")
FAILED_TEST: Final = "NVIDIA/DCGM: the diagnostic's own verdict"

VERDICTS: Final[dict[str, Verdict]] = {
    "pass": Verdict.HEALTHY,
    "healthy": Verdict.HEALTHY,
    "ok": Verdict.HEALTHY,
    "warn": Verdict.DEGRADED,
    "warning": Verdict.DEGRADED,
    "fail": Verdict.FAILED,
    "failed": Verdict.FAILED,
    "failure": Verdict.FAILED,
    "error": Verdict.FAILED,
}
"""Words of a result that judge; ``skip`` and ``not run`` are none."""

NOT_RUN: Final = frozenset(
    {"skip", "skipped", "not run", "notrun", "n/a", "not applicable", "in progress", "", "isolated fail"}
)


def rule_in(text: str) -> DcgmRule | None:
    """Returns the error that a text names by its name or by its words; None when it names none."""
    named = _ERROR_NAME.search(text)
    if named:
        return dcgm_error(named[0])
    return next((dcgm_error(error) for pattern, error in _WORDS if pattern.search(text)), None)


def finding(code: str, status: str, text: str, error: int | None = None) -> Finding:
    """Returns what a test or a watched system with this status says.

    Args:
        status: DCGM's word, such as ``Fail``; one that is not known is unknown.
        text: its own words: what failed and why. error: number of the error when it tells one.
    """
    verdict = VERDICTS.get(status.strip().lower(), Verdict.UNKNOWN)
    number = _XID.search(text)
    rule = dcgm_error(error) if error else rule_in(text)
    if rule is not None and rule.kind == "unknown":
        rule = rule_in(text) or rule
    if verdict is Verdict.FAILED and rule is not None and rule.kind == "test" and error:
        verdict = Verdict.UNKNOWN  # the test could not run: that says nothing of the GPU
    what = f"{text}: {status}" if not text.lower().endswith(status.lower()) else text
    if number and error in {None, 101}:  # DCGM_FR_XID_ERROR
        named = xid(int(number[1]))
        # A diagnostic fails on any Xid in its time; the number says whether the GPU is at fault (NVIDIA/NVSentinel#1358).
        mild = named.action.rank <= HealthAction.RESTART_APP.rank and verdict is Verdict.FAILED
        return Finding(
            code=f"xid.{named.code}",
            what=cut(f"{what} ({named.words})"),
            verdict=worst((Verdict.DEGRADED if mild else verdict, named.verdict)),
            action=named.action,
            evidence=cut(text),
            source=named.source,
        )
    return Finding(
        code=code,
        what=cut(what),
        verdict=verdict,
        action=_action(verdict, rule),
        evidence=cut(text),
        source=rule.source if rule else FAILED_TEST,
    )


def _action(verdict: Verdict, rule: DcgmRule | None) -> HealthAction:
    if verdict is Verdict.HEALTHY:
        return HealthAction.NONE
    if verdict is not Verdict.FAILED:
        return (
            HealthAction.RECORD
            if rule is None or verdict is Verdict.UNKNOWN
            else min(rule.action, HealthAction.DRAIN_AND_DIAG, key=_rank)
        )
    if rule is None:
        return HealthAction.DRAIN_AND_DIAG
    if rule.kind in {"config", "test", "watch"}:
        return max(rule.action, HealthAction.RESTART_SERVICE, key=_rank)  # a setting to be made good, no fault of the GPU
    return rule.action


def _rank(action: HealthAction) -> int:
    return action.rank
