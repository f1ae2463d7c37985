"""The answer of ``hostler offers`` for people: the table, why the first is first, and why others are out."""

from collections.abc import Sequence
from decimal import Decimal

from hostler.catalog.index import CatalogIndex
from hostler.cli.table import render
from hostler.model.offering import Refusal
from hostler.model.request import NodeRequest
from hostler.planning.cost import DOUBT_RATIO, TrueCost
from hostler.planning.placement import Placement
from hostler.planning.quota import plain
from hostler.planning.rank import Ranked, Ranking
from hostler.planning.terms import PlanTerms

_MOST_REASONS = 12


def text(ranking: Ranking, request: NodeRequest, terms: PlanTerms, index: CatalogIndex, *, limit: int, shows_all: bool) -> str:
    """Returns the whole answer.

    Args:
        limit: rows of the table; 0 means all. shows_all: every refusal on its own line instead of the most frequent reasons.
    """
    names = " or ".join(terms.accelerators)
    parts = [f"{request.node_count} x {request.accelerators_per_node} x {names}, {', '.join(request.capacity_types)}"]
    parts.append(_table(ranking.ranked, limit) if ranking.ranked else "nothing fits")
    if ranking.placements:
        parts.append(_placements(ranking.placements, limit))
    if ranking.ranked and not ranking.placements:
        parts.append(_why_first(ranking.ranked, request, terms))
    if ranking.refusals:
        parts.append(_each(ranking.refusals) if shows_all else _grouped(ranking.refusals))
    days = [f"{name} ({day:%Y-%m-%d})" if day else name for name, day in sorted(index.catalog.loaded_at_source.items())]
    parts.append(f"prices: {', '.join(days)}")
    return "\n\n".join(parts)


def _table(ranked: Sequence[Ranked], limit: int) -> str:
    shown = ranked[: limit or None]
    has_cost = shown[0].cost is not None
    headings = ("", "OFFERING", "NODE", "CAPACITY", "USD/H", *(("USD/USEFUL ACC-H", "TOTAL USD") if has_cost else ()), "NOTES")
    rows = [(str(place), *_row(item), _notes(item)) for place, item in enumerate(shown, start=1)]
    more = len(ranked) - len(shown)
    return render(headings, rows) + (f"\n{more} more fit (--limit 0 shows all)" if more > 0 else "")


def _row(item: Ranked) -> tuple[str, ...]:
    offering, cost = item.offering, item.cost
    place = "/".join(word for word in (offering.cloud, offering.zone or offering.region, offering.instance_type) if word)
    row = (
        place,
        f"{offering.accelerator_count} x {offering.accelerator}",
        offering.capacity_type.value,
        f"{offering.price_usd_per_hour or Decimal(0):.4f}",
    )
    return row if cost is None else (*row, f"{cost.usd_per_useful_accelerator_hour:.4f}", f"{cost.total_usd:.2f}")


def _notes(item: Ranked) -> str:
    notes = list(item.notes)
    if item.stock_out is not None:
        notes.insert(0, f"no stock: {item.stock_out.reason}, worth a try from {item.stock_out.until:%Y-%m-%d %H:%M} UTC")
    return "; ".join(notes)


def _placements(gangs: Sequence[Placement], limit: int) -> str:
    rows = [
        (
            gang.domain,
            " + ".join(f"{share.node_count} x {share.offering.key}" for share in gang.shares),
            f"{gang.usd_per_hour:.4f}",
            f"{gang.cost.usd_per_useful_accelerator_hour:.4f}" if gang.cost else "-",
            f"{gang.cost.total_usd:.2f}" if gang.cost else "-",
        )
        for gang in gangs[: limit or None]
    ]
    return "whole gangs:\n" + render(("DOMAIN", "NODES", "USD/H", "USD/USEFUL ACC-H", "TOTAL USD"), rows)


def _why_first(ranked: Sequence[Ranked], request: NodeRequest, terms: PlanTerms) -> str:
    first = ranked[0]
    lines = [f"first is {first.offering.key}:"]
    if first.cost is None:
        lines.append(f"  {request.node_count} nodes at {plain(first.offering.price_usd_per_hour or Decimal(0))} USD an hour")
    else:
        lines += _arithmetic(first, first.cost, request, terms)
    cheaper = min(ranked, key=lambda item: item.cost.total_usd if item.cost else item.offering.price_usd_per_hour or Decimal(0))
    if cheaper.offering.doubts and cheaper is not first:
        lines.append(
            f"  {cheaper.offering.key} is cheaper on paper; its price is doubted and counts {DOUBT_RATIO} times: "
            f"{cheaper.offering.doubts[0]}"
        )
    if first.offering.doubts:
        lines.append(f"  it is first although its price counts {DOUBT_RATIO} times for its doubts: look before you buy")
    return "\n".join(lines)


def _arithmetic(first: Ranked, cost: TrueCost, request: NodeRequest, terms: PlanTerms) -> list[str]:
    costs, basis = terms.costs, first.basis
    if costs is None or basis is None:
        return []
    price, nodes = first.offering.price_usd_per_hour or Decimal(0), request.node_count
    checkpoint = f", a checkpoint every {plain(cost.checkpoint_interval_s)} s" if cost.checkpoint_interval_s else ""
    assumed = "" if costs.is_length_known else " (assumed)"
    time = (
        f"  time: {plain(costs.useful_hours)} useful hours{assumed} x {cost.overhead_ratio:.4f} for losses "
        f"({cost.losses_per_hour:.4f} an hour{checkpoint}) + start-up {plain(costs.startup_s)} s = {cost.wall_hours:.2f} hours"
    )
    parts = (
        f"  machines: {nodes} x {plain(price)} USD x {cost.wall_hours:.2f} h = {cost.machine_usd} USD; "
        f"disks {plain(costs.disk_gib)} GiB each: {cost.disk_usd} USD; "
        f"moving data: {cost.egress_usd} USD{f' ({basis.egress_words})' if basis.egress_words else ''}"
    )
    whole = (
        f"  {cost.total_usd} USD / ({plain(costs.useful_hours)} h x {basis.accelerators} accelerators) = "
        f"{cost.usd_per_useful_accelerator_hour} USD for a useful accelerator-hour"
    )
    return [time, parts, whole]


def _each(refusals: Sequence[Refusal]) -> str:
    return "why not:\n" + "\n".join(f"  {refusal.subject}: {refusal.reason}" for refusal in refusals)


def _grouped(refusals: Sequence[Refusal]) -> str:
    """Returns each reason once, the most frequent first, with how many it holds for and one of them."""
    groups: dict[str, list[str]] = {}
    for refusal in refusals:
        groups.setdefault(refusal.reason, []).append(refusal.subject)
    order = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    lines = [
        f"  {subjects[0]}: {reason}" if len(subjects) == 1 else f"  {len(subjects)} offerings, such as {subjects[0]}: {reason}"
        for reason, subjects in order[:_MOST_REASONS]
    ]
    left = len(order) - _MOST_REASONS
    return "why not (--why-not lists all):\n" + "\n".join(lines) + (f"\n  and {left} more reasons" if left > 0 else "")
