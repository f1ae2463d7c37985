"""What sysfs tells of a node's cards, as one JSON of paths and contents; against what is expected where that is given.

Shapes: ``{path: content}`` alone, or ``{"expected": manifest, "learned": {path: content}}``.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hostler.health.catalog import LIMITS
from hostler.health.finding import degraded, failed, unknown
from hostler.health.roll_up import cut, source_health, unreadable
from hostler.health.sources.json_text import load
from hostler.health.sources.log_ib import Port, judge_port
from hostler.health.sources.source import Source
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding, SourceHealth

KIND: Final = "nic-inventory"
SOURCE: Final = "facebookresearch/gcm, device inventory checks"
_CARD: Final = re.compile(r"/devices/(\S{4,60}?)/infiniband/([\w.-]{1,40})/(.{1,80})$")
_NET: Final = re.compile(r"/devices/(\S{4,60}?)/net/([\w.-]{1,40})/(\w{1,60})$|/class/net/([\w.-]{1,40})/(\w{1,60})$")
_PCI: Final = re.compile(r"/([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])/((?:current|max)_link_(?:speed|width))$")

Values = dict[str, dict[str, str]]


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.95 for paths of sysfs in JSON, 0.8 for a manifest of what is expected."""
    head = text.lstrip()[:1]
    if head == "{" and re.search(r'"/sys/(?:bus|class)/', text):
        return 0.95
    return 0.8 if head == "{" and '"link_speed"' in text and '"link_width"' in text else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:  # noqa: ARG001 - the inventory says it all itself
    """Judges the cards by themselves, by each other, and by the manifest when there is one."""
    document = load(text)
    if not isinstance(document, Mapping):
        return unreadable(KIND, "malformed inventory: no JSON object")
    expected = document.get("expected")
    learned = document.get("learned", document if "expected" not in document else None)
    if not isinstance(learned, Mapping) or not any(str(path).startswith("/sys/") for path in learned):
        return source_health(KIND, unknown=("a manifest of what is expected: nothing was measured",))
    return judge_inventory(learned, expected if isinstance(expected, Mapping) else None)


def judge_inventory(learned: Mapping[str, Any], expected: Mapping[str, Any] | None = None) -> SourceHealth:
    """Returns what the learned paths say; ``expected`` None: they are judged by themselves and by each other."""
    cards, nets, links = _read(learned)
    if not cards and not nets:
        return source_health(KIND, unknown=("the inventory has no network card",))
    findings = [found for found in _cards(cards, nets) if found.verdict is not Verdict.HEALTHY]
    findings += [found for name, values in nets.items() for found in _net(name, values)]
    findings += [found for pci, values in links.items() for found in _link(pci, values)]
    if expected is not None:
        findings += _compare(expected, cards, nets, links)
    return source_health(KIND, findings=findings, silent=Verdict.HEALTHY)


def _read(learned: Mapping[str, Any]) -> tuple[Values, Values, Values]:
    cards: Values = {}
    nets: Values = {}
    links: Values = {}
    owners: dict[str, str] = {}
    for path, content in learned.items():
        value = str(content).strip()
        if found := _CARD.search(str(path)):
            cards.setdefault(found[2], {})[found[3]] = value
            owners[found[1]] = found[2]
        elif found := _NET.search(str(path)):
            name = found[2] or found[4]
            nets.setdefault(name, {})[found[3] or found[5]] = value
            if found[1] and found[1] in owners:
                nets[name]["card"] = owners[found[1]]
        elif found := _PCI.search(str(path)):
            links.setdefault(found[1], {})[found[2]] = value
    return cards, nets, links


def _cards(cards: Values, nets: Values) -> Iterator[Finding]:
    ports = []
    for card, values in sorted(cards.items()):
        numbers = sorted({found[1] for key in values if (found := re.match(r"ports/(\d{1,3})/", key))})
        for number in numbers:
            told = {key.rsplit("/", 1)[1]: value for key, value in values.items() if key.startswith(f"ports/{number}/")}
            ports.append(
                Port(
                    card,
                    number,
                    {key.replace("_", " ") if key == "phys_state" else key: value for key, value in told.items()},
                    model="InfiniBand",
                )
            )
        if not numbers:
            yield unknown("ib.state", f"{card}: no port is told")
    for port in ports:
        yield from judge_port(port, ports)
        net = next((values for values in nets.values() if values.get("card") == port.card), {})
        yield from _speeds(port, net.get("speed", ""))


def _speeds(port: Port, speed_mbit_per_s: str) -> Iterator[Finding]:
    """The interface's speed is what the card could do; the port's rate is what the link does."""
    rate = port.rate_gbit_per_s
    if rate is None or not speed_mbit_per_s.isdigit() or port.state not in {"active", "port_active"}:
        return
    could = int(speed_mbit_per_s) / 1000
    if rate < could:
        said = f"{port.card} port {port.number}: the link runs at {rate:g} Gbit/s, its interface at {could:g}"
        yield failed("ib.rate", said, HealthAction.DRAIN_AND_DIAG, said, SOURCE)


