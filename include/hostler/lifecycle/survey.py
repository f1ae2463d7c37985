"""What machines run in the account today, and what Hostler would say of them. Reads clouds and ledger, and writes nothing."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final, Literal

from hostler.cloud.driver import CloudDriver, Machine, MachineState, SupportsForeignView
from hostler.cloud.errors import CloudError
from hostler.cloud.tags import DEPLOYMENT, INTENT, LEASE, OWNER_PREFIXES, TENANT, is_foreign
from hostler.ledger.errors import LeaseNotFoundError, LedgerError
from hostler.ledger.port import Ledger
from hostler.lifecycle.events import words_of
from hostler.model.enums import FleetMode, LeaseState
from hostler.model.lease import LeaseView, Node

HOURS_PER_MONTH: Final = Decimal(730)
"""What the clouds' own calculators take."""

_OWNER_KEYS: Final = (
    "owner",
    "team",
    "project",
    "createdby",
    "created-by",
    "costcenter",
    "cost-center",
    "department",
    "email",
    "contact",
)
"""Tags, in lower case, that people put on machines to say whose they are."""

PriceOf = Callable[[Machine], Decimal | None]
"""Price in USD an hour of a machine; None when none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surveyed:
    """One machine.

    Attributes:
        whose: ``ours``: our tag and a lease that answers for it; ``orphan``: our tag, and no such lease; ``unclear``: our tag,
            and no ledger to ask; ``foreign``: everything else.
        owners: tags that say whose it is, as ``key=value``, sorted; empty when nobody put one on.
        usd_per_month: 730 hours at the price of now; 0 for one that is stopped (its disks cost on) or terminated; None: unknown.
        cost_note: how the cost was come by, or why it is not known.
        load, health: what is known of it, and why when nothing is. policy: what Hostler does with it.
    """

    cloud: str
    region: str
    zone: str
    provider_id: str
    name: str
    instance_type: str
    capacity_type: str
    state: str
    launched_at: datetime | None
    whose: Literal["ours", "orphan", "unclear", "foreign"]
    owners: tuple[str, ...]
    usd_per_month: Decimal | None
    cost_note: str
    load: str
    health: str
    policy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """All machines, the dearest first. ``errors``: regions that could not be looked at, and the ledger; nothing follows for them."""

    at: datetime
    machines: tuple[Surveyed, ...]
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyRules:
    """What of fleet.yaml decides what would be done with a machine."""

    deployment: str
    mode: FleetMode
    orphan_grace_s: float
    destroyed_per_tick: int


def survey(
    drivers: Mapping[str, CloudDriver], ledger: Ledger | None, rules: SurveyRules, price_of: PriceOf, now: datetime
) -> Survey:
    """Looks at every region of every cloud.

    Args:
        ledger: None when there is none to be asked: machines with our tag are then ``unclear``.
    """
    machines: dict[tuple[str, str], Machine] = {}
    errors: list[str] = []
    for name, driver in sorted(drivers.items()):
        for region in driver.regions:
            try:
                found = [
                    *driver.list_nodes(region),
                    *(driver.list_foreign(region) if isinstance(driver, SupportsForeignView) else ()),
                ]
            except CloudError as error:
                errors.append(f"{name}/{region}: {words_of(error)}")
                continue
            machines.update({(name, machine.provider_id): machine for machine in found})
    views, ledger_error = _views(ledger, machines.values())
    errors += [ledger_error] if ledger_error else []
    can_ask = ledger is not None and ledger_error is None
    live = [machine for machine in machines.values() if machine.state is not MachineState.TERMINATED]
    said = [_of(machine, views, rules, price_of, can_ask=can_ask) for machine in live]
    said.sort(key=lambda item: (-(item.usd_per_month or Decimal(0)), item.provider_id))
    return Survey(at=now, machines=tuple(said), errors=tuple(errors))


def _views(ledger: Ledger | None, machines: Iterable[Machine]) -> tuple[dict[str, LeaseView], str | None]:
    """Returns the leases that machines name, by id, and why the ledger could not be asked."""
    views: dict[str, LeaseView] = {}
    if ledger is None:
        return views, None
    for lease_id in sorted({machine.tags[LEASE] for machine in machines if LEASE in machine.tags}):
        try:
            views[lease_id] = ledger.view(lease_id)
        except LeaseNotFoundError:
            continue
        except LedgerError as error:
            return views, f"ledger: {error}"
    return views, None


def _of(machine: Machine, views: Mapping[str, LeaseView], rules: SurveyRules, price_of: PriceOf, *, can_ask: bool) -> Surveyed:
    node = None
    whose: Literal["ours", "orphan", "unclear", "foreign"] = "foreign"
    if not is_foreign(machine.tags, rules.deployment):
        view = views.get(machine.tags.get(LEASE, ""))
        whose = ("ours" if _answers(view, machine) else "orphan") if can_ask else "unclear"
        node = _node(view, machine) if whose == "ours" else None
    cost, note = _cost(machine, price_of)
    load, health = _condition(node)
    return Surveyed(
        cloud=machine.cloud,
        region=machine.region,
        zone=machine.zone,
        provider_id=machine.provider_id,
        name=machine.name,
        instance_type=machine.instance_type,
        capacity_type=machine.capacity_type.value,
        state=machine.state.value,
        launched_at=machine.launched_at,
        whose=whose,
        owners=owners_of(machine.tags),
        usd_per_month=cost,
        cost_note=note,
        load=load,
        health=health,
        policy=_policy(machine, whose, rules),
    )


def _answers(view: LeaseView | None, machine: Machine) -> bool:
    """True when an open lease of the ledger has this machine."""
    if view is None or view.lease.state is LeaseState.RELEASED:
        return False
    intent = next((item for item in view.intents if item.intent_id == machine.tags.get(INTENT)), None)
    return intent is not None and intent.provider_id in {None, machine.provider_id}


def _node(view: LeaseView | None, machine: Machine) -> Node | None:
    nodes = () if view is None else view.nodes
    return next((node for node in nodes if node.provider_id == machine.provider_id), None)


def _cost(machine: Machine, price_of: PriceOf) -> tuple[Decimal | None, str]:
    if machine.state is MachineState.STOPPED:
        return Decimal(0), "stopped: only its disks cost, which are not in this sum"
    price = price_of(machine)
    if price is None:
        return None, f"no price is known for {machine.instance_type} {machine.capacity_type} in {machine.region}"
    return (price * HOURS_PER_MONTH).quantize(
        Decimal("0.01")
    ), f"{HOURS_PER_MONTH} h at {price} USD; disks and traffic are not in it"


def _condition(node: Node | None) -> tuple[str, str]:
    """Returns load and health in words. What nobody measures is unknown, never idle and never healthy."""
    if node is None:
        reason = "no lease of ours has it, so no agent of ours measures it"
        return f"unknown: {reason}", f"unknown: {reason}"
    load = "unknown: its last look is not a measurement of load"
    if node.probed_at is None:
        return load, "unknown: it was never probed"
    reasons = f" ({'; '.join(node.health_reasons)})" if node.health_reasons else ""
    return load, f"{node.health.value}{reasons}"


def owners_of(tags: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the tags that say whose a machine is: those of other controllers, of people, and another deployment's id."""
    found = []
    for key, value in sorted(tags.items()):
        is_person = key.lower().rpartition(":")[2] in _OWNER_KEYS
        if key.startswith(OWNER_PREFIXES) or is_person or key in {DEPLOYMENT, TENANT}:
            found.append(f"{key}={value}")
    return tuple(found)


def _policy(machine: Machine, whose: str, rules: SurveyRules) -> str:
    """Returns what Hostler does with such a machine, in words."""
    if whose == "foreign":
        claimed = [key for key in sorted(machine.tags) if key.startswith(OWNER_PREFIXES)]
        why = f"claimed by {claimed[0]}" if claimed else "without the tag of this deployment"
        return f"never touched: {why}; named in every reap report"
    if whose == "ours":
        return "kept: its lease answers for it"
    if whose == "unclear":
        return "nothing, before the ledger answers"
    act = f"ended by reap after two looks and {rules.orphan_grace_s:.0f} s, {rules.destroyed_per_tick} a tick at most"
    if rules.mode is FleetMode.OBSERVE:
        return f"nothing in mode observe; in mode enforce {act}, once a person has confirmed the ledger"
    return f"{act}; on a new ledger once a person has confirmed it (hostler reap --confirm)"
