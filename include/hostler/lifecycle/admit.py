"""The first step: checks the request, writes the lease, buys nothing."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from hostler.ledger.errors import LeaseNotFoundError
from hostler.lifecycle.conf import read_conf
from hostler.lifecycle.events import make_event
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.plan import lowest_usd_cap
from hostler.lifecycle.refusal import Problem, RequestRefusedError
from hostler.lifecycle.secret_names import name_problems
from hostler.model.enums import LeaseState, Phase
from hostler.model.lease import Lease, lease_id_for
from hostler.model.request import NodeRequest, RunRef

__all__ = ["RequestRefusedError", "admit"]

CheckWorkload = Callable[[NodeRequest], list[Problem]]


def admit(
    fleet: Fleet, run: RunRef, conf: Mapping[str, Any], *, who: str, check_workload: CheckWorkload | None = None
) -> Lease:
    """Checks ``conf`` whole, then writes the run's lease (state ``requested``) with its data key; buys nothing.

    Idempotent on ``run``: a second call returns the same lease whatever its state; an ended lease stays ended.

    Args:
        conf: the Dag run's conf: fields of ``hostler.model.request_schema.REQUEST_FIELDS``; missing ones take their default.
        check_workload: says what is wrong with recipe and script; None takes the fleet's (``hostler.recipes.workloads.check``).

    Raises:
        RequestRefusedError: permanent. The refusal is written to the ledger as an event ``request.refused``.
        KeyServiceError, LedgerUnavailableError: try again; nothing was written.
    """
    lease_id = lease_id_for(run)
    try:
        return fleet.ledger.view(lease_id).lease
    except LeaseNotFoundError:
        pass
    request = _checked(fleet, lease_id, conf, who, check_workload)
    fleet.crash("new-data-key:before")
    _plain, wrapped = fleet.keys.new_data_key(lease_id)
    fleet.crash("new-data-key:after")
    lease = Lease(
        lease_id=lease_id,
        deployment=fleet.settings.deployment,
        run=run,
        request=request,
        state=LeaseState.REQUESTED,
        created_at=fleet.ledger.now(),
        reached=Phase.ADMIT.value,
        wrapped_data_key=wrapped,
    )
    why = f"{request.node_count} x {request.accelerators_per_node} {request.accelerator} for {request.tenant}"
    event = make_event(lease_id, who, "lease.admitted", why, max_cost_usd=request.max_cost_usd, recipe=request.recipe)
    fleet.crash("write:admit:before")
    view = fleet.ledger.admit(lease, [event])
    fleet.crash("write:admit:after")
    return view.lease


def _checked(
    fleet: Fleet, lease_id: str, conf: Mapping[str, Any], who: str, check_workload: CheckWorkload | None
) -> NodeRequest:
    """Returns the request, or writes the refusal and raises it."""
    request: NodeRequest | None
    try:
        request = read_conf(conf)
        problems = [
            *_against_fleet(fleet, request),
            *_against_limits(fleet, request, fleet.ledger.now()),
            *(name_problems(request.secrets) or _missing_secrets(fleet, request)),
            *(check_workload or fleet.seams.check_workload)(request),
        ]
    except RequestRefusedError as error:
        request, problems = None, list(error.problems)
    if request is None or problems:
        refusal = RequestRefusedError(tuple(problems))
        fields = ", ".join(sorted({field for field, _message in problems}))
        fleet.ledger.append_events([make_event(lease_id, who, "request.refused", str(refusal), fields=fields)])
        raise refusal
    return request


def _against_fleet(fleet: Fleet, request: NodeRequest) -> list[Problem]:
    """Returns what fleet.yaml does not know: tenant, clouds, regions."""
    problems: list[Problem] = []
    tenants = sorted(fleet.settings.tenant_caps)
    if request.tenant not in tenants:
        problems.append(("tenant", f"{request.tenant!r} is not a tenant of fleet.yaml; allowed: {', '.join(tenants)}"))
    clouds = sorted(fleet.drivers)
    allowed = f"allowed: {', '.join(clouds) or 'none'}"
    problems += [("clouds", f"{cloud!r} is not configured; {allowed}") for cloud in request.clouds if cloud not in clouds]
    used = [fleet.drivers[name] for name in clouds if not request.clouds or name in request.clouds]
    regions = sorted({region for driver in used for region in driver.regions})
    allowed = f"allowed: {', '.join(regions) or 'none'}"
    problems += [("regions", f"{region!r} is not configured; {allowed}") for region in request.regions if region not in regions]
    return problems


def _missing_secrets(fleet: Fleet, request: NodeRequest) -> list[Problem]:
    """Returns which named secrets do not exist; their values are dropped at once."""
    problems: list[Problem] = []
    for name in request.secrets:
        try:
            fleet.secret(name)
        except KeyError as error:
            problems.append(("secrets", str(error.args[0])))
    return problems


def _against_limits(fleet: Fleet, request: NodeRequest, now: datetime) -> list[Problem]:
    """Returns what no cap, no budget and no clock allows."""
    problems: list[Problem] = []
    settings, caps = fleet.settings, fleet.settings.tenant_caps.get(request.tenant)
    if request.deadline_at is not None and request.deadline_at <= now:
        problems.append(("deadline", f"{request.deadline_at.isoformat()} has passed; it is {now.isoformat()}"))
    if settings.usd_per_run is not None and request.max_cost_usd > settings.usd_per_run:
        problems.append(
            ("max_cost_usd", f"{request.max_cost_usd} is above limits.usd_per_run; allowed: up to {settings.usd_per_run}")
        )
    if caps is None:
        return problems
    most = min((cap for cap in (caps.nodes, caps.tenant_nodes) if cap is not None), default=None)
    if most is not None and request.node_count > most:
        problems.append(("nodes", f"{request.node_count} is above the cap; allowed: 1 to {most}"))
    usd_cap, price = lowest_usd_cap(caps), request.max_price_usd_per_hour
    if usd_cap is not None and usd_cap <= 0:
        problems.append(("tenant", f"the cap of {request.tenant} is {usd_cap} USD per hour: it can buy nothing"))
    elif usd_cap is not None and price is not None and price > usd_cap:
        problems.append(("max_price_usd_per_hour", f"{price} is above the cap; allowed: up to {usd_cap}"))
    return problems
