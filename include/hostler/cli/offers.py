"""``hostler offers``: what can be bought for a request, best first, with reasons; and why the rest is out."""

import argparse
import gc
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hostler.catalog.cache import open_index
from hostler.catalog.egress import EGRESS
from hostler.catalog.index import CatalogIndex
from hostler.cli.offers_options import request_of, terms_of, words
from hostler.model.accelerators import ACCELERATORS
from hostler.model.offering import Refusal
from hostler.model.request import NodeRequest
from hostler.planning.filters import Filters
from hostler.planning.rank import Ranking, rank_known
from hostler.planning.reserved import with_reserved
from hostler.planning.terms import PlanTerms

if TYPE_CHECKING:
    from hostler.ledger.port import StockOut
    from hostler.model.capacity import CapacityNow


def offers(options: argparse.Namespace) -> int:
    """Prints the ranking. Exit status 1 when nothing fits or price lists have broken rows that were left out."""
    # The process ends with the answer: looking for garbage in records that all stay costs a third of the time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return _offers(options)
    finally:
        if was_enabled:
            gc.enable()


def _offers(options: argparse.Namespace) -> int:
    index = open_index(_lists(options), keep_going=options.keep_going)
    names = accelerators_in(options.accelerator, index)
    _check_clouds(options.cloud, names, options.count, index)
    request, terms = request_of(options, names), terms_of(options, names)
    stock_outs: Sequence[StockOut] = ()
    if options.capacity_file is not None:
        from hostler.cli.capacity_file import read_capacity

        terms = replace(terms, capacity=read_capacity(options.capacity_file))
    if options.ledger:
        terms, stock_outs = _from_ledger(terms)
    ranking = rank_all(index, request, terms, stock_outs, datetime.now(UTC))
    for fault in index.catalog.faults:
        print(f"hostler: left out: {fault}", file=sys.stderr)
    if options.json:
        from hostler.cli.offers_json import document

        print(document(ranking, request, terms, index))
    else:
        from hostler.cli.offers_text import text

        print(text(ranking, request, terms, index, limit=options.limit, shows_all=options.why_not))
    return 0 if ranking.ranked and not index.catalog.faults else 1


def _lists(options: argparse.Namespace) -> Sequence[str | os.PathLike[str]]:
    """Returns the price lists to read: those given, else with ``--ledger`` the deployment's own, else none: the shipped ones."""
    if options.catalog or not options.ledger:
        lists: Sequence[str] = options.catalog
        return lists
    from hostler.wiring.prices import catalog_paths
    from hostler.wiring.settings import read_fleet_file

    return catalog_paths(read_fleet_file())


def rank_all(
    index: CatalogIndex, request: NodeRequest, terms: PlanTerms, stock_outs: "Iterable[StockOut]", now: datetime
) -> Ranking:
    """Returns the ranking over an index, with a refusal for each other count in which the accelerators are sold."""
    known = index.known(terms.accelerators, request.accelerators_per_node)
    if terms.capacity.reservations:
        known = with_reserved(known, terms.capacity.reservations)
    ranking = rank_known(request, known, stock_outs, now, terms)
    wanted = Filters(request, terms).wanted
    others = [
        Refusal(subject=f"{name} x {count}", reason=f"{size} offerings have {count} x {name} in a node, asked for {wanted}")
        for name in terms.accelerators
        for count, size in index.sizes.get(name, {}).items()
        if count != request.accelerators_per_node
    ]
    refusals = sorted([*ranking.refusals, *others], key=lambda item: (item.subject, item.reason))
    return replace(ranking, refusals=tuple(refusals))


def accelerators_in(text: str, index: CatalogIndex) -> tuple[str, ...]:
    """Returns the short names in a text with commas, whatever their case.

    Raises:
        ValueError: a name is not known; the text names what comes close and what there is.
    """
    by_spelling = {spelling: name for name, spellings in ACCELERATORS.items() for spelling in spellings}
    by_spelling |= {name.lower(): name for name in (*ACCELERATORS, *index.sizes)}
    names = words([text])
    if not names:
        raise ValueError("--accelerator is empty; name one, or several with commas, such as A100,H100")
    for name in names:
        if name.lower() not in by_spelling:
            from difflib import get_close_matches

            close = get_close_matches(name.lower(), by_spelling, n=8, cutoff=0.5)
            hint = ", ".join(dict.fromkeys(by_spelling[word] for word in close))
            known = ", ".join(sorted({*ACCELERATORS, *index.sizes}))
            raise ValueError(
                f"--accelerator {name!r} is not known{f'; did you mean {hint}?' if hint else '.'} Known are: {known}"
            )
    return tuple(dict.fromkeys(by_spelling[name.lower()] for name in names))


def _check_clouds(values: Iterable[str], accelerators: tuple[str, ...], count: int, index: CatalogIndex) -> None:
    """Raises ValueError: a cloud is neither known nor in the price lists."""
    wanted = words(values)
    known = {*EGRESS, *(item.offering.cloud for item in (index.known(accelerators, count) if wanted else ()))}
    for name in wanted:
        if name not in known:
            raise ValueError(f"--cloud {name!r} is not one of {', '.join(sorted(known))}")


def _from_ledger(terms: PlanTerms) -> "tuple[PlanTerms, tuple[StockOut, ...]]":
    """Returns the terms with the deployment's spending and cap, and the stock-outs in force."""
    from hostler.wiring.settings import open_ledger, read_fleet_file

    fleet = read_fleet_file()
    with open_ledger(fleet) as ledger:
        spending, stock_outs = ledger.spending(), ledger.stock_outs()
        is_stopped = ledger.is_spending_stopped()
    if is_stopped:
        print("hostler: spending is stopped; nothing of this can be bought before `hostler resume`", file=sys.stderr)
    cap = type(spending.usd_per_hour)(fleet.limits.usd_per_hour)
    # The ledger's spending holds every open purchase already, those of spot too.
    capacity: CapacityNow = replace(terms.capacity, max_usd_per_hour=cap, spent_usd_per_hour=spending.usd_per_hour)
    return replace(terms, capacity=capacity), stock_outs
