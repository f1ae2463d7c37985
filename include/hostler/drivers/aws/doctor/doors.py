"""Whether SSH gets in, by the rules of the security groups and from where we are; and whether nodes get out."""

import ipaddress
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hostler.cloud.doctor import Check, fail, ok, unknown, warn
from hostler.drivers.aws.doctor.asking import Patient, asked

_HTTPS: Final = 443
_ANYWHERE: Final = frozenset({"0.0.0.0/0", "::/0"})
_ALL: Final = "-1"
"""The protocol of a rule for everything. Source: EC2 API reference, IpPermission."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where SSH comes from: ``address`` None when it cannot be told from here; ``text`` names it for a person."""

    address: Address | None
    text: str


def check_groups(patient: Patient, region: str) -> Iterator[Check]:
    """Yields, for each VPC of the subnets, whether its groups are there and let SSH in and the nodes out."""
    name = f"security groups {region}"
    fix = "name groups of the subnets' VPC in clouds.aws.security_groups, by ids or tags"
    subnets = asked(name, lambda: patient.lookups.subnet_facts(region), fix=fix)
    if isinstance(subnets, Check):
        yield subnets
        return
    cidrs: dict[str, str] = {}
    for item in subnets:
        cidrs.setdefault(item["VpcId"], str(item.get("CidrBlock", "")))
    if not cidrs:
        yield unknown(name, "there is no subnet, so no VPC to look into", "mend the subnets first")
    for vpc_id, cidr in sorted(cidrs.items()):
        groups = asked(name, lambda vpc_id=vpc_id: patient.lookups.group_facts(region, vpc_id), fix=fix)  # type: ignore[misc]
        if isinstance(groups, Check):
            yield groups
        elif not groups:
            yield fail(name, f"none of those in fleet.yaml is in {vpc_id}", fix)
        else:
            yield ok(name, f"{', '.join(str(item['GroupId']) for item in groups)} in {vpc_id}")
            inbound = [rule for group in groups for rule in group.get("IpPermissions", ())]
            outbound = [rule for group in groups for rule in group.get("IpPermissionsEgress", ())]
            yield judge_inbound(f"ssh {region}", inbound, port=patient.settings.reach.port, origin=_origin(patient, cidr))
            yield judge_outbound(f"out {region}", outbound)


def judge_inbound(name: str, rules: Iterable[Mapping[str, Any]], *, port: int, origin: Origin) -> Check:
    """Judges whether the rules let SSH in from where it comes; pure."""
    fitting = [rule for rule in rules if _covers(rule, port)]
    ranges = sorted({cidr for rule in fitting for cidr in _ranges(rule)})
    others = sorted({other for rule in fitting for other in _references(rule)})
    fix = f"add a rule for TCP {port} from {origin.text} to a group of the nodes"
    if not ranges and not others:
        return fail(name, f"no rule lets TCP {port} in: no node will ever answer", fix)
    if wide := sorted(_ANYWHERE.intersection(ranges)):
        narrow = f"narrow the rule to {origin.text}; nodes take certificates only, and are still scanned by everybody"
        return warn(name, f"TCP {port} is open to {', '.join(wide)}", narrow)
    if origin.address is not None and any(_holds(cidr, origin.address) for cidr in ranges):
        return ok(name, f"TCP {port} is open to {origin.text}")
    text = f"TCP {port} is open to {', '.join([*ranges, *others])}; SSH comes from {origin.text}"
    if others or origin.address is None:
        return unknown(name, f"{text}: whether that is among them cannot be told from here", fix)
    return warn(name, f"{text}, which is not among them, unless an address translation lies between", fix)


def judge_outbound(name: str, rules: Iterable[Mapping[str, Any]]) -> Check:
    """Judges whether nodes may call the store and fetch packages; pure. Routes and endpoints are not looked at."""
    fitting = [rule for rule in rules if _covers(rule, _HTTPS)]
    fix = "add an outbound rule for TCP 443; nodes fetch packages and ship backups by it"
    if not any(_ranges(rule) or _references(rule) for rule in fitting):
        return fail(name, "no rule lets TCP 443 out", fix)
    if any(_ANYWHERE.intersection(_ranges(rule)) for rule in fitting):
        return ok(name, "TCP 443 may go anywhere; routes are not looked at")
    return warn(name, "TCP 443 may go to some places only", "see that the store and the package mirrors are among them")


def _covers(rule: Mapping[str, Any], port: int) -> bool:
    protocol = str(rule.get("IpProtocol", ""))
    if protocol == _ALL:
        return True
    return protocol in {"tcp", "6"} and int(rule.get("FromPort", 0)) <= port <= int(rule.get("ToPort", 65535))


def _ranges(rule: Mapping[str, Any]) -> list[str]:
    four = [item["CidrIp"] for item in rule.get("IpRanges", ()) if item.get("CidrIp")]
    return [*four, *(item["CidrIpv6"] for item in rule.get("Ipv6Ranges", ()) if item.get("CidrIpv6"))]


def _references(rule: Mapping[str, Any]) -> list[str]:
    """Returns groups and prefix lists that a rule names in the place of addresses."""
    groups = [item["GroupId"] for item in rule.get("UserIdGroupPairs", ()) if item.get("GroupId")]
    return [*groups, *(item["PrefixListId"] for item in rule.get("PrefixListIds", ()) if item.get("PrefixListId"))]


def _holds(cidr: str, address: Address) -> bool:
    network = ipaddress.ip_network(cidr, strict=False)
    return network.version == address.version and address in network


def _origin(patient: Patient, cidr: str) -> Origin:
    """Returns where nodes of a subnet will see SSH come from."""
    reach = patient.settings.reach
    if reach.jump_host is not None:
        host = reach.jump_host.partition("@")[2].rpartition(":")[0]
        addresses = addresses_of(host)
        return Origin(address=addresses[0] if addresses else None, text=f"the jump host {host}")
    address = local_address(cidr)
    if address is None:
        return Origin(address=None, text="this machine, whose address is not known")
    if reach.address == "public" and not address.is_global:
        return Origin(address=None, text=f"this machine ({address}) by a public address that is not known here")
    return Origin(address=address, text=f"this machine ({address})")


def addresses_of(host: str) -> Sequence[Address]:
    """Returns the addresses of a host's name; empty when it has none."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return ()
    return tuple(ipaddress.ip_address(item[4][0]) for item in found)


def local_address(cidr: str) -> Address | None:
    """Returns the address with which this machine would call into a network. A UDP socket that connects sends nothing."""
    try:
        towards = next(iter(ipaddress.ip_network(cidr, strict=False)))
        family = socket.AF_INET6 if towards.version == 6 else socket.AF_INET  # noqa: PLR2004 - of IP
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(towards), 9))
            return ipaddress.ip_address(probe.getsockname()[0])
    except (OSError, ValueError, StopIteration):
        return None
