"""Counters of network cards: perfquery, sysfs of InfiniBand, ``ethtool -S``, ``ethtool``, ``ip -s link``."""

import re
from collections.abc import Iterator
from typing import Final

from hostler.health.catalog import LIMITS
from hostler.health.finding import degraded, failed, noted, unknown
from hostler.health.roll_up import cut, source_health
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.source import Source
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding, SourceHealth

KIND: Final = "network-counters"
_SOURCE: Final = "NVIDIA/NVSentinel, NIC health monitor"
_PERFQUERY: Final = re.compile(r"^([A-Z][A-Za-z]{3,50}):\.{2,60}(\S{1,24})\s*$", re.MULTILINE)
_WHERE: Final = re.compile(r"^# Port (?:extended )?counters: Lid (\d{1,6}) port (\d{1,3})", re.MULTILINE)
_FABRIC_PORT: Final = re.compile(r"^Port=(\d{1,4}) Lid=(\S{1,12}) GUID=(\S{1,24})", re.MULTILINE)
_FABRIC_COUNTER: Final = re.compile(r"^([a-z]\w{3,60})=(0x[0-9a-fA-F]{1,16}|\d{1,20})\s{0,4}$", re.MULTILINE)
"""Dump of a fabric's port counters (``ibdiagnet``, UFM): a head a port, then one counter a line, in hexadecimal."""
_SYSFS: Final = re.compile(
    r"(?:/sys/class/(?:infiniband|net)/)([\w.-]{2,40})/(?:ports/\d{1,3}/)?(?:hw_)?(?:counters/|statistics/)?([a-z]\w{3,60})\s{0,4}[:=]\s{0,4}(\S{1,24})"
)
_STAT: Final = re.compile(r"^\s{1,12}([a-z][\w.\[\]-]{2,60}):\s{1,4}(\d{1,24})\s*$", re.MULTILINE)
_NIC_HEAD: Final = re.compile(r"^(?:NIC statistics:|Settings for (\S{1,40}):)", re.MULTILINE)
_DETECTED: Final = re.compile(r"Link detected:\s{0,4}(yes|no)")
_SPEED: Final = re.compile(r"Speed:\s{0,4}(\S{1,20})")
_IP_LINK: Final = re.compile(
    r"^\d{1,5}: (\S{1,40}?)(?:@\S{1,40})?: <([A-Z0-9_,-]{0,200})>.{0,200}?\bstate (UP|DOWN|UNKNOWN|DORMANT|LOWERLAYERDOWN)",
    re.MULTILINE,
)

