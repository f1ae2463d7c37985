"""States of InfiniBand and RoCE ports: ibstat, ibstatus, ibv_devinfo, ``rdma link``, ibdev2netdev."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from hostler.health.finding import degraded, failed, noted, unknown
from hostler.health.roll_up import cut, source_health
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.source import Source
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding, SourceHealth

KIND: Final = "ib-status"
SOURCE: Final = "Azure/azurehpc-health-checks and NVIDIA/NVSentinel, IB link checks"
_CARD: Final = re.compile(r"^(?:CA '([^'\n]{1,60})'|hca_id:\s{0,8}(\S{1,60}))\s*$")
_PORT: Final = re.compile(r"^\s{1,8}(?:Port (\d{1,3}):|port:\s{1,8}(\d{1,3}))\s*$")
_STATUS: Final = re.compile(r"^Infiniband device '([^'\n]{1,60})' port (\d{1,3}) status:", re.IGNORECASE)
_VALUE: Final = re.compile(r"^\s{1,12}([A-Za-z][\w ]{1,40}?):\s{0,12}(\S[^\n]{0,120}?)\s*$")
_RDMA: Final = re.compile(
    r"^(?:\d{1,4}/\d{1,4}: |link )?(?P<card>[\w.-]{2,40})/(?P<port>\d{1,3}):? .{0,200}?"
    r"\bstate (?P<state>\w{2,20})(?: physical_state (?P<phys>\w{2,20}))?",
    re.MULTILINE,
)
_NETDEV: Final = re.compile(r"^(\S{2,40}) port (\d{1,3}) ==> (\S{1,40}) \((Up|Down)\)", re.MULTILINE)
_GUIDS: Final = re.compile(r"^VM_hostname (\S{1,80})\s*\n([0-9a-f]{16})\s*$", re.MULTILINE)
_GOOD_STATES: Final = frozenset({"active", "port_active"})
_GOOD_PHYS: Final = frozenset({"", "linkup", "link_up"})


@dataclass(slots=True)
class Port:
    """One port as a tool tells it; empty texts: not told. rate_gbit_per_s: None when not told."""

    card: str
    number: str
    values: dict[str, str] = field(default_factory=dict)
    model: str = ""

    @property
    def state(self) -> str:
        """The logical state in lower case without its number."""
        return _bare(self.values.get("state", ""))

    @property
    def phys(self) -> str:
        """The physical state in lower case without its number and blanks."""
        return _bare(
            self.values.get("physical state", self.values.get("phys state", self.values.get("phys_state", "")))
        ).replace(" ", "")

    @property
    def layer(self) -> str:
        """Link layer in lower case."""
        return self.values.get("link layer", self.values.get("link_layer", "")).lower()

    @property
    def rate_gbit_per_s(self) -> float | None:
        """Rate as told; None when it is not."""
        found = re.match(r"(\d{1,6}(?:\.\d{1,3})?)", self.values.get("rate", ""))
        return float(found[1]) if found else None


def _bare(text: str) -> str:
    return re.sub(r"^\d{1,3}:\s{0,4}|\s{0,4}\(\d{1,3}\)$", "", text.strip()).lower()


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.95 for a tool's own form, 0.5 for a list of GUIDs."""
    if re.search(r"^CA '\w{2,40}'|^Infiniband device '|^hca_id:\s|^\S{2,40} port \d{1,3} ==> ", text, re.MULTILINE):
        return 0.95
    if re.search(r"^link \S{2,40}/\d{1,3} .{0,100}\bstate ", text, re.MULTILINE):
        return 0.9
    return 0.5 if _GUIDS.search(text) else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges each port by its states, and its rate against the other ports of the same card model."""
    ports = list(read_ports(text))
    if not ports:
        if _GUIDS.search(text):
            return source_health(KIND, unknown=("names of nodes and GUIDs: nothing is told of any port",))
        return source_health(KIND, findings=[no_answer(text, command, exit_code)])
    findings = [found for port in ports for found in judge_port(port, ports)]
    named = {found[1] or found[2] for line in text.splitlines() if (found := _CARD.match(line))}
    findings += [unknown("ib.state", f"{card}: no port is told") for card in sorted(named - {port.card for port in ports})]
    return source_health(KIND, findings=findings, silent=Verdict.HEALTHY)


def read_ports(text: str) -> Iterator[Port]:
    """Yields the ports in the order of the text."""
    card, model, port = "", "", None
    for line in text.splitlines():
        if found := _CARD.match(line):
            card, model, port = found[1] or found[2], "", None
        elif found := _STATUS.match(line):
            port = Port(found[1], found[2])
            yield port
        elif card and (found := _PORT.match(line)):
            port = Port(card, found[1] or found[2], model=model)
            yield port
        elif found := _VALUE.match(line):
            if port is not None:
                port.values[found[1].lower()] = found[2]
            elif found[1].lower() in {"ca type", "vendor_part_id"}:
                model = found[2]
    for found in _RDMA.finditer(text):
        yield Port(found["card"], found["port"], {"state": found["state"], "physical state": found["phys"] or ""})
    for found in _NETDEV.finditer(text):
        yield Port(found[1], found[2], {"state": "Active" if found[4] == "Up" else "Down"})


def judge_port(port: Port, ports: Sequence[Port]) -> Iterator[Finding]:
    """Yields what one port says, beside the others of its node."""
    where = f"{port.card} port {port.number}"
    said = cut(
        f"{where}: state {port.state or 'not told'}, {port.phys or 'physical state not told'}, rate"
        f" {port.values.get('rate', 'not told')}"
    )
    if not port.state:
        yield unknown("ib.state", f"{where}: no state is told", said)
        return
    if port.state in _GOOD_STATES and port.phys in _GOOD_PHYS:
        yield from _rate(port, ports, where, said)
    elif port.phys == "disabled" or (port.layer == "ethernet" and _others_work(port, ports)):
        yield degraded(
            "ib.port_off", f"{where}: {port.state}, {port.phys or 'down'}: off, or nothing is plugged in", said, SOURCE
        )
    elif port.state.removeprefix("port_") in {"init", "initializing", "armed"}:
        yield degraded(
            "ib.port_init",
            f"{where}: {port.state}: the link is up, the subnet manager has not set it up",
            said,
            SOURCE,
            HealthAction.DRAIN_AND_DIAG,
        )
    else:
        yield failed(
            "ib.port_down",
            f"{where}: {port.state}, {port.phys or 'physical state not told'}: the link is down; cable, module or card",
            HealthAction.DRAIN_AND_DIAG,
            said,
            SOURCE,
        )


def _others_work(port: Port, ports: Sequence[Port]) -> bool:
    """An Ethernet port of a card with several is often left without a cable."""
    return any(other is not port and other.layer != "ethernet" and other.state in _GOOD_STATES for other in ports)


def _rate(port: Port, ports: Sequence[Port], where: str, said: str) -> Iterator[Finding]:
    rate = port.rate_gbit_per_s
    if rate is None:
        yield noted("ib.port", f"{where}: active", said, SOURCE)
        return
    best = max(other.rate_gbit_per_s or 0.0 for other in ports if other.model == port.model and other.layer == port.layer)
    if rate < best and port.model:
        yield failed(
            "ib.rate",
            f"{where}: {rate:g} Gbit/s, other ports of the same card model {best:g}",
            HealthAction.DRAIN_AND_DIAG,
            said,
            SOURCE,
        )
    elif rate < best:
        yield degraded(
            "ib.rate",
            f"{where}: {rate:g} Gbit/s, another port of the node {best:g}: another model, or a slow link",
            said,
            SOURCE,
        )
    else:
        yield noted("ib.port", f"{where}: active at {rate:g} Gbit/s", said, SOURCE)


IB_STATUS: Final = Source(
    kind=KIND, detect=detect, parse=parse, command=r"\bibstat(us)?\b|\bibv_devinfo\b|\brdma link|ibdev2netdev"
)