def _net(name: str, values: dict[str, str]) -> Iterator[Finding]:
    state = values.get("operstate", "")
    said = cut(f"{name}: operstate {state or 'not told'}, carrier {values.get('carrier') or 'not told'}")
    if state in {"down", "lowerlayerdown", "notpresent"}:
        yield failed("net.link_down", f"{name}: {state}", HealthAction.DRAIN_AND_DIAG, said, SOURCE)
    elif not state and "operstate" in values:
        yield unknown("net.state", f"{name}: no state is told", said)
    downs = values.get("carrier_down_count", "")
    limit = LIMITS["link_flaps_per_day"]
    if downs.isascii() and downs.isdigit() and limit.is_broken_by(float(downs)):
        what = f"{name}: lost its carrier {downs} times since it was started, limit {limit.value:g} a day"
        yield degraded("net.flaps", what, f"carrier_down_count {downs}", limit.source)


def _link(pci: str, values: dict[str, str]) -> Iterator[Finding]:
    for what in ("speed", "width"):
        now, most = values.get(f"current_link_{what}"), values.get(f"max_link_{what}")
        if now and most and _first(now) < _first(most):
            said = f"{pci}: PCIe {what} {now}, it could do {most}"
            yield degraded(f"pcie.{what}", said, said, "Linux sysfs-bus-pci; an idle link may be slower by design")


def _first(text: str) -> float:
    found = re.match(r"\d{1,6}(?:\.\d{1,3})?", text)
    return float(found[0]) if found else 0.0


def _compare(expected: Mapping[str, Any], cards: Values, nets: Values, links: Values) -> Iterator[Finding]:
    fabric = _mapping(expected.get("ib"))
    rate, versions = fabric.get("link_rate"), fabric.get("firmware_version")
    for name, wanted in _mapping(fabric.get("interfaces")).items():
        card = str(_mapping(wanted).get("mlx", ""))
        values = cards.get(card)
        if values is None:
            yield failed(
                "ib.missing",
                f"{name} ({card}) is expected and not there",
                HealthAction.DRAIN_AND_DIAG,
                f"{name} {card}",
                SOURCE,
            )
            continue
        told = next((value for key, value in values.items() if key.endswith("/rate")), None)
        if rate and told != rate:
            yield _other("ib.rate", f"{card}: rate", told, str(rate))
        if isinstance(versions, list) and values.get("fw_ver") not in versions:
            yield _drift("ib.firmware", f"{card}: firmware", values.get("fw_ver"), ", ".join(map(str, versions)))
    for wanted in map(_mapping, _mapping(expected.get("eth")).values()):
        yield from _compare_net(wanted, nets)
    for pci, wanted in _mapping(expected.get("pci")).items():
        yield from _compare_link(str(pci), _mapping(wanted), links.get(str(pci)))


def _compare_net(wanted: Mapping[str, Any], nets: Values) -> Iterator[Finding]:
    name = str(wanted.get("netdev", ""))
    values = nets.get(name)
    if values is None:
        yield unknown("net.missing", f"{name}: expected; the inventory does not tell of it")
        return
    for key in ("speed", "mtu"):
        if key in wanted and values.get(key) not in {None, str(wanted[key])}:
            yield _other(f"net.{key}", f"{name}: {key}", values.get(key), str(wanted[key]))


def _compare_link(pci: str, wanted: Mapping[str, Any], values: dict[str, str] | None) -> Iterator[Finding]:
    if values is None:
        return
    speeds = wanted.get("link_speed")
    for key, allowed in (
        ("current_link_speed", speeds if isinstance(speeds, list) else [speeds]),
        ("current_link_width", [wanted.get("link_width")]),
    ):
        told = values.get(key)
        if told is not None and told not in {str(one) for one in allowed}:
            yield _drift(f"pcie.{key}", f"{pci}: {key}", told, " or ".join(map(str, allowed)))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _other(code: str, what: str, told: str | None, wanted: str) -> Finding:
    if told is None:
        return unknown(code, f"{what} is not told, expected {wanted}")
    return failed(code, f"{what} {told}, expected {wanted}", HealthAction.DRAIN_AND_DIAG, f"{what} {told}", SOURCE)


def _drift(code: str, what: str, told: str | None, wanted: str) -> Finding:
    if told is None:
        return unknown(code, f"{what} is not told, expected {wanted}")
    return degraded(code, f"{what} {told}, expected {wanted}", f"{what} {told}", SOURCE)


INVENTORY: Final = Source(kind=KIND, detect=detect, parse=parse)