_NAMES: Final = {
    "symbolerrorcounter": "symbol_error",
    "linkerrorrecoverycounter": "link_error_recovery",
    "linkdownedcounter": "link_downed",
    "portrcverrors": "port_rcv_errors",
    "portxmitdiscards": "port_xmit_discards",
    "locallinkintegrityerrors": "local_link_integrity_errors",
    "excessivebufferoverrunerrors": "excessive_buffer_overrun_errors",
    "excbufoverrunerrors": "excessive_buffer_overrun_errors",
    "link_down_events_phy": "link_downed",
    "rx_symbol_err_phy": "symbol_error",
    "efa_no_completion_cmds": "no_completion_cmds",
    "no_completion_cmds": "no_completion_cmds",
}
_FATAL: Final = {
    "excessive_buffer_overrun_errors": "nic_excessive_buffer_overrun_errors",
    "local_link_integrity_errors": "nic_local_link_integrity_errors",
    "rnr_nak_retry_err": "nic_rnr_nak_retry_err",
    "no_completion_cmds": "nic_efa_no_completion_cmds",
}
"""Any of these is a fault, whenever it was counted. Value: the row of the limit."""
_WATCHED: Final = {
    "link_downed": "nic_link_downed",
    "symbol_error": "nic_symbol_error_per_hour",
    "link_error_recovery": "nic_link_error_recovery_per_minute",
    "carrier_changes": "nic_carrier_changes",
    "carrier_down_count": "link_flaps_per_day",
    "rx_drops": "nic_efa_rx_drops",
    "rdma_write_wr_err": "nic_efa_rdma_write_wr_err",
    "rdma_read_wr_err": "nic_efa_rdma_read_wr_err",
}
"""One reading above the limit is worth a look; whether it grows, only a second reading tells."""


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.9 for a tool's own form."""
    if _WHERE.search(text) or _FABRIC_PORT.search(text) or len(_PERFQUERY.findall(text)) > 2 or _NIC_HEAD.search(text):  # noqa: PLR2004 - one alone is chance
        return 0.9
    return 0.85 if _IP_LINK.search(text) or len(_SYSFS.findall(text)) > 1 else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges each counter since the card was started, and each link that is up by its flags but has none."""
    counters = list(_counters(text))
    states = list(_states(text))
    if not counters and not states:
        return source_health(KIND, findings=[no_answer(text, command, exit_code)])
    findings = [found for where, name, value in counters for found in judge_counter(where, name, value)]
    return source_health(KIND, findings=[*states, *findings], silent=Verdict.HEALTHY)


def _counters(text: str) -> Iterator[tuple[str, str, str]]:
    port = _WHERE.search(text)
    where = f"lid {port[1]} port {port[2]}" if port else "the port"
    for name, value in _PERFQUERY.findall(text):
        yield where, name.lower(), value
    heads = list(_FABRIC_PORT.finditer(text))
    for at, head in enumerate(heads):
        block = text[head.end() : heads[at + 1].start() if at + 1 < len(heads) else len(text)]
        for name, value in _FABRIC_COUNTER.findall(block):
            plain = name.removesuffix("_extended").removesuffix("_counter")
            yield f"lid {head[2]} port {head[1]}", plain, str(int(value, 0)) if value.startswith("0x") else value
    for card, name, value in _SYSFS.findall(text):
        yield card, name, value
    if "NIC statistics:" in text or "# efa" in text.lower():
        for name, value in _STAT.findall(text):
            yield "the card", name, value


def judge_counter(where: str, name: str, value: str) -> Iterator[Finding]:
    """Yields what one counter says; nothing for one that no rule knows."""
    key = _NAMES.get(name, name)
    row = _FATAL.get(key) or _WATCHED.get(key)
    if row is None:
        return
    said = f"{where}: {key} {value}"
    if not (value.isascii() and value.isdigit()):
        if value.lower() not in {"n/a", "na", "-"}:
            yield unknown(f"nic.{key}", f"{said} is no number")
        return
    limit = LIMITS[row]
    if not limit.is_broken_by(float(value)):
        return
    if key in _FATAL:
        yield failed(
            f"nic.{key}",
            f"{said}, limit {limit.value:g}: the card or its cable is at fault",
            HealthAction.DRAIN_AND_DIAG,
            said,
            limit.source,
        )
    else:
        yield degraded(f"nic.{key}", f"{said}, limit {limit.value:g} {limit.unit}: see whether it grows", said, limit.source)


def _states(text: str) -> Iterator[Finding]:
    for found in _IP_LINK.finditer(text):
        name, flags, state = found[1], found[2].split(","), found[3]
        if (
            name == "lo"
            or "UP" not in flags
            or re.match(r"(?:docker|veth|virbr|br-|cni|flannel|cali|tunl|kube|dummy|vxlan)", name)
        ):
            continue
        said = cut(found[0])
        if "NO-CARRIER" in flags or state in {"DOWN", "LOWERLAYERDOWN"}:
            yield failed(
                "net.link_down", f"{name}: it is switched on and has no link", HealthAction.DRAIN_AND_DIAG, said, _SOURCE
            )
        else:
            yield noted("net.link", f"{name}: {state}", said, _SOURCE)
    settings = _NIC_HEAD.search(text)
    detected, speed = _DETECTED.search(text), _SPEED.search(text)
    name = (settings[1] if settings else None) or "the card"
    if detected and detected[1] == "no":
        yield failed("net.link_down", f"{name}: no link is detected", HealthAction.DRAIN_AND_DIAG, detected[0], _SOURCE)
    elif detected:
        yield noted(
            "net.link", f"{name}: link detected at {speed[1] if speed else 'a speed that is not told'}", detected[0], _SOURCE
        )


NET_COUNTERS: Final = Source(
    kind=KIND, detect=detect, parse=parse, command=r"\bperfquery\b|\bethtool\b|\bip\b.*\blink\b|/sys/class/(infiniband|net)"
)
